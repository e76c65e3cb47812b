/* What the sources of the portable flex forward kernels make of their lines in gpu/kernels/registry/flex.def. */
#ifndef FA_GPU_KERNELS_FLEX_FORWARD_UNIT_CUH
#define FA_GPU_KERNELS_FLEX_FORWARD_UNIT_CUH

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

#define FA_CONFIG(T, BN, VC) fa::flex_forward_config_of<fa::T, BN, VC>::type
#define FA_MADE(name, T, BN, VC, text)                                                                       \
  FA_KERNEL(name, fa_attention_params,                                                                       \
            __launch_bounds__(FA_CONFIG(T, BN, VC)::THREADS, FA_CONFIG(T, BN, VC)::BLOCKS), text,            \
            (fa::describe_flex<FA_CONFIG(T, BN, VC)>()), fa::flex_forward<FA_CONFIG(T, BN, VC)>)

#endif
