/* Arguments of the flash backward kernels, as the host fills them and the device reads them. */
#ifndef FA_GPU_KERNELS_PARAMS_FLASH_BACKWARD_H
#define FA_GPU_KERNELS_PARAMS_FLASH_BACKWARD_H

#include "gpu/kernels/params/attention.h"

/* One struct for all kernels of a call (gpu/kernels/params/flash_backward_grids.h). */
typedef struct fa_backward_params {
  /* As in the forward call, which wrote o and lse; here they are read. The scales come below, with their
   * sign: score_sign, scale, scale_log2 and empty_lse are not looked at. */
  fa_attention_params forward;
  const uint16_t *d_o;
  const float *d_lse; /* NULL: none */
  uint16_t *dq, *dk, *dv;
  fa_kernel_strides do_stride, dlse_stride, dq_stride, dk_stride, dv_stride;
  float scale, scale_log2;             /* scale and scale * log2(e), any sign */
  float inverse_softcap, softcap_log2; /* 1 / softcap, softcap * log2(e); 0: no softcap */
  float
      lse_factor; /* of what stands at lse_log2: log2(e), or 1 for kernels that subtract before they scale */

  /* dS of every pair, zeros for those that nobody sees. */
  uint16_t *dbias; /* NULL: not wanted here */
  fa_kernel_strides dbias_stride;
  int dbias_aligned; /* as bias_aligned */

  /* Sums of dS along the batch or the heads; with dbias_stride, as dbias is NULL then. */
  uint16_t *dbias_sums;                /* NULL: not wanted here */
  float *dbias_accum;                  /* in the workspace (gpu/kernels/params/flash_backward_grids.h); NULL without dbias_sums */
  fa_kernel_strides dbias_accum_stride; /* in floats; row: of tiles of 16 rows */
  int64_t dbias_floats;                /* of all of it */

  /* Workspace: see gpu/kernels/params/flash_backward_grids.h. */
  float *lse_log2, *delta;    /* the first times lse_factor */
  float *dq_accum;            /* by keys */
  float *dk_accum, *dv_accum; /* by queries */
  int64_t rows, keys;         /* of a head in the workspace, padding included */
  int64_t split_stride;       /* floats from one accumulator of a gradient to the next */
  int n_splits;               /* number of accumulators of each; 1 unless deterministic */
  int deterministic; /* block x of the main kernel adds into accumulator x, else all into the first; */
  unsigned *dq_semaphore;   /* or, unless NULL, all into the first in dq_semaphore: see gpu/kernels/params/flash_backward_grids.h */
} fa_backward_params;

#endif
