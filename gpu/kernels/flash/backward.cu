/* Device entry points of the flash backward kernels: all that are compiled ahead of time, of both element
 * types or of one (gpu/kernels/flash/dims_list.h), or those in FA_ONLY. */
#include "gpu/kernels/flash/backward_kernels.cuh"

#define FA_KERNEL(name, ...)                                                                                 \
  extern "C" __global__ void __launch_bounds__(FA_BACKWARD_THREADS)                                    \
      name(const __grid_constant__ fa_backward_params p) {                                             \
    __VA_ARGS__(p);                                                                                          \
  }
#define FA_MAIN(name, ...)                                                                                   \
  extern "C" __global__ void __launch_bounds__(__VA_ARGS__::THREADS, __VA_ARGS__::MIN_BLOCKS)                \
      name(const __grid_constant__ fa_backward_params p) {                                             \
    fa::flash_backward_main<__VA_ARGS__>(p);                                                                 \
  }
#define FA_ENTRY_ROWS(name, T, D) FA_ROW_KERNELS(FA_KERNEL, name, T, D)
#define FA_ENTRY_DBIAS(name, T) FA_DBIAS_KERNELS(FA_KERNEL, name, T)
#ifdef FA_ONLY
#define FA_ENTRY(name, T, D, kind, shape)                                                                    \
  FA_MAIN(name, fa::flash_backward_config<fa::T, D, fa::kind, fa::shape>)
FA_ONLY
#else
/* Devices of compute capability 9.0 and above have enough shared memory for the large tiles. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define FA_MAIN_by_keys_small(name, ...)
#else
#define FA_MAIN_by_keys_small FA_MAIN
#endif
#define FA_MAIN_by_keys FA_MAIN
#define FA_MAIN_by_queries FA_MAIN
#define FA_ENTRY(name, T, D, kind, shape)                                                                    \
  FA_MAIN_##shape(name, fa::flash_backward_config<fa::T, D, fa::kind, fa::shape>)
#include "gpu/kernels/flash/backward_list.h"
#endif
