/* Arguments of the forward kernels of every family, filled in by the host and read by the device. */
#ifndef FA_GPU_KERNELS_PARAMS_ATTENTION_H
#define FA_GPU_KERNELS_PARAMS_ATTENTION_H

#include "gpu/kernels/params/flex.h"

#include <stdint.h>

/* Strides in elements; the last axis (head_dim) is contiguous. batch is 0 for variable length, but in padded
 * statistics (lse_padded). */
typedef struct fa_kernel_strides {
  int64_t batch, row, head;
} fa_kernel_strides;

/* Of operands of 8 bits, one for each sequence and KV head; NULL: 1. */
typedef struct fa_kernel_descales {
  const float *q, *k, *v;
  int64_t batch, head; /* elements from one sequence's, and one head's, to the next */
} fa_kernel_descales;

/* Where the largest P and the largest |O| of a call go, one number each; NULL: nobody wants them. The kernels of a call raise
 * them, which another has set to 0 before. */
typedef struct fa_kernel_amax {
  float *p, *o;
} fa_kernel_amax;
#define FA_AMAX_THREADS 32 /* of the one block that sets them to 0, and takes nothing else */

/* A sequence has less than 2^30 rows and keys (checked by the host), so that int holds them and their sums.
 * Offsets into tensors are 64-bit. */
typedef struct fa_attention_params {
  const uint16_t *q, *k, *v; /* f16 or bf16 patterns; in the kernels for e4m3 two of these in each */
  uint16_t *o;
  float *lse; /* natural logarithm */
  fa_kernel_strides q_stride, k_stride, v_stride, o_stride, lse_stride;
  const int32_t *cu_seqlens_q, *cu_seqlens_k; /* both NULL: fixed length */
  const int32_t *seqused_k, *leftpad_k;       /* NULL: all keys */
  int seqlen_q, seqlen_k;                     /* fixed length; variable length: the longest sequence's */
  int heads_per_kv;                           /* query heads that share a KV head */
  int window_left, window_right;              /* bottom-right; -1 = unbounded; causal: -1, 0 */
  float scale;                                /* of the scores; >= 0 here: score_sign has the sign */
  float scale_log2;                           /* scale * log2(e) */
  float score_sign;                           /* sign of the scale: 1, -1, or 0 (then `scale` is 1) */
  float empty_lse;                            /* LSE of a fully masked row */
  float softcap;                              /* 0 = off; only kernels with score modifications read these */
  const float *alibi_slopes;                  /* NULL = off; [batch][heads_q] or [heads_q] */
  int64_t alibi_batch_stride;                 /* 0 for [heads_q] */
  int head_dim;                               /* of q and k: a multiple of 8, at most the kernel's */
  int heads_q;
  int aligned; /* all rows begin on 16 bytes; only the general kernels read it */
  uint64_t dropout_seed, dropout_offset;
  uint32_t dropout_limit; /* a random byte up to this keeps; repeated in both halves; 255: no dropout */
  float dropout_scale;    /* 1 / (1 - p) */
  uint16_t *p_debug;      /* NULL, or [batch][heads_q][p_rows][p_keys]: rounded P, sign set = dropped */
  int p_rows, p_keys;     /* lengths rounded up to multiples of 128 */
  /* Beyond the flash family, for the memeff kernels; head_dim_v is set for both families. */
  int head_dim_v;                /* of v and o */
  int top_left;                  /* masks are aligned top-left: the diagonal has row i at key i */
  const void *bias;              /* NULL, or added to the scaled scores; of the elements' type */
  int bias_aligned;              /* its rows begin on 16 bytes, and the number of keys is a multiple of 8 */
  fa_kernel_strides bias_stride; /* 0: broadcast along that axis; keys are contiguous */
  float dropout_p;               /* linear dropout keeps an element whose uniform number is above it */
  int dropout_linear;            /* linear dropout: a number per linear index, ten Philox rounds */
  fa_flex_args flex;             /* only the flex kernels read it */
  int chunk;                     /* a row sees no key before the chunk of its diagonal; 0: no chunks */
  const uint8_t *mask_bits;      /* NULL, or a bit for every pair, which only the general kernels read: the bits of
                                    sequence b begin at byte mask_indptr[b], row by row, least significant first */
  const int32_t *mask_indptr;
  const float *sinks; /* NULL, or [heads_q]: a logit in the denominator of a head's rows */
  int sinks_in_lse;   /* the LSE counts it; 1 without sinks */
  int lse_padded;     /* packed queries: LSE, dLSE and delta have rows [batch, heads_q, seqlen_q] all the same */
  /* NULL, or where dropout's seed is when the kernel runs, in dropout_seed's place; and the same of an offset, to
   * which dropout_offset is added. Both or neither. */
  const uint64_t *dropout_seed_at, *dropout_offset_at;
  fa_kernel_descales descale; /* only the kernels for e4m3 read it */
  uint64_t *dropout_used; /* NULL, or [2]: forward kernels with dropout write the seed and the offset that they had */
} fa_attention_params;

#endif
