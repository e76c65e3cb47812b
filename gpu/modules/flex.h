/* Flex kernels, compiled for a call's expressions at first use: by NVRTC, or read from disk (rtc.h), then
 * kept in memory.
 *
 * The environment's FA_FLEX_COMPILE=quick compiles the portable kernels in half the time, but they run
 * slower: for many expressions that are used once each. best, the default: as fast as possible. */
#ifndef FA_GPU_MODULES_FLEX_H
#define FA_GPU_MODULES_FLEX_H

#include "gpu/driver/libcuda.h"
#include "gpu/expr/unit.h"

/* Number of kernels kept. The least recently used are unloaded first, once the caller's stream has reached
 * its end. A graph with a flex kernel stays valid as long as at most that many other kernels were used
 * since. */
enum { FA_CUDA_FLEX_KEPT = 1024, FA_CUDA_FLEX_WANTED = 16 };

typedef struct fa_cuda_flex_wanted {
  const char *name;               /* of the device entry point */
  const fa_kernel_recipe *recipe; /* its line of the source's list */
  fa_flex_unit unit;              /* source: the recipe's */
  size_t shared_bytes;
  CUkernel kernel; /* out */
} fa_cuda_flex_wanted;

/* Gets all n <= FA_CUDA_FLEX_WANTED kernels of a call; those that must be compiled are compiled in parallel.
 * FA_ERR_INPUT: FA_NVRTC or FA_FLEX_COMPILE is invalid. FA_ERR_UNSUPPORTED: no NVRTC, FA_NVRTC=off, a unit
 * that does not compile, or too much shared memory; a repeated call gives the same answer. */
fa_status fa_cuda_flex_kernels(const fa_cuda_driver *d, const fa_cuda_device *device,
                               fa_cuda_flex_wanted *wanted, int n, CUstream stream, fa_error *err);

/* For tests: forgets what was loaded, without unloading the libraries. */
void fa_cuda_flex_forget(void);

#endif
