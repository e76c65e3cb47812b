/* Attention over a KV cache of 8 or 4 bits, of the fewest rows, in blocks that fill a processor: the lines FA_FILLING of gpu/kernels/registry/cache.def, or
 * the one in FA_ONLY. */
#include "gpu/kernels/cache/forward.cuh"
#include "gpu/kernels/registry/unit.cuh"
#ifndef __CUDACC__
#include "gpu/kernels/cache/describe.h"
#endif

#define FA_CONFIG(T, D, shape, E) fa::cache_config<fa::T, D, fa::shape, false, 1, true, fa::E>

#define FA_ENTRY(name, T, D, shape, E)                                                                       \
  FA_KERNEL(name, fa_cache_params,                                                                           \
            __launch_bounds__(FA_CONFIG(T, D, shape, E)::THREADS, FA_CONFIG(T, D, shape, E)::A_PROCESSOR),   \
            "FA_ENTRY(" FA_TEXT_5(name, T, D, shape, E) ")",                                                 \
            (fa::describe_eight_cache<FA_CONFIG(T, D, shape, E)>()),                                         \
            fa::cache_forward<FA_CONFIG(T, D, shape, E)>)

FA_UNIT_BEGIN(cache, filling)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_FILLING FA_ENTRY
#include "gpu/kernels/registry/cache.def"
#endif
FA_UNIT_END(cache, filling)
