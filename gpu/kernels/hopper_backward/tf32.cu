/* The f32 backward kernels for sm_90a: the lines FA_TF32_BACKWARD of gpu/kernels/registry/hopper.def, or the one in
 * FA_ONLY. */
#include "gpu/kernels/hopper_backward/tf32.cuh"
#include "gpu/kernels/registry/unit.cuh"

#ifndef __CUDACC__
namespace fa {
/* Two head dims of that one size, in aligned rows; dQ is added in any order. */
template <class C> static constexpr fa_kernel describe_tf32_backward() {
  fa_kernel k = describe_tiles<C>(FA_STEP_BY_KEYS);
  k.ability.head_dim = k.ability.narrow = k.ability.least = C::D;
  k.ability.ordered = 0;
  k.block_cols = C::D;
  return k;
}
} // namespace fa
#endif

#define FA_CONFIG(D, BN, SLOTS) fa::hopper_tf32_backward_config<D, BN, SLOTS>
#define FA_ENTRY(name, D, BN, SLOTS)                                                                         \
  FA_KERNEL(name, fa_memeff_backward_params, __launch_bounds__(FA_CONFIG(D, BN, SLOTS)::THREADS, 1),         \
            "FA_ENTRY(" FA_TEXT_4(name, D, BN, SLOTS) ")",                                                   \
            (fa::describe_tf32_backward<FA_CONFIG(D, BN, SLOTS)>()),                                         \
            fa::hopper_tf32_backward<FA_CONFIG(D, BN, SLOTS)>)

FA_UNIT_BEGIN(hopper_backward, tf32)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_TF32_BACKWARD FA_ENTRY
#include "gpu/kernels/registry/hopper.def"
#endif
FA_UNIT_END(hopper_backward, tf32)
