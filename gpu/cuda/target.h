/* What kernels are chosen for on a device.
 *
 * FA_HOPPER=auto, the default: what the kernels for sm_90a can do, they do, on a device of compute capability
 * 9.0. off: the kernels for every device do everything. */
#ifndef FA_GPU_CUDA_TARGET_H
#define FA_GPU_CUDA_TARGET_H

#include "gpu/driver/libcuda.h"
#include "gpu/kernels/registry/kernel.h"

/* *off: no kernels for sm_90a. FA_ERR_INPUT: FA_HOPPER is not understood. */
fa_status fa_cuda_hopper_policy(bool *off, fa_error *err);
/* FA_ERR_INPUT: nor is it, or FA_NVRTC. */
fa_status fa_cuda_target(const fa_cuda_device *device, fa_kernel_device *out, fa_error *err);

#endif
