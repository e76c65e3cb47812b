/* One attention problem: what to compute, without any data. Symbols and formulas: docs/reference/semantics.md.
 *
 * Both sides read it: ref/ to judge, gpu/ to compute. It is plain data; fa_problem_init sets a valid default,
 * and fa_problem_free frees what it owns. */
#ifndef FA_CASES_VOCABULARY_PROBLEM_H
#define FA_CASES_VOCABULARY_PROBLEM_H

#include "cases/base/dtype.h"
#include "cases/base/status.h"
#include "cases/expr/capture.h"
#include "cases/vocabulary/mask.h"
#include "cases/vocabulary/mask_bits.h"
#include "cases/vocabulary/quantized.h"
#include "cases/vocabulary/topk.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum fa_family { FA_FLASH, FA_MEMEFF, FA_FLEX, FA_KVCACHE, FA_MERGE, FA_N_FAMILIES } fa_family;
typedef enum fa_empty_lse { FA_EMPTY_POS_INF, FA_EMPTY_NEG_INF, FA_EMPTY_ZERO } fa_empty_lse;

/* Owned. Absent: n == 0 and v == NULL. */
typedef struct fa_int32_array {
  int64_t n;
  int32_t *v;
} fa_int32_array;

/* Slopes are f32, [heads_q] or [batch][heads_q]; n is their number. standard: computed from the head count
 * (Press et al. 2022: 2^(-8 (h+1) / H), with the published interleaving if H is not a power of two). */
typedef struct fa_alibi {
  bool present, standard;
  int64_t n;
  float *slopes; /* owned; also set if standard */
} fa_alibi;

/* Additive bias [b|1, h|1, q|1, k] in the problem's dtype. */
typedef struct fa_bias {
  bool present, grad;
  bool per_batch, per_head, per_query; /* false: that axis is 1 (broadcast) */
} fa_bias;

/* p == 0: off. The generator depends on the family: memeff has 10-round Philox, all others the 7-round one of
 * flash (docs/reference/semantics.md). */
typedef struct fa_dropout {
  double p;
  uint64_t seed, offset;
} fa_dropout;

/* One learned logit a query head that no value belongs to: its exponential joins the denominator of every row of the
 * head. in_lse false: the LSE that is returned leaves it out. The numbers are data (FA_T_SINKS). */
typedef struct fa_sinks {
  bool present, grad, in_lse; /* not present: all false */
} fa_sinks;

/* KV cache call (family kvcache): K and V are the caches. */
typedef struct fa_kvcache {
  bool present;
  fa_int32_array len;       /* [batch] valid keys before the call */
  int64_t n_new;            /* keys appended by the call, 0 = none */
  int64_t page_size;        /* 0 = contiguous cache [n_cache_rows, seqlen_k, heads_kv, D] */
  fa_int32_array batch_idx; /* [batch] cache row of each sequence; absent = identity */
  int64_t rotary_dim;       /* 0 = no rotary embedding; even, <= head_dim */
  bool rotary_interleaved;
  int64_t shared_pages; /* sequences share each of the first so many pages that they fill before the call */
  bool v_in_k; /* latent cache (MLA): V is a view of the first head_dim_v columns of K, and new V of new K */
} fa_kvcache;

typedef enum fa_block_source { FA_BLOCKS_LISTS, FA_BLOCKS_MASK_MOD, FA_BLOCKS_DENSITY } fa_block_source;

/* Block-sparse lists: the (query block, key block) tiles that are visited. "Partial" tiles apply mask_mod,
 * "full" tiles skip it, unlisted tiles are masked. Counts are [list_batch][list_heads][n_q_blocks]; indices have
 * another axis [n_kv_blocks], of which those past the count are ignored and may be anything. Blocks are counted
 * within a sequence, from its first row and its first key that is not hidden; there are as many as seqlen_q
 * and seqlen_k need. */
typedef struct fa_block_sparse {
  bool present;
  fa_block_source source;
  int64_t q_block, kv_block;
  int64_t list_batch,
      list_heads; /* divide batch and heads_q: entry b, head h use lists b % list_batch, h % list_heads */
  fa_int32_array kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices;
  double density;
  uint64_t seed;
} fa_block_sparse;

/* Partial states merged into one (family merge): there are no queries and keys, heads_q and seqlen_q say how many
 * rows there are, and head_dim how wide O is. heads_kv, seqlen_k, head_dim_v and scale are what fa_problem_complete
 * makes of these. Other families have no parts, and base e and f16 here. */
typedef struct fa_parts {
  int64_t parts;        /* how many (O, LSE) pairs: 1 .. FA_MAX_PARTS */
  bool base_2;          /* every LSE, given and computed, is a logarithm to base 2; else natural */
  fa_dtype parts_dtype; /* of the parts' O and its gradient; dtype is that of O and dO */
} fa_parts;

/* Lists of keys (cases/vocabulary/topk.h), by their recipe: keys without repetition, then what the rest says. */
typedef struct fa_topk {
  bool present;
  int64_t k;             /* entries of every list; not present: 0 */
  double none;           /* share of a list's entries that name none */
  fa_topk_place none_at; /* where these are; entries are none too where all keys are listed already */
  double repeated;       /* probability that an entry names a key again */
  double empty_rows;     /* probability that a row's list names none */
  bool beyond;           /* without pages: some that name none are numbers behind the last key */
  fa_int32_array len;    /* [batch] entries that are of the list; absent: all */
  uint64_t seed;
} fa_topk;

typedef struct fa_problem {
  fa_family family;
  fa_dtype dtype;
  int64_t batch, heads_q, heads_kv;
  int64_t seqlen_q, seqlen_k; /* variable length: the longest; kvcache: seqlen_k = capacity of a cache row */
  int64_t head_dim, head_dim_v;
  fa_int32_array cu_seqlens_q, cu_seqlens_k; /* [batch+1]; both or none, kvcache: of queries alone */
  fa_int32_array seqused_k;                  /* [batch]: only the first seqused_k[b] keys exist */
  fa_int32_array leftpad_k;                  /* [batch]: the first leftpad_k[b] keys are hidden */
  double scale, softcap; /* scale is always set (default 1/sqrt(head_dim)); softcap 0 = off */
  fa_mask mask;
  fa_alibi alibi;
  fa_bias bias;
  fa_dropout dropout;
  fa_sinks sinks;
  fa_kvcache kvcache;
  fa_block_sparse block_sparse;
  fa_mask_bits mask_bits;
  fa_topk topk;
  char *score_mod, *mask_mod; /* owned; NULL = absent */
  int n_captures;
  fa_capture *captures;                                   /* owned */
  int64_t splits;                                         /* 0 = the backend chooses */
  bool deterministic, backward, return_softmax, grad_lse; /* grad_lse: dLSE is given with dO */
  fa_empty_lse empty_lse;
  bool
      lse_padded; /* packed queries: LSE and dLSE are [batch][heads_q][seqlen_q] all the same; what is behind a
                    * sequence's last row is nobody's */
  fa_parts merge;
  fa_quantized quantized;
} fa_problem;

void fa_problem_init(fa_problem *p); /* flash, f16, 1 x 1 x 1 x 1 x 64 */
void fa_problem_free(fa_problem *p); /* resets to fa_problem_init's state, owning nothing */
fa_status fa_problem_copy(fa_problem *dst, const fa_problem *src); /* dst is overwritten, not freed */
bool fa_problem_equal(const fa_problem *a, const fa_problem *b);   /* every field, doubles by their bits */
/* Replaces the elements; v NULL: zeros. */
fa_status fa_int32_array_set(fa_int32_array *a, const int32_t *v, int64_t n);

/* Sets fields that follow from others, for code that builds or changes a problem: with cu_seqlens, batch and
 * the longest lengths; the standard slopes; list_batch and list_heads of block lists that are made later. The
 * problem need not be valid; what makes no sense is left for fa_problem_validate. */
fa_status fa_problem_complete(fa_problem *p);
/* Sets the family and the fields whose defaults depend on it: backward, empty_lse and merge (two parts of the
 * problem's type). */
void fa_problem_set_family(fa_problem *p, fa_family family);

/* The type that the matrix units multiply: of queries, and of P as the second product's operand. */
fa_dtype fa_problem_operand_dtype(const fa_problem *p);
/* Values of one row have descales that differ from key to key: in 8 bits per token or page. Beside queries of 8 bits only keys
 * have: V is multiplied by P of 8 bits, whose range leaves no room for another factor. */
bool fa_problem_has_descales_of_keys(const fa_problem *p);
/* Whether a case of its kind has a backward where it says nothing: the family's default, none with 8 bits. */
bool fa_problem_default_backward(const fa_problem *p);

bool fa_problem_is_varlen(const fa_problem *p);       /* queries are packed */
bool fa_problem_has_packed_keys(const fa_problem *p); /* keys too: varlen, and not in a cache */
/* A captured buffer of this type; with_gradient: one whose gradient the case asks for. */
bool fa_problem_has_buffer(const fa_problem *p, fa_dtype dtype, bool with_gradient);
int64_t fa_problem_total_q(const fa_problem *p); /* cu_seqlens_q[batch], or batch * seqlen_q */
int64_t fa_problem_total_k(const fa_problem *p);

/* Rows of a contiguous cache: the largest batch_idx + 1, or batch. */
int64_t fa_problem_cache_rows(const fa_problem *p);

/* The sequence that owns page m of sequence b: b itself, or with shared_pages the first sequence that fills
 * that page. */
int64_t fa_problem_page_owner(const fa_problem *p, int64_t b, int64_t m);

const char *fa_family_name(fa_family f);               /* as in the case JSON; "?" out of range */
bool fa_family_default_backward(fa_family f);          /* false for kvcache */
fa_empty_lse fa_family_default_empty_lse(fa_family f); /* flex and merge -inf, others +inf */
double fa_default_scale(int64_t head_dim);             /* 1 / sqrt(head_dim) */
#define FA_MLA_NOPE_DIM                                                                                      \
  128 /* columns of a head before absorption that have no rotary embedding, where a case does \
                               not say: they and the rotary ones make the scale */
/* Writes the published slopes of n_heads heads to slopes[n_heads]. */
void fa_alibi_standard(int64_t n_heads, float *slopes);

/* Checks every way in which fields can contradict each other (head counts, monotone cu_seqlens, p in [0,1),
 * element counts, what a family allows ...). The message names the field by its path in the case JSON
 * ("$.heads_q"). */
fa_status fa_problem_validate(const fa_problem *p, fa_error *err);

/* The largest number of elements that one tensor may have. */
#define FA_MAX_ELEMENTS ((int64_t)1 << 33)
/* Most elements from a tensor's first to its last, gaps included: enough to overflow any 32-bit offset. */
#define FA_MAX_SPAN ((int64_t)1 << 35)
/* Kernels index sequences, heads and rows with int32, and round lengths up to whole tiles. */
#define FA_MAX_BATCH ((int64_t)1 << 20)
#define FA_MAX_HEADS ((int64_t)1 << 16)
#define FA_MAX_LENGTH ((int64_t)1 << 30)
#define FA_MAX_HEAD_DIM ((int64_t)1 << 16)
#define FA_MAX_SPLITS ((int64_t)1024)
#define FA_MAX_PARTS ((int64_t)1024)
#define FA_MAX_BLOCK ((int64_t)1 << 20) /* rows or keys of one block-sparse tile */
#define FA_MAX_SORTED_BELOW 65536       /* cost of drawing a sorted row, in steps */

#endif
