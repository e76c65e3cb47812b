/* Arguments of the inference kernels, attention over a KV cache, as the host fills them and the device reads
 * them.
 *
 * The cache. Key j of entry b is slot j of the cache's row cache_batch_idx[b] (NULL: b), or with a block
 * table slot j % page_size of page block_table[b][j / page_size]. An entry has L = cache_seqlens[b] + n_new
 * keys, of which the first leftpad_k[b] are hidden. Neither slots nor table entries past them are read.
 *
 * The work. Query head h = heads_per_kv * (its KV head) + g. The rows of a KV head's query heads are packed:
 * packed row r is row r / heads_per_kv of head g = r % heads_per_kv. A block takes block_m packed rows of a
 * KV head, and one split of the key blocks that those rows see; n_splits = 1 writes o and lse, more write
 * partial results, which the combine puts together:
 *   partial_o   [batch][heads_q][seqlen_q][n_splits][head_dim] f32, normalised within the split
 *   partial_lse [batch][heads_q][seqlen_q][n_splits] f32, natural logarithm
 * A split without a visible key for a row says so by an LSE of -inf, and leaves its part of partial_o as it
 * was. */
#ifndef FA_GPU_KERNELS_PARAMS_CACHE_H
#define FA_GPU_KERNELS_PARAMS_CACHE_H

#include "gpu/kernels/params/attention.h"

/* n / d for 0 <= n < 2^31 is n * multiplier >> shift, in 64 bits. */
typedef struct fa_cache_divisor {
  uint32_t multiplier;
  int shift;
} fa_cache_divisor;

/* Rows and keys of an entry number less than 2^30 (checked by the host); offsets are 64-bit. */
typedef struct fa_cache_params {
  const uint16_t *q, *k, *v; /* f16 or bf16 patterns */
  uint16_t *o;
  float *lse; /* natural logarithm */
  /* batch: of k and v between rows of the cache, or pages; row: of k and v between slots. lse: no head_dim.
   */
  fa_kernel_strides q_stride, k_stride, v_stride, o_stride, lse_stride;
  int batch, seqlen_q, heads_q, heads_kv, heads_per_kv;
  int head_dim;                 /* of all four: a multiple of 8, up to the kernel's */
  int seqlen_k;                 /* keys before the append, where cache_seqlens is NULL */
  int n_new;                    /* keys that were appended before this kernel runs: they count too */
  const int32_t *cache_seqlens; /* [batch], before the append; or NULL */
  const int32_t *cache_batch_idx, *leftpad_k; /* [batch], or NULL */
  const int32_t *block_table;                 /* NULL: not paged */
  int64_t table_stride;                       /* elements from one entry's pages to the next one's */
  int page_size;                              /* >= 1; not looked at where nothing is paged */
  fa_cache_divisor page;                         /* fa_cache_divisor_of(page_size); not paged: {0, 0} */
  int window_left, window_right;              /* bottom-right; -1 = unbounded; causal: -1, 0 */
  float scale;                                /* of the scores; >= 0 here */
  float scale_log2;                           /* scale * log2(e) */
  float score_sign;                           /* 1, or -1 for a negative scale, or 0 (then scale is 1) */
  float softcap;                              /* 0 = off; only the general kernels look at these */
  const float *alibi_slopes;                  /* NULL = off; [batch][heads_q] or [heads_q] */
  int64_t alibi_batch_stride;                 /* 0 for [heads_q] */
  float empty_lse;                            /* LSE of a row that sees no key */
  int aligned;  /* all rows of q, k, v, o begin on 16 bytes; only the general kernels look */
  int n_splits; /* >= 1 */
  float *partial_o, *partial_lse; /* on 32 bytes; NULL with one split */
} fa_cache_params;

/* 1 <= d < 2^31. The quotient is exact: with s = ceil(log2 d), the multiplier exceeds 2^(31+s) / d by less
 * than 1, so n * multiplier exceeds n / d * 2^(31+s) by less than 2^31 <= 2^(31+s) / d. */
static inline fa_cache_divisor fa_cache_divisor_of(int d) {
  fa_cache_divisor r = {0, 31};
  while (r.shift < 62 && ((int64_t)1 << (r.shift - 31)) < d) ++r.shift;
  r.multiplier = (uint32_t)((((uint64_t)1 << r.shift) + (uint64_t)d - 1) / (uint64_t)d);
  return r;
}

#endif
