/* An entry of the kernels over a cache of 8 or 4 bits, as their three sources have it. FA_GENERAL: whether theirs have the general
 * features. */
#ifndef FA_GPU_KERNELS_CACHE_EIGHT_ENTRY_CUH
#define FA_GPU_KERNELS_CACHE_EIGHT_ENTRY_CUH

#include "gpu/kernels/cache/forward.cuh"
#include "gpu/kernels/registry/unit.cuh"
#ifndef __CUDACC__
#include "gpu/kernels/cache/describe.h"
#endif

#define FA_CONFIG(T, D, shape, E) fa::cache_config<fa::T, D, fa::shape, FA_GENERAL, 1, true, fa::E>

#define FA_ENTRY(name, T, D, shape, E)                                                                       \
  FA_KERNEL(name, fa_cache_params,                                                                           \
            __launch_bounds__(FA_CONFIG(T, D, shape, E)::THREADS, FA_CONFIG(T, D, shape, E)::A_PROCESSOR),   \
            "FA_ENTRY(" FA_TEXT_5(name, T, D, shape, E) ")",                                                 \
            (fa::describe_eight_cache<FA_CONFIG(T, D, shape, E)>()),                                         \
            fa::cache_forward<FA_CONFIG(T, D, shape, E)>)

#endif
