/* Arguments of the KV cache kernels (attention of a few new queries over a KV cache), filled in by the host
 * and read by the device. Ordinary keys whose work is split are such a cache too: a row for every sequence.
 *
 * The cache. Key j of sequence b is slot j of the cache's row cache_batch_idx[b] (b itself if that is NULL)
 * or, with a page table, slot j % page_size of page block_table[b][j / page_size]. A sequence has L =
 * cache_seqlens[b] + n_new keys, the first leftpad_k[b] of which are masked. Neither slots nor page table
 * entries past them are read. Packed keys (cu_seqlens_k): key j of sequence b is slot cu_seqlens_k[b] + j of the
 * only row, and cache_seqlens, where given, says how many of its keys exist.
 *
 * The work. Query head h = heads_per_kv * (its KV head) + g. The rows of the query heads of one KV head are
 * packed: packed row r is row r / heads_per_kv of head g = r % heads_per_kv. A block works on block_m packed
 * rows of a KV head and one split of the key blocks that those rows see. With n_splits = 1 it writes o and
 * lse; with more it writes partial results, which the combine kernel merges:
 *   partial_o   [batch][heads_q][rows_of_head][n_splits][head_dim_v] f32, normalised within the split
 *   partial_lse [batch][heads_q][rows_of_head][n_splits] f32, natural logarithm
 * where packed queries (cu_seqlens_q) have a batch of 1, and rows_of_head is all their rows.
 * If a row sees no key of a split, that split's LSE is -inf and its part of partial_o is left unwritten. */
#ifndef FA_GPU_KERNELS_PARAMS_CACHE_H
#define FA_GPU_KERNELS_PARAMS_CACHE_H

#include "gpu/kernels/params/attention.h"

/* n / d for 0 <= n < 2^31 is n * multiplier >> shift, in 64 bits. */
typedef struct fa_cache_divisor {
  uint32_t multiplier;
  int shift;
} fa_cache_divisor;

#define FA_CACHE_MIXED_TILE 128 /* columns of a row that mixes types (gpu/fa.h, mixed_rows) that share a descale */

/* Of caches of 8 bits: what is stored times its descale is the value. NULL: 1. */
typedef struct fa_cache_descales {
  const float *k, *v;
  /* Elements from one to the next; of slots: batch, row and head are those of the cache itself, and a row stride of 0 is one
   * for all slots of a page or row; else batch is of sequences, and row nobody's. */
  fa_kernel_strides stride;
  int of_slots;
} fa_cache_descales;

/* Of caches of 4 bits: an e4m3 scale for every 16 columns, where the numbers themselves are. Strides count bytes. */
typedef struct fa_cache_block_scales {
  const uint8_t *k, *v;
  fa_kernel_strides k_stride, v_stride;
} fa_cache_block_scales;
#define FA_CACHE_SCALED 16 /* columns */

/* A sequence has less than 2^30 rows and keys (checked by the host); offsets are 64-bit. */
typedef struct fa_cache_params {
  const uint16_t *q, *k, *v; /* f16 or bf16 patterns; k and v of 8 or 4 bits, or rows of k that mix types (gpu/fa.h,
                                mixed_rows): bytes, which their strides count */
  uint16_t *o;
  float *lse; /* natural logarithm */
  /* batch, of k and v: from one row of the cache, or one page, to the next; row, of k and v: from slot to
   * slot. lse has no head_dim. */
  fa_kernel_strides q_stride, k_stride, v_stride, o_stride, lse_stride;
  int batch, seqlen_q, heads_q, heads_kv, heads_per_kv; /* packed queries: seqlen_q is the longest's */
  const int32_t *cu_seqlens_q; /* [batch + 1]: sequence b has rows cu[b] .. cu[b+1]-1; NULL: not packed */
  const int32_t *cu_seqlens_k; /* the same of keys; only with cu_seqlens_q, and without pages and n_new */
  int64_t rows_of_head;        /* seqlen_q, or all rows of packed queries */
  int head_dim;                               /* of q, k, v and o: a multiple of 8, at most the kernel's;
                                                 for the combine: of o */
  int seqlen_k;                               /* keys before the append if cache_seqlens is NULL */
  int n_new;                                  /* keys appended before this kernel runs; they count too */
  const int32_t *cache_seqlens;               /* [batch], lengths before the append; or NULL */
  const int32_t *cache_batch_idx, *leftpad_k; /* [batch], or NULL */
  const int32_t *block_table;                 /* NULL: not paged */
  int64_t table_stride;                       /* elements from one sequence's pages to the next one's */
  int page_size;                              /* >= 1; not read without pages */
  fa_cache_divisor page;                      /* fa_cache_divisor_of(page_size); {0, 0} without pages */
  int window_left, window_right;              /* around the diagonal; -1 = unbounded; causal: -1, 0 */
  int top_left; /* the diagonal has row i at the i-th key that is not hidden, else the last row at the last key */
  float scale;                                /* of the scores; >= 0 here: score_sign has the sign */
  float scale_log2;                           /* scale * log2(e) */
  float score_sign;                           /* sign of the scale: 1, -1, or 0 (then `scale` is 1) */
  float softcap;                              /* 0 = off; only the general kernels read these */
  const float *alibi_slopes;                  /* NULL = off; [batch][heads_q] or [heads_q] */
  int64_t alibi_batch_stride;                 /* 0 for [heads_q] */
  float empty_lse;                            /* LSE of a fully masked row */
  int aligned;  /* all rows of q, k, v, o begin on 16 bytes; only the general kernels read it */
  int n_splits; /* >= 1 */
  float *partial_o, *partial_lse; /* 32-byte aligned; NULL with one split */
  int chunk; /* a row sees no key before the chunk of its diagonal, counted from the first that is not masked
                by leftpad_k; 0: no chunks */
  const uint8_t *mask_bits; /* NULL, or bits as in fa_attention_params, of keys that leftpad_k does not mask; only
                               the general kernels read them */
  const int32_t *mask_indptr;
  const float *sinks; /* as in fa_attention_params; the combine and the general kernels read them */
  int sinks_in_lse, lse_padded;
  int head_dim_v; /* of v and o: a multiple of 8; only the kernels of large head dims read it, for others it is
                     head_dim */
  const int32_t *topk_indices; /* NULL, or lists of topk keys of each query row: slots, counted through all pages, or
                                  in a sequence without them; below 0, and no key of that sequence: none. Instead of
                                  masks and leftpad_k */
  const int32_t *topk_length;  /* [batch]: of whose lists only so many first entries count; NULL: all */
  int64_t topk_batch_stride;   /* elements from one sequence's first list to the next one's; packed queries: 0 */
  int topk;
  fa_cache_descales descale; /* only the kernels of caches of 8 and 4 bits read it */
  fa_cache_block_scales block_scales; /* only those of 4 */
  fa_kernel_amax amax;                /* only these and the combine read it, and the next one */
  float *partial_p; /* as partial_lse: the split's largest P, within the split; NULL where nobody wants it */
} fa_cache_params;

/* 1 <= d < 2^31. The quotient is exact: with s = ceil(log2 d), the multiplier exceeds 2^(31+s) / d by less
 * than 1, so n * multiplier exceeds n / d * 2^(31+s) by less than 2^31 <= 2^(31+s) / d. */
static inline fa_cache_divisor fa_cache_divisor_of(int d) {
  fa_cache_divisor r = {0, 31};
  while (r.shift < 62 && ((int64_t)1 << (r.shift - 31)) < d) ++r.shift;
  r.multiplier = (uint32_t)((((uint64_t)1 << r.shift) + (uint64_t)d - 1) / (uint64_t)d);
  return r;
}

/* ---- new keys and values, into a cache; and rotated queries ---- */

#define FA_CACHE_APPEND_THREADS 128
#define FA_CACHE_APPEND_MAX_GRID_X 4096

/* The parts: tensors that rows are copied from and to. A block's part is blockIdx.y + first_part. */
enum { FA_CACHE_Q, FA_CACHE_K, FA_CACHE_V, FA_CACHE_PARTS };

/* Grid: x any number of blocks, which share the rows of a sequence; y parts; z sequences. A sequence has less
 * than 2^30 rows; offsets into tensors are 64-bit. */
typedef struct fa_cache_append_params {
  const uint16_t *from[FA_CACHE_PARTS]; /* q, new k, new v; f16 or bf16 patterns, or f32 by elements */
  uint16_t *to[FA_CACHE_PARTS];         /* the copy of q, the K and V caches */
  fa_kernel_strides from_stride[FA_CACHE_PARTS];
  fa_kernel_strides to_stride[FA_CACHE_PARTS]; /* of the caches, batch: between cache rows or pages; row:
                                                  between slots */
  int rows[FA_CACHE_PARTS];                    /* of a sequence: seqlen_q, or the number of new keys */
  const int32_t *cu_seqlens_q;                 /* packed queries: as in fa_cache_params; their copy is packed too */
  int heads[FA_CACHE_PARTS];
  int aligned[FA_CACHE_PARTS]; /* rows begin on 16 bytes on both sides */
  int first_part;
  int head_dim;                    /* a multiple of 8, unless by elements */
  const int32_t *cache_seqlens;    /* [batch]: where a sequence's new keys begin */
  const int32_t *cache_batch_idx;  /* [batch], or NULL: sequence b has row b of the cache */
  const int32_t *block_table;      /* page table [batch][pages of a sequence], or NULL: no pages */
  int64_t block_table_stride;      /* elements of the page table from one sequence to the next */
  int page_size;                   /* slots of a page; read if there is a block_table */
  const uint16_t *cosines, *sines; /* [positions][rotary_dim / 2], of the elements' type */
  int64_t cos_stride, sin_stride;  /* elements from one position to the next */
  int rotary_dim;                  /* 0: no rotation; even */
  int rotary_interleaved; /* a pair is two neighbouring elements; else elements rotary_dim / 2 apart */
  int queries_move;       /* row i of q is i positions after the first row; else all are at the first row's */
  int quantises;             /* to a cache of 8 bits: new keys and values have 16; else they are bytes, as the caches are.
                                Strides count elements on both sides */
  fa_cache_descales descale; /* of sequences; read where it quantises */
} fa_cache_append_params;

/* ---- a cache as ordinary keys ---- */

#define FA_CACHE_GATHER_THREADS 128
#define FA_CACHE_GATHER_MAX_GRID_X 4096
#define FA_CACHE_GATHER_PAST 256 /* rows past a sequence's keys that are set to 0: kernels load whole tiles, of less */

/* What the kernels of ordinary keys need to attend to a cache: how many keys each sequence has, and, where these do not lie as
 * their strides could say (in pages, in rows of another order, beside packed queries), a copy of them, in which key j of
 * sequence b is row b * slots + j. FA_CACHE_GATHER_PAST rows past a sequence's keys are 0, further ones are left as they are.
 * Grid: x any number of blocks, which share the keys of a sequence; y: 0 K, 1 V; z sequences. */
typedef struct fa_cache_gather_params {
  const uint16_t *from[2]; /* the K and V caches */
  uint16_t *to[2];         /* [batch][slots][heads][columns], dense; NULL: nothing is copied */
  fa_kernel_strides from_stride[2]; /* in units of 16 bits, like columns; batch: between cache rows or pages; row: between slots */
  int columns[2];                   /* of K and V: what a head's row takes */
  int aligned[2];                   /* the cache's rows begin on 16 bytes, and are whole multiples of them */
  int heads, slots;                 /* slots: the most keys that a sequence may have */
  int n_new;                        /* keys that were appended before this kernel runs; they count too */
  const int32_t *cache_seqlens;     /* [batch], lengths before the append */
  const int32_t *cache_batch_idx;   /* as in fa_cache_params, like the next three */
  const int32_t *block_table;
  int64_t block_table_stride;
  int page_size;
  int32_t *lengths; /* [batch], written: the keys of each sequence */
  int32_t *first;   /* NULL, or [batch + 1], written: b * slots, as cu_seqlens of the copy */
} fa_cache_gather_params;

#endif
