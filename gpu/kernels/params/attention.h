/* Arguments of the flash kernels, as the host fills them and the device reads them. */
#ifndef FA_GPU_KERNELS_PARAMS_ATTENTION_H
#define FA_GPU_KERNELS_PARAMS_ATTENTION_H

#include "gpu/kernels/params/flex.h"

#include <stdint.h>

/* Strides in elements; the last axis (head_dim) is contiguous. batch is 0 for variable length. */
typedef struct fa_kernel_strides {
  int64_t batch, row, head;
} fa_kernel_strides;

/* Rows and keys of an entry number less than 2^30 (checked by the host), so that int holds them and their
 * sums; offsets into tensors are 64-bit. */
typedef struct fa_attention_params {
  const uint16_t *q, *k, *v; /* f16 or bf16 patterns */
  uint16_t *o;
  float *lse; /* natural logarithm */
  fa_kernel_strides q_stride, k_stride, v_stride, o_stride, lse_stride;
  const int32_t *cu_seqlens_q, *cu_seqlens_k; /* both NULL: fixed length */
  const int32_t *seqused_k, *leftpad_k;       /* NULL: all keys */
  int seqlen_q, seqlen_k;                     /* fixed length; variable: the longest */
  int heads_per_kv;                           /* query heads that share a KV head */
  int window_left, window_right;              /* bottom-right; -1 = unbounded; causal: -1, 0 */
  float scale;                                /* of the scores; >= 0 here */
  float scale_log2;                           /* scale * log2(e) */
  float score_sign;                           /* 1, or -1 for a negative scale, or 0 (then scale is 1) */
  float empty_lse;                            /* LSE of a row that sees no key */
  float softcap;                              /* 0 = off; only the score-mod kernels look at these */
  const float *alibi_slopes;                  /* NULL = off; [batch][heads_q] or [heads_q] */
  int64_t alibi_batch_stride;                 /* 0 for [heads_q] */
  int head_dim;                               /* of q and k: up to the kernel's, a multiple of 8 */
  int heads_q;
  int aligned; /* all rows begin on 16 bytes; only the general kernels look */
  uint64_t dropout_seed, dropout_offset;
  uint32_t dropout_limit; /* random bytes up to this keep; the limit in both halves, 255: all are kept */
  float dropout_scale;    /* 1 / (1 - p) */
  uint16_t *p_debug;      /* NULL, or [batch][heads_q][p_rows][p_keys]: rounded weights, sign = dropped */
  int p_rows, p_keys;     /* lengths up to multiples of 128 */
  /* What the memory-efficient family has beyond the flash one; head_dim_v is set for both. */
  int head_dim_v;               /* of v and o */
  int top_left;                 /* masks begin in the top-left corner: row i is level with key i */
  const void *bias;             /* NULL, or added to the scaled scores; of the elements' type */
  int bias_aligned;             /* its rows begin on 16 bytes, and keys come in eights */
  fa_kernel_strides bias_stride; /* 0: the same for all of that axis; keys are contiguous */
  float dropout_p;              /* the linear scheme keeps where the uniform number is above it */
  int dropout_linear;           /* numbers belong to linear indices and come from ten rounds */
  fa_flex_args flex;            /* only the flex kernels look */
} fa_attention_params;

#endif
