/* Flex kernels, compiled for a call's expressions at their first use: by NVRTC, or taken from disk (rtc.h),
 * then kept in memory by what they were compiled for.
 *
 * The environment's FA_FLEX_COMPILE=quick: the portable ones in half the time, and slower; for many
 * expressions that are used once each. best, the default: as fast as can be. */
#ifndef FA_GPU_MODULES_FLEX_H
#define FA_GPU_MODULES_FLEX_H

#include "gpu/driver/libcuda.h"
#include "gpu/expr/unit.h"

/* As many are kept; those used longest ago go first, once the caller's stream has come to its end. A graph
 * that holds a flex kernel is good as long as no more than that many others were used since. */
enum { FA_CUDA_FLEX_KEPT = 1024, FA_CUDA_FLEX_WANTED = 16 };

typedef struct fa_cuda_flex_wanted {
  const char *name;              /* of the device entry point */
  const fa_kernel_recipe *recipe; /* its line of the source's list */
  fa_flex_unit unit;             /* source: the recipe's */
  size_t shared_bytes;
  CUkernel kernel; /* out */
} fa_cuda_flex_wanted;

/* All n <= FA_CUDA_FLEX_WANTED kernels of a call; those that have to be compiled are compiled side by side.
 * FA_ERR_INPUT: FA_NVRTC or FA_FLEX_COMPILE is not understood. FA_ERR_UNSUPPORTED: no NVRTC, FA_NVRTC=off, a
 * unit that does not compile, or too much shared memory; the answer stays the same. */
fa_status fa_cuda_flex_kernels(const fa_cuda_driver *d, const fa_cuda_device *device,
                               fa_cuda_flex_wanted *wanted, int n, CUstream stream, fa_error *err);

/* For tests: forgets what was loaded; the libraries are not unloaded. */
void fa_cuda_flex_forget(void);

#endif
