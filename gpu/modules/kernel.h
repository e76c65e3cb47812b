/* Kernels, ready to be launched: those that were compiled ahead of time, inside this program, and those that
 * are compiled when they are wanted. */
#ifndef FA_GPU_MODULES_KERNEL_H
#define FA_GPU_MODULES_KERNEL_H

#include "gpu/driver/libcuda.h"
#include "gpu/kernels/registry/flash_forward.h"

/* One compiled source for one architecture. Code for sm_80 runs on every 8.x, for sm_90a on 9.0 alone. */
typedef struct fa_cubin {
  const char *source; /* "flash/forward" */
  const char *arch;   /* "80", "90a" */
  const char *begin, *end;
} fa_cubin;

/* Written by the build; n = 0 where there was no nvcc, and fa_cubins_why_not says why. */
extern const fa_cubin fa_cubins[];
extern const int fa_n_cubins;
extern const char fa_cubins_why_not[];

/* True if code for arch runs on a device of this compute capability. */
bool fa_cubin_fits(const char *arch, int major, int minor);

/* What kernels are to be chosen for: the device's shared memory, and whether others than those of the list
 * may be tried. FA_ERR_INPUT: FA_NVRTC is not understood. */
fa_status fa_cuda_kernel_device(const fa_cuda_device *device, fa_kernel_device *out, fa_error *err);

/* The kernel's function for device, with room for shared_bytes of dynamic shared memory; loaded or compiled
 * at the first call (rtc.h says when which) and kept. It can be passed to cuLaunchKernel as a CUfunction in
 * any context of the device. FA_ERR_UNSUPPORTED: not in this build and not to be compiled either, or too much
 * shared memory for the device; the answer stays the same. */
fa_status fa_cuda_kernel(const fa_cuda_driver *d, const fa_cuda_device *device, const char *name,
                         const fa_kernel_recipe *recipe, size_t shared_bytes, CUkernel *out, fa_error *err);

/* Any kernels at all for this device? FA_ERR_UNSUPPORTED says what there is. */
fa_status fa_cuda_kernels_exist(const fa_cuda_device *device, fa_error *err);

/* Where kernels come from, in one line; the first kernel that could not be compiled, and why, stands there
 * too.
 */
void fa_cuda_kernels_describe(const fa_cuda_device *device, char *text, size_t size);

/* For tests: forgets what was loaded, and takes kernels from these n instead; NULL: from the build's own. */
void fa_cuda_kernels_replace(const fa_cubin *cubins, int n);

#endif
