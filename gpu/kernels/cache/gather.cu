/* The kernel that makes ordinary keys of a cache: the line FA_GATHER of gpu/kernels/registry/cache.def, or the one in
 * FA_ONLY. */
#include "gpu/kernels/cache/gather.cuh"
#include "gpu/kernels/registry/unit.cuh"

#define FA_ENTRY(name)                                                                                       \
  FA_KERNEL(name, fa_cache_gather_params, __launch_bounds__(FA_CACHE_GATHER_THREADS),                        \
            "FA_ENTRY(" FA_TEXT_1(name) ")", (fa::describe_step(FA_STEP_GATHER, FA_CACHE_GATHER_THREADS)),   \
            fa::cache_gather)

FA_UNIT_BEGIN(cache, gather)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_GATHER FA_ENTRY
#include "gpu/kernels/registry/cache.def"
#endif
FA_UNIT_END(cache, gather)
