/* Arguments of the flash and Hopper backward kernels, filled in by the host and read by the device. */
#ifndef FA_GPU_KERNELS_PARAMS_FLASH_BACKWARD_H
#define FA_GPU_KERNELS_PARAMS_FLASH_BACKWARD_H

#include "gpu/kernels/params/attention.h"

/* One struct for all kernels of a call (gpu/kernels/params/flash_backward_grids.h). */
typedef struct fa_backward_params {
  /* As in the forward call, which wrote o and lse; here both are read. The scales below have their sign, and
   * score_sign, scale, scale_log2 and empty_lse of the forward call are not read. */
  fa_attention_params forward;
  const uint16_t *d_o;
  const float *d_lse; /* NULL: none */
  uint16_t *dq, *dk, *dv;
  fa_kernel_strides do_stride, dlse_stride, dq_stride, dk_stride, dv_stride;
  float scale, scale_log2;             /* scale and scale * log2(e), any sign */
  float inverse_softcap, softcap_log2; /* 1 / softcap, softcap * log2(e); 0: no softcap */
  float
      lse_factor; /* what the LSE is multiplied by in lse_log2: log2(e), or 1 for kernels that subtract before
                     they scale */

  /* dS of every pair (row, key), zero where masked. */
  uint16_t *dbias; /* NULL: not wanted here */
  fa_kernel_strides dbias_stride;
  int dbias_aligned; /* as bias_aligned */

  /* Sums of dS over the batch or the heads. dbias is NULL then, and they have its dbias_stride. */
  uint16_t *dbias_sums;                 /* NULL: not wanted here */
  float *dbias_accum;                   /* in the workspace (gpu/kernels/params/flash_backward_grids.h); NULL
                                          without dbias_sums */
  fa_kernel_strides dbias_accum_stride; /* in floats; row: from one tile of 16 rows to the next */
  int64_t dbias_floats;                 /* size of dbias_accum */
  int dbias_strips;                     /* the main kernel left them in strips (flash_backward_grids.h) */
  int grid_order;                       /* FA_GRID_...: of a main kernel for sm_90a with a bias */

  /* Workspace: see gpu/kernels/params/flash_backward_grids.h. */
  float *lse_log2, *delta;    /* lse_log2 is the LSE times lse_factor */
  float *dq_accum;            /* when parallel over keys */
  float *dk_accum, *dv_accum; /* when parallel over queries */
  int64_t rows, keys;         /* of a head in the workspace, padding included */
  int64_t split_stride;       /* floats from one accumulator of a gradient to the next */
  int n_splits;               /* accumulators of each gradient; 1 unless deterministic */
  int deterministic;      /* block x of the main kernel adds into accumulator x; else all blocks add into the
                        first, */
  unsigned *dq_semaphore; /* and if this is not NULL in the order of the semaphores: see
                               gpu/kernels/params/flash_backward_grids.h */
  int heads_by_turns; /* with dq_semaphore: blocks of 2^this KV heads are launched by turns. It divides heads_kv */
} fa_backward_params;

#endif
