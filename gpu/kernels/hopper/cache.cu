/* The forward kernels for sm_90a over a KV cache: the lines FA_CACHE of gpu/kernels/registry/hopper.def, or the one in
 * FA_ONLY. */
#include "gpu/kernels/hopper/cache.cuh"
#include "gpu/kernels/registry/unit.cuh"

#ifndef __CUDACC__
#include "gpu/kernels/hopper/describe.h"
#endif

#define FA_ENTRY(name, ...)                                                                                  \
  FA_KERNEL(name, fa_hopper_cache_params, __launch_bounds__(fa::hopper_cache_config<__VA_ARGS__>::THREADS, 1), \
            "FA_ENTRY(" #name "," #__VA_ARGS__ ")",                                                          \
            (fa::describe_hopper<fa::hopper_cache_config<__VA_ARGS__>>(FA_STEP_FORWARD, 1)),                      \
            fa::hopper_cache_forward<fa::hopper_cache_config<__VA_ARGS__>>)

FA_UNIT_BEGIN(hopper, cache)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_CACHE FA_ENTRY
#include "gpu/kernels/registry/hopper.def"
#endif
FA_UNIT_END(hopper, cache)
