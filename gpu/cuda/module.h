/* The kernels that were compiled ahead of time, inside this program. */
#ifndef FA_GPU_CUDA_MODULE_H
#define FA_GPU_CUDA_MODULE_H

#include "gpu/cuda/driver.h"

/* One compiled source for one architecture. Code for sm_80 runs on every 8.x, for sm_90a on 9.0 alone. */
typedef struct fa_cubin {
  const char *source; /* "flash_forward" */
  const char *arch;   /* "80", "90a" */
  const char *begin, *end;
} fa_cubin;

/* Written by the build; n = 0 where there was no nvcc, and fa_cubins_why_not says why. */
extern const fa_cubin fa_cubins[];
extern const int fa_n_cubins;
extern const char fa_cubins_why_not[];

/* True if code for arch runs on a device of this compute capability. */
bool fa_cubin_fits(const char *arch, int major, int minor);

/* The kernel's function for device, with room for shared_bytes of dynamic shared memory; loaded at the first
 * call and kept. It can be passed to cuLaunchKernel as a CUfunction in any context of the device.
 * FA_ERR_UNSUPPORTED: not in this build, or too much shared memory for the device. */
fa_status fa_cuda_kernel(const fa_cuda_driver *d, const fa_cuda_device *device, const char *name,
                         size_t shared_bytes, CUkernel *out, fa_error *err);

/* Any kernels at all for this device? FA_ERR_UNSUPPORTED says what there is. */
fa_status fa_cuda_kernels_exist(const fa_cuda_device *device, fa_error *err);

/* For tests: forgets what was loaded, and takes kernels from these n instead; NULL: from the build's own. */
void fa_cuda_kernels_replace(const fa_cubin *cubins, int n);

#endif
