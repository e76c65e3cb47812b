/* The attention kernels for C programs: O = softmax(scale * Q K^T, masked) V on an NVIDIA GPU, its gradients,
 * and the same over a KV cache. Formulas: docs/reference/semantics.md (families flash, memeff, flex and kvcache).
 *
 *   fa_attention a;
 *   fa_attention_init(&a);                     // then sizes, pointers, strides, mask ...
 *   fa_error err;
 *   if (fa_forward(&a, NULL, 0, stream, &err) != FA_OK) puts(err.text);
 *
 * Shapes. With fixed lengths:
 *   q         [batch, seqlen_q, heads_q, head_dim]
 *   k, v      [batch, seqlen_k, heads_kv, head_dim], v with head_dim_v
 *   o         [batch, seqlen_q, heads_q, head_dim_v]
 *   lse       [batch, heads_q, seqlen_q]
 * With variable lengths (cu_seqlens_q and cu_seqlens_k) the tokens of all sequences are packed:
 *   q         [total_q, heads_q, head_dim]
 *   k, v      [total_k, heads_kv, head_dim], v with head_dim_v
 *   o         [total_q, heads_q, head_dim_v]
 *   lse       [heads_q, total_q], or [batch, heads_q, seqlen_q] (lse_padded)
 *
 * Kernels. The fast kernels take 16-bit elements and head dims that are multiples of 8 up to 256. With a
 * bias, linear dropout or a head_dim_v different from head_dim they do not support softcap, ALiBi, p_debug,
 * tiled dropout or custom masks. Other kernels take float32, larger or odd head dims, and a given delta; they
 * compute in full float32 accuracy whatever the elements are, and do not support these five either. They also sum dbias along
 * rows, in deterministic calls along any axis, and with variable lengths leave it unsummed. The fast kernels sum it along
 * batch and heads, with 4 bytes of workspace for each element of the sum.
 * KV cache (fa_forward_kvcache): 16-bit elements; head_dim a multiple of 8 up to 576, head_dim_v one up to 512;
 * softcap, ALiBi, every mask and packed queries; V as columns of K; no p_debug. The fast kernels are
 * those of head dims up to 256 that are the same for q and v. Caches of 8 bits (fa_inference.quantized) go with every mask,
 * softcap, ALiBi, sinks, splits, pages and packed queries; their head_dim is a multiple of 16 up to 256, and the same for v. So do
 * caches of 4 bits (FA_E2M1), to which nothing is appended.
 * With a bias, dropout or flex, float32 or other head dims
 * the kernels of ordinary keys do the work, with what they take and without splits; of pages, of cache rows by
 * cache_batch_idx and beside packed queries they are given a copy of all keys in the workspace.
 * Eight bits (fa_attention.e4m3): forward calls on compute capability 9.0 (Hopper). Head dims are multiples of 16 up to 256,
 * scale is positive; masks are windows, and there are softcap or ALiBi, sinks and variable lengths, but nothing else. Every 128
 * keys are summed on their own before float32 takes them up, since these tensor cores keep 13 bits of a sum.
 * Expressions and block lists (fa_attention.flex): every element type and head dim, with everything in
 * fa_attention except p_debug and custom masks. These kernels are compiled at run time, for the expressions of the
 * call, which needs NVRTC.
 *
 * Layout. Only the strides say how a tensor lies in memory. They count elements, and any strides that reach
 * the right elements are allowed: [B,H,S,D], a slice of packed QKV, 0 for an axis that an input repeats.
 * head_dim is always contiguous. Rows aligned to 16 bytes (pointer and strides in bytes are multiples of 16)
 * use the fast kernels.
 *
 * Ownership. Every pointer except those to the structs is device memory owned by the caller, on the device of
 * the calling thread's current context; it must live until the work in the stream is done. The library
 * allocates nothing on the device except the kernels' code, at their first use, which may take a second. The
 * structs themselves are read before the call returns.
 *
 * Streams. stream is a CUstream (or cudaStream_t); NULL is the default stream. Calls are asynchronous: they
 * return before the work is done, an error of the kernel itself appears at the next synchronisation, and they
 * may be captured into a graph unless check_device_data is set. Calls from several threads are safe.
 *
 * Errors. Everything that the host can see is checked before anything is launched: a call that does not
 * return FA_OK has launched nothing. FA_ERR_INPUT: wrong on any machine; FA_ERR_UNSUPPORTED: well formed, but
 * this build has no kernel for it, or none that fits this device; FA_ERR_DEVICE: an error of the driver. The
 * message names the field. */
#ifndef FA_GPU_FA_H
#define FA_GPU_FA_H

#include "cases/base/dtype.h"
#include "cases/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
/* What the shared library exports; of cases/ only the types. */
#pragma GCC visibility push(default)

/* Elements from one index to the next. batch is ignored with variable lengths, except by a bias and its gradient. */
typedef struct fa_strides {
  int64_t batch, row, head;
} fa_strides;

/* Where dropout's random numbers come from (docs/reference/semantics.md, "Dropout"). TILED: a byte per pair, from
 * Philox with seven rounds, by 16 x 32 tiles. LINEAR: 32 bits per pair, from ten rounds, by linear index. */
typedef enum fa_dropout_scheme { FA_DROPOUT_TILED, FA_DROPOUT_LINEAR } fa_dropout_scheme;

/* ---- expressions and block lists ---- */

enum { FA_FLEX_MAX_BUFFERS = 32, FA_FLEX_MAX_RANK = 4 };

/* A captured buffer that expressions read by name. FA_BOOL is a condition there, FA_I32 and FA_I64 are ints of 32 bits
 * (of an int64 beyond them the lowest 32), FA_F32, FA_F16 and FA_BF16 floats. */
typedef struct fa_flex_buffer {
  const char *name; /* letters, digits and _, no digit first; at most 63; not a reserved name */
  fa_dtype dtype;   /* FA_F32, FA_F16, FA_BF16, FA_I32, FA_I64 or FA_BOOL (a byte, true if it is not 0) */
  int rank;         /* axes: 0 .. FA_FLEX_MAX_RANK; 0: one element, read by the bare name */
  int64_t shape[FA_FLEX_MAX_RANK]; /* each >= 1 */
  const int64_t *stride; /* [rank], in elements, none negative; 0: the axis repeats one. NULL: row-major, dense */
} fa_flex_buffer;

/* score_mod and mask_mod, in the language of docs/reference/expressions.md: parsed and checked once and not again per
 * call. Any number of calls may share one, from several threads and with different buffers. */
typedef struct fa_flex_program fa_flex_program;

/* score_mod, mask_mod: NULL: none. buffers: n_buffers of them, at most FA_FLEX_MAX_BUFFERS; the arguments are
 * copied. *out is owned by the caller (fa_flex_free) and set on FA_OK only. FA_ERR_INPUT: the message shows
 * the place in the text, and what is allowed there. */
fa_status fa_flex_prepare(const char *score_mod, const char *mask_mod, const fa_flex_buffer *buffers,
                          int n_buffers, fa_flex_program **out, fa_error *err);
void fa_flex_free(fa_flex_program *program); /* only after the last call with it returned; NULL is allowed */

/* What fa_attention.flex points to. fa_flex_init sets the defaults in brackets.
 *
 * A block is q_block rows by kv_block keys of a sequence; the last ones are cut off. There are n_q = seqlen_q
 * / q_block and n_kv = seqlen_k / kv_block blocks, both rounded up; of those a packed sequence has as many as
 * its rows and keys need, and listing more changes nothing. In a full block all pairs are visible, in a
 * partial one those that mask_mod lets through (all without mask_mod), in a block that is in neither list
 * none; all other masks apply too. Lists are dense: counts [list_batch][list_heads][n_q], and key blocks of
 * each row of blocks, in any order, [list_batch][list_heads][n_q][n_kv]; indices past the count are ignored.
 * No block may be listed twice, and all must be in 0 .. n_kv - 1. */
typedef struct fa_flex {
  const fa_flex_program *program;          /* [NULL: no expressions, only blocks] */
  const void *buffer[FA_FLEX_MAX_BUFFERS]; /* the program's, in its order [NULL] */
  int64_t q_block, kv_block;               /* 1 .. 2^20; 0: there are no blocks [0, 0] */
  bool blocks_from_mask_mod; /* every call computes the blocks from mask_mod: full if it holds for all pairs
                                that exist, unlisted if for none, else partial; no lists [false] */
  int64_t list_batch, list_heads; /* divisors of batch and heads_q: sequence b and head h have the lists
                                     b % list_batch and h % list_heads [1, 1] */
  const int32_t *kv_num_blocks, *kv_indices;           /* the partial blocks [NULL: none] */
  const int32_t *full_kv_num_blocks, *full_kv_indices; /* the full blocks [NULL: none] */
} fa_flex;

/* One forward problem. fa_attention_init sets the defaults in brackets. */
typedef struct fa_attention {
  fa_dtype dtype;             /* of q, k, v, o, bias and gradients: FA_F16, FA_BF16, FA_F32 [FA_F16] */
  int64_t batch;              /* sequences [1] */
  int64_t heads_q, heads_kv;  /* heads_q is a multiple: query head h reads heads_kv * h / heads_q [1] */
  int64_t seqlen_q, seqlen_k; /* rows and keys of a sequence; variable lengths: the longest [0] */
  int64_t total_q, total_k;   /* variable lengths: all tokens, the last of cu_seqlens; else unused [0] */
  int64_t head_dim;           /* of q and k: up to 65,536 [0] */
  int64_t head_dim_v;         /* of v and o; 0: head_dim [0] */
  const void *q, *k, *v;      /* inputs */
  void *o;                    /* output; every element is written */
  float *lse;                 /* output: natural log of the sum of exponentials of each row's scores */
  fa_strides q_stride, k_stride, v_stride, o_stride, lse_stride;
  const int32_t *cu_seqlens_q, *cu_seqlens_k; /* [batch + 1], ascending from 0: sequence b is tokens cu[b] ..
                                                 cu[b+1]-1; both or neither, over a
                                                 cache only of queries [NULL] */
  const int32_t *seqused_k;                   /* [batch]: only so many keys of a sequence exist [NULL: all] */
  const int32_t *leftpad_k; /* [batch]: so many first keys are hidden, the others move up [NULL: none] */
  double scale;             /* any finite number, usually 1 / sqrt(head_dim); must be set [NaN] */
  double softcap;           /* t -> c tanh(t / c); 0 = off [0] */
  int64_t window_left, window_right; /* row i sees keys i + shift - left .. i + shift + right, shift =
                                        keys - rows of the sequence; -1: no bound; causal: -1, 0 [-1, -1] */
  bool mask_top_left;                /* shift = 0 instead: row i is aligned with key i [false] */
  int64_t chunk;                     /* row i sees no key before chunk * floor((i + shift) / chunk); needs
                                        window_right = 0; 0: no chunks [0] */
  const uint8_t *mask_bits;          /* a bit for every pair of a row and a key that exists, 1 = visible, row by
                                        row from the least significant; each sequence begins on a byte; the
                                        window hides too [NULL: none] */
  const int32_t *mask_indptr;        /* [batch + 1]: the byte at which a sequence's bits begin [NULL] */
  const void *bias;                  /* [batch, heads_q, seqlen_q, seqlen_k], added to the scaled scores, with variable
                                        lengths too: sequence b uses the first rows and keys of its matrix,
                                        as many as it has; -inf masks a pair [NULL: none] */
  fa_strides bias_stride;            /* 0: broadcast along that axis; keys are contiguous [0, 0, 0] */
  const float *alibi_slopes;        /* f32 [heads_q] or [batch][heads_q]: subtracts slope * distance [NULL] */
  int64_t alibi_batch_stride;       /* elements; 0: the same slopes for all sequences [0] */
  const float *sinks;               /* f32 [heads_q]: a logit of no key, in the denominator of a head's rows;
                                       -inf: that head has none; +inf is not for it [NULL] */
  bool sinks_in_lse;                /* the LSE counts it; that of a row without keys is the sink [true] */
  double dropout_p;                 /* probability of dropping, 0 <= p < 1 [0] */
  fa_dropout_scheme dropout_scheme; /* [FA_DROPOUT_TILED] */
  uint64_t dropout_seed, dropout_offset; /* Philox key and counter start */
  const uint64_t *dropout_seed_at, *dropout_offset_at; /* both or neither: read when the kernels run, so that a
                                            captured graph drops other pairs each time that these were changed
                                            before it is replayed. The seed is *dropout_seed_at; dropout_offset is
                                            added to *dropout_offset_at: PyTorch's offset inside the graph [NULL] */
  uint64_t *dropout_used;                /* fa_forward writes seed and offset, the sum of both, that dropout had: [2],
                                            to be given to fa_backward as dropout_seed_at and dropout_offset_at, with
                                            dropout_offset 0. Only where dropout_p > 0 and there are rows [NULL] */
  void *p_debug;                         /* [batch, heads_q, rows to 128, keys to 128], dense: P relative to a
                                            running maximum, 0 where masked; a set sign bit marks dropped
                                            pairs; slow, for debugging [NULL] */
  const fa_flex *flex;    /* score_mod, mask_mod and block lists, in addition to masks and bias; score_mod
                             comes after softcap and before ALiBi and bias [NULL: none] */
  bool lse_padded;        /* variable lengths: lse, and d_lse and delta with it, are [batch, heads_q, seqlen_q] all
                             the same; what is behind a sequence's rows is not touched. Else it changes nothing
                             [false] */
  float empty_lse;        /* lse of a fully masked row; its o is 0. PyTorch's flex_attention has -inf there
                             [+inf] */
  bool deterministic;     /* backward: the same bits every time, with more workspace [false] */
  int64_t splits;         /* fa_forward: parts of the keys that are processed in parallel and then combined, at
                             most 1024; 1: none; 0: chosen from the sizes alone, more than 1 only where few
                             rows see thousands of keys. More than 1 needs a workspace, 16-bit elements, head_dim
                             a multiple of 8 up to 256, also that of v, and has no bias, dropout, p_debug and
                             flex. Other calls ignore it [1] */
  bool e4m3;              /* q, k and v are FA_E4M3, and dtype, FA_F16 or FA_BF16, is that of o. What is stored times its
                             descale is the value [false] */
  const float *q_descale, *k_descale, *v_descale; /* of e4m3: one positive number for each sequence and KV head, whose
                             queries share it; NULL: 1 [NULL] */
  int64_t descale_batch_stride, descale_head_stride; /* elements of these; both 0: one number for all [0, 0] */
  float *amax_p, *amax_o; /* of e4m3, and over caches of 8 and 4 bits, both or neither: [1], written: the largest P over all
                             sequences, heads and rows, of a softmax divided by its sum, and the largest |O| before it is
                             rounded; 0 without keys [NULL] */
  bool check_device_data; /* also read cu_seqlens, seqused_k, leftpad_k and a cache's integers back and check
                             them: waits for the stream, so for debugging [false] */
} fa_attention;

/* What fa_backward needs in addition to the forward problem, whose o and lse are inputs here. */
typedef struct fa_gradients {
  const void *d_o;    /* like o */
  const float *d_lse; /* like lse; NULL: zero */
  void *dq, *dk, *dv; /* like q, k, v: outputs; every element is written */
  fa_strides do_stride, dlse_stride, dq_stride, dk_stride, dv_stride; /* those of outputs are not 0 */
  void *dbias; /* gradient of the bias, in its type; every element is written, 0 where no sequence has such rows
                  and keys [NULL: not wanted] */
  fa_strides dbias_stride; /* 0: the axis has one element, which receives the sum */
  const float *delta;      /* like lse: precomputed row sums of d_o times o, minus d_lse; o and d_lse are then
                              not read [NULL: computed in the workspace] */
  fa_strides delta_stride;
  void *dbuffer[FA_FLEX_MAX_BUFFERS]; /* of flex: gradients of float buffers, in their types and shapes, dense and
                                         row-major whatever the buffer's strides: each element of the shape has its
                                         own, also along an axis of stride 0. Summed in float32. Every element is
                                         written, 0 where score_mod reads nothing [NULL: not wanted] */
  float *dsinks;          /* [heads_q], gradient of the sinks: every element is written, with the same bits in
                             every run. With sinks, d_lse needs sinks_in_lse [NULL: not wanted] */
  int64_t num_splits_key; /* deterministic calls of the fast kernels: how many parts of the keys work at a
                             time, at most 1024, each adding into its own workspace; 0: chosen. Kernels that
                             add in a fixed order use only one, though the workspace has all of them, and
                             their bits do not depend on it; elsewhere it changes neither bits nor
                             workspace [0] */
} fa_gradients;

/* KV cache: what fa_forward_kvcache needs in addition to the forward problem. Sequence b has cache_seqlens[b]
 * keys in the cache. New keys are first written to slots cache_seqlens[b] .. cache_seqlens[b] + n_new - 1,
 * and nothing else is written; attention is over all of them. With cu_seqlens_q the queries are packed, q, o and
 * lse as with variable lengths: decoding and prefilling sequences in one call; the new keys are not, as many for
 * each sequence, also for one without queries. Of the fa_attention, k, v and their strides are
 * ignored; seqlen_k is the most keys that a sequence may have, new ones included; leftpad_k hides that many
 * first keys. Rows of q, new keys and caches that are aligned to 16 bytes are read fastest, as are pages of a
 * multiple of 64 slots. */
typedef struct fa_inference {
  void *k_cache, *v_cache; /* [cache_rows, seqlen_k, heads_kv, head_dim], or in pages, which may belong to any
                              sequence in any order: [cache_rows, page_size, heads_kv, head_dim]; v with head_dim_v */
  fa_strides k_cache_stride, v_cache_stride; /* batch: of rows, row: of slots; not 0 if keys are appended */
  int64_t cache_rows;                        /* rows, or pages [0] */
  const int32_t *cache_seqlens;              /* [batch]: keys in the cache before the call */
  const int32_t *cache_batch_idx; /* [batch]: row of each sequence; distinct if keys are appended; not with
                                     pages [NULL: sequence b is row b] */
  const int32_t *block_table;     /* [batch][max_pages]: slot s of the sequence is slot s % page_size of page
                                     [s / page_size]; entries that no key needs may be garbage; a page to
                                     which keys are appended belongs to one sequence [NULL: no pages] */
  int64_t block_table_stride;     /* elements from one sequence to the next [0] */
  int64_t max_pages, page_size;   /* pages per sequence, and slots per page, each >= 1 [0] */
  const void *k_new, *v_new;      /* [batch, n_new, heads_kv, head_dim], v with head_dim_v */
  fa_strides k_new_stride, v_new_stride;
  int64_t n_new;                       /* keys appended to the cache for every sequence [0] */
  const void *rotary_cos, *rotary_sin; /* [rotary_rows, rotary_dim / 2], in the elements' type, dense: new key
                                          t is rotated by row cache_seqlens[b] + t, row i of q by
                                          cache_seqlens[b] + i under a causal mask or window, else by
                                          cache_seqlens[b] */
  int64_t rotary_rows;                 /* number of positions; none beyond may be needed [0] */
  int64_t rotary_dim;                  /* so many first elements of head_dim are rotated; even [0: none] */
  bool rotary_interleaved;             /* pairs are adjacent elements, else rotary_dim / 2 apart [false] */
  int64_t splits; /* parts of the keys that are processed in parallel and then combined, at most 1024; 0:
                     chosen from the sizes alone [0] */
  bool v_in_k;    /* V is the first head_dim_v columns of K, read once for both (multi-head latent attention); v_cache,
                     v_new and their strides are ignored [false] */
  const int32_t *topk_indices; /* [batch, seqlen_q, topk], packed queries [total_q, topk], dense: the keys that a row
                                  sees, in any order, as often as they are named. With pages page * page_size + slot,
                                  else the key's number; below 0: none, as without pages all that are no key's number.
                                  Not with a mask, leftpad_k, cache_batch_idx, alibi_slopes or rotary_dim [NULL] */
  const int32_t *topk_length;  /* [batch]: only so many first entries of the lists count [NULL: all] */
  int64_t topk;                /* entries of a list [0] */
  bool quantized;              /* the caches are of cache_dtype, bytes that strides count. What is stored times its descale
                                  is the value: those of sequences and KV heads are fa_attention.k_descale and v_descale,
                                  with the strides there. Queries have 16 bits [false] */
  fa_dtype cache_dtype;        /* of quantized caches: FA_E4M3, FA_E5M2, FA_I8 or FA_E2M1 [FA_E4M3] */
  const uint8_t *k_scales, *v_scales; /* of FA_E2M1, whose caches have two columns in a byte, the first in the low bits:
                                         [cache_rows, slots, heads_kv, head_dim / 16], e4m3: every 16 columns share one, which
                                         they are multiplied by besides. Not with n_new and descales_of_slots [NULL] */
  fa_strides k_scales_stride, v_scales_stride; /* in bytes, as the caches' */
  bool descales_of_slots;      /* k_descale and v_descale are [cache_rows, slots, heads_kv], of where a key is stored:
                                  descale_batch_stride is from row to row, or page to page; not with n_new [false] */
  int64_t descale_slot_stride; /* elements from slot to slot; 0: one for all slots of a page, or row [0] */
  bool quantizes_new;          /* k_new and v_new are of dtype; the call stores each number divided by its descale, in
                                  float32, and rounded to nearest, ties to even; beyond the largest number the largest.
                                  Otherwise they are of cache_dtype, and stored as they are [false] */
  bool mixed_rows;             /* quantized caches of FA_E4M3 with v_in_k: a row of k_cache is bytes, one behind the other: head_dim_v
                                  numbers, float32 descales of 128 of them each, and the other head_dim - head_dim_v columns
                                  in dtype. head_dim_v is a multiple of 128; with 512 and 64 columns a row has 656 bytes.
                                  k_descale and v_descale are not read; not with n_new [false] */
} fa_inference;

/* Partial states: the O and LSE of attention over parts of the keys, which fa_merge makes one of (docs/reference/semantics.md,
 * "Family merge"). Packed rows are the rows of one sequence: batch 1, and all tokens. A part whose LSE is -inf or +inf is
 * empty: its O is not read. fa_states_init sets the defaults in brackets. */
typedef struct fa_states {
  fa_dtype dtype, parts_dtype;          /* of o; of the parts' o: FA_F16, FA_BF16 or FA_F32 [FA_F16] */
  int64_t parts;                        /* 1 .. 1024 [2] */
  int64_t batch, heads, rows, head_dim; /* [1, 1, 0, 0] */
  bool base_2;                          /* every lse is a logarithm to base 2, else natural [false] */
  const void *o_parts;                  /* [parts, batch, rows, heads, head_dim] */
  const float *lse_parts;               /* [parts, batch, heads, rows] */
  void *o;                              /* [batch, rows, heads, head_dim]: output; 0 if all parts are empty */
  float *lse;                           /* [batch, heads, rows]: output; -inf if all parts are empty */
  int64_t o_parts_step, lse_parts_step; /* elements from one part to the next */
  fa_strides o_parts_stride, lse_parts_stride; /* within a part */
  fa_strides o_stride, lse_stride;
} fa_states;

/* What fa_merge_backward needs in addition to the states, whose o and lse are inputs there. */
typedef struct fa_states_gradients {
  const void *d_o;    /* like o */
  const float *d_lse; /* like lse; NULL: zero */
  void *do_parts;     /* like o_parts: output; 0 for an empty part */
  float
      *dlse_parts; /* like lse_parts: output, derivatives by the numbers in lse_parts, whatever their base */
  int64_t do_parts_step, dlse_parts_step;
  fa_strides do_stride, dlse_stride, do_parts_stride, dlse_parts_stride; /* those of outputs are not 0 */
} fa_states_gradients;

void fa_attention_init(fa_attention *a);
void fa_gradients_init(fa_gradients *g);
void fa_inference_init(fa_inference *kv);
void fa_flex_init(fa_flex *f);
void fa_states_init(fa_states *s);
void fa_states_gradients_init(fa_states_gradients *g);

/* Dense strides of [batch, rows, heads, head_dim]. */
fa_strides fa_strides_dense(int64_t rows, int64_t heads, int64_t head_dim);

/* Everything that fa_forward checks except the device. */
fa_status fa_forward_check(const fa_attention *a, fa_error *err);
fa_status fa_backward_check(const fa_attention *a, const fa_gradients *g, fa_error *err);
fa_status fa_forward_kvcache_check(const fa_attention *a, const fa_inference *kv, fa_error *err);
fa_status fa_merge_check(const fa_states *s, fa_error *err);
fa_status fa_merge_backward_check(const fa_states *s, const fa_states_gradients *g, fa_error *err);

/* Device bytes that a call needs at workspace (aligned to 256; 0: workspace may be NULL). They are scratch:
 * the call may leave anything in them, and concurrent calls need separate workspaces. */
fa_status fa_forward_workspace(const fa_attention *a, size_t *bytes, fa_error *err);
fa_status fa_backward_workspace(const fa_attention *a, const fa_gradients *g, size_t *bytes, fa_error *err);
fa_status fa_forward_kvcache_workspace(const fa_attention *a, const fa_inference *kv, size_t *bytes,
                                       fa_error *err);
fa_status fa_merge_workspace(const fa_states *s, size_t *bytes, fa_error *err);
fa_status fa_merge_backward_workspace(const fa_states *s, const fa_states_gradients *g, size_t *bytes,
                                      fa_error *err);

/* One line about the device of the calling thread's current context and about the origin of its kernels:
 * compiled ahead of time for it, compiled at run time, and which could not be compiled and why. Errors as for
 * a call: FA_OK means that kernels can run here. Kernels are compiled at run time (NVRTC, at a kernel's first
 * use; kept on disk in FA_CACHE_DIR, else ~/.cache/fa-verify) if the library has none for the device, and for
 * some features at some head dims, which otherwise use a slower kernel. The environment's FA_NVRTC (off,
 * auto, always) controls this. */
fa_status fa_describe(char *text, size_t size, fa_error *err);

fa_status fa_forward(const fa_attention *a, void *workspace, size_t workspace_bytes, void *stream,
                     fa_error *err);
fa_status fa_backward(const fa_attention *a, const fa_gradients *g, void *workspace, size_t workspace_bytes,
                      void *stream, fa_error *err);
fa_status fa_forward_kvcache(const fa_attention *a, const fa_inference *kv, void *workspace,
                             size_t workspace_bytes, void *stream, fa_error *err);

fa_status fa_merge(const fa_states *s, void *workspace, size_t workspace_bytes, void *stream, fa_error *err);
fa_status fa_merge_backward(const fa_states *s, const fa_states_gradients *g, void *workspace,
                            size_t workspace_bytes, void *stream, fa_error *err);

/* Outputs, laid out as in fa_flex. */
typedef struct fa_flex_block_lists {
  int32_t *kv_num_blocks, *kv_indices, *full_kv_num_blocks, *full_kv_indices;
} fa_flex_block_lists;

/* The lists that blocks_from_mask_mod stands for, computed once, so that calls need not compute them each
 * time. Of a, only the sizes, lengths and flex are used; of flex the program, which has a mask_mod, its
 * buffers, q_block, kv_block, list_batch and list_heads: lists are made for that many first sequences and
 * heads. Lists are ascending, and 0 past their counts. The workspace is as for the other calls. */
fa_status fa_flex_blocks_workspace(const fa_attention *a, size_t *bytes, fa_error *err);
fa_status fa_flex_blocks(const fa_attention *a, const fa_flex_block_lists *out, void *workspace,
                         size_t workspace_bytes, void *stream, fa_error *err);
/* The same on the CPU, without a device: all pointers are to host memory. */
fa_status fa_flex_blocks_on_host(const fa_attention *a, const fa_flex_block_lists *out, fa_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
