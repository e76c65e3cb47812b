/* The portable flex forward kernels: the lines FA_FORWARD of gpu/kernels/registry/flex.def, or the one
 * in FA_ONLY. For a device they are compiled for the expressions of a call, which are defined before this
 * file (gpu/kernels/mods/call.cuh). */
#include "gpu/kernels/flex/forward.cuh"
#include "gpu/kernels/registry/unit.cuh"

#ifndef __CUDACC__
namespace fa {
template <class C> static constexpr fa_kernel describe_flex() {
  fa_kernel k = at_run_time(describe_tiles<C>(FA_STEP_FORWARD));
  k.ability.flex = 1;
  k.block_cols = C::VC;
  return k;
}
} // namespace fa
#endif

#define FA_CONFIG(T, VC) fa::flex_forward_config_of<fa::T, VC>::type
#define FA_ENTRY(name, T, VC)                                                                                \
  FA_KERNEL(name, fa_attention_params, __launch_bounds__(FA_CONFIG(T, VC)::THREADS, FA_CONFIG(T, VC)::BLOCKS), \
            "FA_ENTRY(" FA_TEXT_3(name, T, VC) ")", (fa::describe_flex<FA_CONFIG(T, VC)>()),                      \
            fa::flex_forward<FA_CONFIG(T, VC)>)

FA_UNIT_BEGIN(flex, forward)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_FORWARD FA_ENTRY
#include "gpu/kernels/registry/flex.def"
#endif
FA_UNIT_END(flex, forward)
