/* Arguments of the memeff backward kernels, as the host fills them and the device reads them. In stream order:
 *
 *   prepare   delta = rowsum(dO * O) - dLSE, unless the caller has it; clears dQ where it is added to.
 *             grid (rows of the longest entry / FA_MEMEFF_PREPARE_ROWS, query heads, batch)
 *   single    all of what the next two do, for float32 and head dims up to 128, unless it is to be
 *             deterministic: of 128 keys; adds dQ in memory. grid (key blocks of the longest entry, KV heads,
 *             batch)
 *   keys      dK and dV of 128 keys and 64 columns, all query heads of their group.
 *             grid (key blocks of the longest entry x column blocks, KV heads, batch)
 *   queries   dQ of 128 rows and 64 columns, and the gradient of the bias unless it is summed.
 *             grid (row blocks of the longest entry x column blocks, query heads, batch)
 *   dbias     the gradient of the bias, summed along the axes along which the bias repeats: of 128 rows (or
 *             all) and 64 keys. grid (row blocks, or 1, x key blocks; query heads, or 1; batch, or 1)
 *
 * Nobody but single adds to what another block writes: all other results are the same in every run. */
#ifndef FA_GPU_KERNELS_PARAMS_MEMEFF_BACKWARD_H
#define FA_GPU_KERNELS_PARAMS_MEMEFF_BACKWARD_H

#include "gpu/kernels/params/attention.h"

#define FA_MEMEFF_PREPARE_ROWS 8
#define FA_MEMEFF_SUM_BATCH 1
#define FA_MEMEFF_SUM_HEADS 2
#define FA_MEMEFF_SUM_ROWS 4
#define FA_MEMEFF_BACKWARD_THREADS 256

typedef struct fa_memeff_backward_params {
  fa_attention_params forward; /* o and lse are read; aligned holds for d_o too */
  const void *d_o;
  const float *d_lse; /* NULL: zero */
  float *delta;       /* f32 */
  int makes_delta;    /* by prepare; else it is the caller's */
  int clears_dq;      /* prepare, for the single kernel */
  void *dq, *dk, *dv;
  fa_kernel_strides do_stride, dlse_stride, delta_stride, dq_stride, dk_stride, dv_stride;
  float scale; /* of the scores, with its sign */
  /* dS of every pair, zeros for those that nobody sees, of the elements' type; or sums of it. */
  void *dbias;                   /* NULL: not wanted */
  int batch;                     /* entries */
  int dbias_sums;                /* along which axes: FA_MEMEFF_SUM_... */
  fa_kernel_strides dbias_stride; /* keys are contiguous */
} fa_memeff_backward_params;

#endif
