/* Arguments of the memeff backward kernels, filled in by the host and read by the device. In stream order:
 *
 *   prepare   delta = rowsum(dO * O) - dLSE, unless the caller has it; clears dQ if single adds to it, and rows of
 *             dbias that no sequence has.
 *             grid (rows of the longest sequence / FA_MEMEFF_PREPARE_ROWS, query heads, batch)
 *   single    does all that keys and queries do, for float32, head dims up to 128 and calls that need not be
 *             deterministic; a block has 128 keys and adds dQ in memory.
 *             grid (key blocks of the longest sequence, KV heads, batch)
 *   keys      dK and dV of 128 keys and 64 columns, all query heads of their group.
 *             grid (key blocks of the longest sequence x column blocks, KV heads, batch)
 *   queries   dQ of 128 rows and 64 columns, and the gradient of the bias unless it is summed.
 *             grid (row blocks of the longest sequence x column blocks, query heads, batch)
 *   dbias     the gradient of the bias, summed over the axes along which the bias is broadcast: of 128 rows
 *             (or all) and 64 keys. grid (row blocks, or 1, x key blocks; query heads, or 1; batch, or 1)
 *   dsinks    the gradient of the sinks. grid (query heads)
 *
 * Only single adds to what other blocks write: all other results are the same in every run. */
#ifndef FA_GPU_KERNELS_PARAMS_MEMEFF_BACKWARD_H
#define FA_GPU_KERNELS_PARAMS_MEMEFF_BACKWARD_H

#include "gpu/kernels/params/attention.h"

#define FA_MEMEFF_PREPARE_ROWS 8
#define FA_MEMEFF_SUM_BATCH 1
#define FA_MEMEFF_SUM_HEADS 2
#define FA_MEMEFF_SUM_ROWS 4
#define FA_MEMEFF_BACKWARD_THREADS 256

typedef struct fa_memeff_backward_params {
  fa_attention_params forward; /* o and lse are read; aligned covers d_o too */
  const void *d_o;
  const float *d_lse; /* NULL: zero */
  float *delta;       /* f32 */
  int makes_delta;    /* prepare writes it; else it is the caller's */
  int clears_dq;      /* prepare clears dq, for the single kernel */
  int clears_dbias;   /* and the rows of dbias that a packed sequence does not have */
  void *dq, *dk, *dv;
  fa_kernel_strides do_stride, dlse_stride, delta_stride, dq_stride, dk_stride, dv_stride;
  float scale; /* of the scores, with its sign */
  /* dS of every pair (row, key), zero where masked, of the elements' type; or sums of it. */
  void *dbias;                    /* NULL: not wanted */
  int batch;                      /* number of sequences */
  int dbias_sums;                 /* the axes summed over: FA_MEMEFF_SUM_... */
  fa_kernel_strides dbias_stride; /* keys are contiguous */
  float *dsinks;                  /* [heads_q]; NULL: not wanted */
  int delta_block; /* packed queries: every sequence begins in delta at a multiple of so many rows, as in the workspace
                      of the flash kernels; 0: delta is as packed as the queries are. Only dsinks reads it */
} fa_memeff_backward_params;

#endif
