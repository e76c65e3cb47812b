/* Strided tensors in guarded buffers, and the set of all tensors of one call.
 *
 * Logical axes are fixed:
 *   q, k, v, o and their gradients  [B, S, H, D]; variable length: [total, H, D]
 *   LSE                             [B, H, S]; variable length: [H, total]
 *   bias                            [b|1, h|1, q|1, Sk]
 * The layout ("bhsd", gaps, packed qkv, expanded axes) is only in the strides, which count elements. A tensor
 * of rank 3 has no batch axis. */
#ifndef FA_CASES_TENSORS_SET_H
#define FA_CASES_TENSORS_SET_H

#include "cases/base/dtype.h"
#include "cases/base/status.h"
#include "cases/expr/capture.h"
#include "cases/vocabulary/tensor_bits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FA_MAX_RANK 5

typedef struct fa_tensor {
  fa_dtype dtype;
  int rank;
  int64_t shape[FA_MAX_RANK];
  int64_t stride[FA_MAX_RANK]; /* in elements; 0 = expanded axis */
  char *data;                  /* element [0,...,0]; NULL = tensor absent */
} fa_tensor;

int64_t fa_tensor_count(const fa_tensor *t); /* product of the shape; 0 for an absent tensor */
/* Byte offset of element index[0..rank-1] from data. */
int64_t fa_tensor_offset(const fa_tensor *t, const int64_t *index);
/* Converts a row-major position 0..count-1 to an index. */
void fa_tensor_unravel(const fa_tensor *t, int64_t position, int64_t *index);
double fa_tensor_get(const fa_tensor *t, const int64_t *index);
void fa_tensor_set(const fa_tensor *t, const int64_t *index, double value);
/* Copies the elements between tensors of the same shape and type. Any strides; data may be unaligned. */
void fa_tensor_copy(const fa_tensor *to, const fa_tensor *from);
/* True if the elements are exactly `count` consecutive ones, each once, in any order of axes. */
bool fa_tensor_is_dense(const fa_tensor *t);
/* "f16 [2,64,4,64]", for messages. */
void fa_tensor_shape_text(const fa_tensor *t, char *text, size_t size);

/* Every input and output of one call. An absent tensor has data == NULL. */
typedef enum fa_tensor_id {
  /* inputs */
  FA_T_Q,
  FA_T_K,
  FA_T_V, /* kvcache: K and V are the caches, [rows, Sc, Hk, D] or [pages, page_size, Hk, D] */
  FA_T_BIAS,
  FA_T_ALIBI_SLOPES, /* f32 [Hq] or [B, Hq] */
  FA_T_DO,
  FA_T_DLSE, /* dO is like o; dLSE is f32, like lse */
  FA_T_CU_SEQLENS_Q,
  FA_T_CU_SEQLENS_K,
  FA_T_SEQUSED_K,
  FA_T_LEFTPAD_K, /* i32 */
  FA_T_K_NEW,
  FA_T_V_NEW, /* [B, n_new, Hk, D] */
  FA_T_CACHE_SEQLENS,
  FA_T_CACHE_BATCH_IDX,
  FA_T_BLOCK_TABLE, /* i32 [B], [B], [B, max_pages] */
  FA_T_ROTARY_COS,
  FA_T_ROTARY_SIN, /* problem dtype, [Sro, rotary_dim / 2] */
  FA_T_KV_NUM_BLOCKS,
  FA_T_KV_INDICES,
  FA_T_FULL_KV_NUM_BLOCKS,
  FA_T_FULL_KV_INDICES, /* i32, rank 3 and 4 */
  FA_T_BUFFER_0,        /* captured buffers, one per capture: of its type and shape ([1] for a scalar) */
  FA_T_BUFFER_LAST = FA_T_BUFFER_0 + FA_MAX_CAPTURES - 1,
  FA_T_MASK_BITS,   /* u8, bytes of packed bits (cases/vocabulary/mask_bits.h) */
  FA_T_MASK_INDPTR, /* i32 [B + 1]: where a sequence's bytes begin */
  FA_T_O_PARTS,     /* family merge: [part, B, S, H, D] or [part, total, H, D], its own type */
  FA_T_LSE_PARTS,   /* f32 [part, B, H, S] or [part, H, total] */
  /* outputs */
  FA_T_O,
  FA_T_LSE,
  FA_T_P_DEBUG,      /* return_softmax: [B, Hq, Sq up to 128, Sk up to 128], problem dtype */
  FA_T_DROPOUT_KEEP, /* u8 [B, Hq, Sq, Sk], 1 = kept: recorded runs only */
  FA_T_DQ,
  FA_T_DK,
  FA_T_DV,
  FA_T_DBIAS,
  FA_T_DBUFFER_0, /* of the buffer's type and shape, dense, if backward is wanted, the capture has "grad" and
                     score_mod reads it */
  FA_T_DBUFFER_LAST = FA_T_DBUFFER_0 + FA_MAX_CAPTURES - 1,
  FA_T_DO_PARTS, /* like o_parts, lse_parts */
  FA_T_DLSE_PARTS,
  /* added later, behind the others so that these keep their numbers */
  FA_T_SINKS,
  FA_T_DSINKS,       /* f32 [Hq]; an input and its gradient */
  FA_T_TOPK_INDICES, /* i32 [B, Sq, k] or [total, k] (cases/vocabulary/topk.h) */
  FA_T_TOPK_LENGTH,  /* i32 [B] */
  FA_T_Q_DESCALE,
  FA_T_K_DESCALE,
  FA_T_V_DESCALE, /* f32 (cases/vocabulary/quantized.h) */
  FA_T_K_SCALES,
  FA_T_V_SCALES, /* e4m3 [rows or pages, slot, Hk, D / 16]: of blocks of numbers of 4 bits (cases/tensors/nibbles.h) */
  FA_T_AMAX_P,
  FA_T_AMAX_O,  /* outputs, f32 [1]: the largest magnitudes of P and of O */
  FA_T_O_SCALE, /* f32 [1], an input: what an O of 8 bits is multiplied by before it is stored */
  FA_T_COUNT
} fa_tensor_id;

const char *fa_tensor_id_name(fa_tensor_id id); /* "q", "cu_seqlens_k", ... as in recorded runs */
bool fa_tensor_id_is_output(fa_tensor_id id);

/* One allocation: guard | payload | guard. Guards are FA_GUARD_BYTES of a fixed pattern that reads as NaN in
 * every float type. The payload of an output starts with poison A, that of an input with a NaN pattern of its
 * own (cases/tensors/guard.h). */
#define FA_GUARD_BYTES 65536
typedef struct fa_buffer {
  char *base;                 /* start of the front guard; NULL = unused */
  size_t bytes;               /* payload bytes */
  bool borrowed;              /* the memory is somebody else's, who frees it */
  struct fa_islands *islands; /* NULL, or the parts of the payload backed by memory (cases/tensors/guard.h) */
} fa_buffer;

typedef struct fa_tensors {
  fa_tensor t[FA_T_COUNT];
  fa_buffer buffer[FA_T_COUNT]; /* tensor i's, unless it is a view into another's (packed qkv) */
  int owner[FA_T_COUNT];        /* index of the buffer that holds tensor i */
} fa_tensors;

/* What outputs hold before a run; runs with different poisons must give the same outputs. A and B are NaNs
 * that no arithmetic makes, so they reveal an element that nobody wrote. The others catch a kernel that reads
 * its outputs and might take them for values: a max ignores a NaN, but not infinity. */
typedef enum fa_poison {
  FA_POISON_A,
  FA_POISON_B,
  FA_POISON_INF,
  FA_POISON_ZERO,
  FA_POISON_FINITE
} fa_poison;

/* Strides that leave most of a large buffer unused get virtual memory: only what the tensors touch, and a
 * page around it, exists. FA_ERR_UNSUPPORTED: the elements are in too many places for that. */
#define FA_MAX_ISLANDS 4096
/* Adds tensor id to a set that was zeroed at first, with shape and strides in elements (strides NULL =
 * row-major contiguous). Element 0 is offset_elements after a 256-byte aligned address. */
fa_status fa_tensors_add(fa_tensors *set, fa_tensor_id id, fa_dtype dtype, int rank, const int64_t *shape,
                         const int64_t *stride, int64_t offset_elements, fa_error *err);
/* The same with tail_elements more at the end of the buffer: room for views (packed qkv). */
fa_status fa_tensors_add_padded(fa_tensors *set, fa_tensor_id id, fa_dtype dtype, int rank,
                                const int64_t *shape, const int64_t *stride, int64_t offset_elements,
                                int64_t tail_elements, fa_error *err);
/* Adds a tensor inside another one's buffer (packed qkv): its element 0 is offset_elements after owner's
 * element 0. */
fa_status fa_tensors_add_view(fa_tensors *set, fa_tensor_id id, fa_tensor_id owner, int rank,
                              const int64_t *shape, const int64_t *stride, int64_t offset_elements,
                              fa_error *err);
void fa_tensors_free(fa_tensors *set);
/* Deep copy: same strides, own buffers. */
fa_status fa_tensors_clone(fa_tensors *dst, const fa_tensors *src, fa_error *err);

/* Fills the whole payload of an output's buffer, gaps included, with the poison. */
void fa_tensors_poison(fa_tensors *set, fa_tensor_id id, fa_poison poison);
/* A deep copy with every output poisoned: what a subject receives. */
fa_status fa_tensors_clone_poisoned(fa_tensors *dst, const fa_tensors *src, fa_poison poison, fa_error *err);
/* The same in a block of the caller's that outlives it and begins at a multiple of 256: one buffer behind the other, guards
 * included, each at a multiple of FA_BLOCK_ALIGNMENT. What is between them stays as it is. */
#define FA_BLOCK_ALIGNMENT 512
void fa_tensors_clone_poisoned_into(fa_tensors *dst, const fa_tensors *src, fa_poison poison, char *block);
/* Bytes of that block; 0: a buffer is mostly address space, and there is no such copy. */
size_t fa_tensors_block_bytes(const fa_tensors *src);
/* True if all guards are intact; otherwise *where says which tensor, front or back, how many bytes and how
 * far outside. */
bool fa_tensors_guards_intact(const fa_tensors *set, char *where, size_t where_size);
/* True if no element of the output's payload outside the tensor's own (and its views') differs from the
 * poison; otherwise *where says how many differ and where the first is. */
bool fa_tensors_gaps_intact(const fa_tensors *set, fa_tensor_id id, fa_poison poison, char *where,
                            size_t where_size);
/* True if the element's bits are still the poison (nobody wrote it). */
bool fa_tensor_is_poison(const fa_tensor *t, const int64_t *index, fa_poison poison);
/* True if the inputs of both sets are bit-equal, gaps included; otherwise *where names the tensor and the
 * element. The caches of a call that appends (k_new present) are outputs and not compared. */
bool fa_tensors_inputs_equal(const fa_tensors *a, const fa_tensors *b, char *where, size_t where_size);

#endif
