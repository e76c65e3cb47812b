/* The memeff kernels compiled for the host executor: what they are launched with, there and on the device. */
#ifndef FA_GPU_KERNELS_REGISTRY_MEMEFF_H
#define FA_GPU_KERNELS_REGISTRY_MEMEFF_H

#include "cases/base/dtype.h"
#include "gpu/kernels/registry/flash_backward.h"
#include "gpu/kernels/registry/flash_forward.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One block takes block_m rows and block_cols columns of each result. */
typedef struct fa_memeff_kernel {
  fa_kernel_entry entry; /* params are fa_memeff_backward_params */
  int block_m, block_cols, n_threads;
  size_t shared_bytes;
} fa_memeff_kernel;

/* dbias: block_m rows and block_cols keys. */
typedef struct fa_memeff_backward_kernels {
  fa_memeff_kernel prepare, keys, queries, dbias;
} fa_memeff_backward_kernels;

/* The one that keeps whole rows, if head dims and device allow that (NULL: any device); else that with the
 * narrowest blocks that hold head_dim_v columns, or the widest. params are fa_attention_params. Its ability says
 * nothing: the type and the head dims apart, all can do the same. */
const fa_kernel *fa_memeff_forward_find(fa_dtype dtype, int64_t head_dim, int64_t head_dim_v,
                                            const fa_kernel_device *device);
const fa_memeff_backward_kernels *fa_memeff_backward_find(fa_dtype dtype);
/* The one that does the work of `keys` and `queries` in one pass, and adds to dQ in any order; block_m keys,
 * and the head dims up to block_cols. widest: the larger head dim. NULL: there is none. */
const fa_memeff_kernel *fa_memeff_single_find(fa_dtype dtype, int64_t widest);

/* Names of all kernels, in no particular order; NULL past the last. */
const char *fa_memeff_name(int i);

#ifdef __cplusplus
}
#endif

#endif
