/* The f32 forward kernels for sm_90a: the lines FA_TF32 of gpu/kernels/registry/hopper.def, or the one in FA_ONLY. */
#include "gpu/kernels/hopper/tf32.cuh"
#include "gpu/kernels/registry/unit.cuh"

#ifndef __CUDACC__
namespace fa {
/* Two head dims of that one size, in aligned rows. */
template <class C> static constexpr fa_kernel describe_tf32() {
  fa_kernel k = describe_tiles<C>(FA_STEP_FORWARD);
  k.ability.head_dim = k.ability.narrow = k.ability.least = C::D;
  return k;
}
} // namespace fa
#endif

#define FA_CONFIG(D, STAGES) fa::hopper_tf32_config<D, STAGES>
#define FA_ENTRY(name, D, STAGES)                                                                            \
  FA_KERNEL(name, fa_attention_params, __launch_bounds__(FA_CONFIG(D, STAGES)::THREADS, 1),                  \
            "FA_ENTRY(" FA_TEXT_3(name, D, STAGES) ")", (fa::describe_tf32<FA_CONFIG(D, STAGES)>()),         \
            fa::hopper_tf32_forward<FA_CONFIG(D, STAGES)>)

FA_UNIT_BEGIN(hopper, tf32)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_TF32 FA_ENTRY
#include "gpu/kernels/registry/hopper.def"
#endif
FA_UNIT_END(hopper, tf32)
