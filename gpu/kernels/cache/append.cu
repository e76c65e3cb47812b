/* The kernels that append to a cache: the lines FA_APPEND of gpu/kernels/registry/cache.def, or the one
 * in FA_ONLY. */
#include "gpu/kernels/cache/append.cuh"
#include "gpu/kernels/registry/unit.cuh"

#define FA_ENTRY(name, T)                                                                                    \
  FA_KERNEL(name, fa_cache_append_params, __launch_bounds__(FA_CACHE_APPEND_THREADS),                        \
            "FA_ENTRY(" FA_TEXT_2(name, T) ")",                                                              \
            (fa::describe_type<fa::T>(FA_STEP_APPEND, FA_CACHE_APPEND_THREADS)), fa::cache_append<fa::T>)

FA_UNIT_BEGIN(cache, append)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_APPEND FA_ENTRY
#include "gpu/kernels/registry/cache.def"
#endif
FA_UNIT_END(cache, append)
