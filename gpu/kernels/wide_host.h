/* The wide kernels compiled for the host executor: what they are launched with, there and on the device. */
#ifndef FA_GPU_KERNELS_WIDE_HOST_H
#define FA_GPU_KERNELS_WIDE_HOST_H

#include "cases/dtype.h"
#include "gpu/kernels/flash_backward_host.h"
#include "gpu/kernels/flash_forward_host.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One block takes block_m rows and block_cols columns of each result. */
typedef struct fa_wide_kernel {
  const char *name; /* of the device entry point */
  void (*entry)(const void *params);
  int block_m, block_cols, n_threads;
  size_t shared_bytes;
} fa_wide_kernel;

typedef struct fa_wide_backward_kernels {
  fa_wide_kernel prepare, keys, queries;
} fa_wide_backward_kernels;

/* The one with the narrowest blocks that hold head_dim_v columns, else the widest; params are
 * fa_flash_params. */
const fa_wide_kernel *fa_wide_forward_find(fa_dtype dtype, int64_t head_dim_v);
/* params are fa_wide_backward_params. */
const fa_wide_backward_kernels *fa_wide_backward_find(fa_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
