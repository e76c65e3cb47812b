/* The kernels that compute block lists and are the same for all expressions: the lines FA_LISTS of gpu/kernels/registry/flex.def, or the
 * one in FA_ONLY. */
#include "gpu/kernels/flex/lists.cuh"
#include "gpu/kernels/registry/unit.cuh"

#define FA_MADE(name, step)                                                                                  \
  FA_KERNEL(name, fa_flex_lists_params, __launch_bounds__(FA_FLEX_LISTS_THREADS), "FA_ENTRY(" #name ")",     \
            (fa::describe_step(step, FA_FLEX_LISTS_THREADS)), fa::name)
#define FA_ENTRY(name) FA_MADE(name, )

FA_UNIT_BEGIN(flex, lists)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_LISTS FA_MADE
#include "gpu/kernels/registry/flex.def"
#endif
FA_UNIT_END(flex, lists)
