/* Device entry points of the kernels that append to a KV cache: both, or the one in FA_ONLY. */
#include "gpu/kernels/cache/append.cuh"

#define FA_ENTRY(name, T)                                                                                    \
  extern "C" __global__ void __launch_bounds__(FA_CACHE_APPEND_THREADS)                                         \
      name(const __grid_constant__ fa_cache_append_params p) {                                                  \
    fa::cache_append<fa::T>(p);                                                                                 \
  }
#ifdef FA_ONLY
FA_ONLY
#else
#include "gpu/kernels/cache/append_list.h"
#endif
