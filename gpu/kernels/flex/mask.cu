/* The kernel that computes the map of blocks from mask_mod: the line FA_MASK of gpu/kernels/registry/flex.def. For a device it is
 * compiled for the mask_mod of a call, which is defined before this file (gpu/kernels/mods/call.cuh). */
#include "gpu/kernels/flex/lists.cuh"
#include "gpu/kernels/registry/unit.cuh"

#ifndef __CUDACC__
namespace fa {
static constexpr fa_kernel describe_mask(fa_kernel_step step) {
  fa_kernel k = at_run_time(describe_step(step, FA_FLEX_LISTS_THREADS));
  k.ability.flex = 1;
  return k;
}
} // namespace fa
#endif

#define FA_MADE(name, step)                                                                                  \
  FA_KERNEL(name, fa_flex_lists_params, __launch_bounds__(FA_FLEX_LISTS_THREADS), "FA_ENTRY(" #name ")",     \
            (fa::describe_mask(step)), fa::name<fa::flex_mods>)
#define FA_ENTRY(name) FA_MADE(name, )

FA_UNIT_BEGIN(flex, mask)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_MASK FA_MADE
#include "gpu/kernels/registry/flex.def"
#endif
FA_UNIT_END(flex, mask)
