/* Device entry points of attention over a KV cache and of its combine: all, or the one in FA_ONLY. */
#include "gpu/kernels/cache/combine.cuh"
#include "gpu/kernels/cache/forward.cuh"

#define FA_ENTRY(name, T, D, shape, general)                                                                 \
  extern "C" __global__ void __launch_bounds__(fa::cache_config<fa::T, D, fa::shape, general>::THREADS, 2)      \
      name(const __grid_constant__ fa_cache_params p) {                                                         \
    fa::cache_forward<fa::cache_config<fa::T, D, fa::shape, general>>(p);                                          \
  }
#define FA_ENTRY_COMBINE(name, T)                                                                            \
  extern "C" __global__ void __launch_bounds__(fa::cache_combine_config<fa::T>::THREADS)                        \
      name(const __grid_constant__ fa_cache_params p) {                                                         \
    fa::cache_combine<fa::cache_combine_config<fa::T>>(p);                                                         \
  }
#ifdef FA_ONLY
FA_ONLY
#else
#include "gpu/kernels/cache/forward_list.h"
#endif
