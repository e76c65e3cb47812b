/* Calls of gpu/fa.h with expressions or block lists, on the GPU: parts of fa_forward and fa_backward. */
#ifndef FA_GPU_CUDA_LAUNCH_FLEX_H
#define FA_GPU_CUDA_LAUNCH_FLEX_H

#include "gpu/driver/libcuda.h"
#include "gpu/plan/flex.h"

/* a->flex is not NULL, and a has passed fa_forward_check; g, too, its check. FA_HOPPER as in launch_hopper.h.
 */
fa_status fa_cuda_flex_forward(const fa_cuda_driver *d, const fa_cuda_device *device, const fa_attention *a,
                               void *workspace, size_t workspace_bytes, CUstream stream, fa_error *err);
fa_status fa_cuda_flex_backward(const fa_cuda_driver *d, const fa_cuda_device *device, const fa_attention *a,
                                const fa_gradients *g, void *workspace, size_t workspace_bytes,
                                CUstream stream, fa_error *err);

/* True if a kernel for sm_90a does the main work, as far as is known before it is compiled. g NULL: of a
 * forward call. */
bool fa_cuda_flex_is_hopper(const fa_cuda_device *device, const fa_attention *a, const fa_gradients *g);

#endif
