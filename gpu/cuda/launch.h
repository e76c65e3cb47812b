/* What calls of gpu/fa.h share on the GPU. */
#ifndef FA_GPU_CUDA_LAUNCH_H
#define FA_GPU_CUDA_LAUNCH_H

#include "gpu/driver/libcuda.h"
#include "gpu/fa.h"

/* A copy in host memory of n numbers on the device, once the stream has come to its end, malloc'd: the
 * caller frees it. *out stays as it is where from is NULL or n 0. name: for the message. */
fa_status fa_cuda_read_back(const fa_cuda_driver *d, const char *name, const int32_t *from, int64_t n,
                            CUstream stream, int32_t **out, fa_error *err);

/* FA_ERR_INPUT: too small, missing or badly aligned. who: the function that says how much is needed. */
fa_status fa_cuda_workspace_check(size_t needed, const char *who, const void *workspace, size_t bytes,
                                  fa_error *err);

/* params: the one argument that every kernel takes, by value. */
fa_status fa_cuda_launch(const fa_cuda_driver *d, CUkernel kernel, const char *name, size_t shared_bytes,
                         const unsigned grid[3], unsigned n_threads, const void *params, CUstream stream,
                         fa_error *err);

/* The same of a kernel that itself waits for those before it in the stream (wait_for_kernels_before), so that
 * it may be under way while the last of them is not yet done. Compute capability 9.0 and later. */
fa_status fa_cuda_launch_overlapping(const fa_cuda_driver *d, CUkernel kernel, const char *name,
                                     size_t shared_bytes, const unsigned grid[3], unsigned n_threads,
                                     const void *params, CUstream stream, fa_error *err);

#endif
