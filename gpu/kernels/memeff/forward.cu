/* The memeff forward kernels: the lines FA_FORWARD and FA_FORWARD_WHOLE of gpu/kernels/registry/memeff.def, or the one
 * in FA_ONLY. */
#include "gpu/kernels/memeff/forward_whole.cuh"
#include "gpu/kernels/registry/unit.cuh"

#ifndef __CUDACC__
namespace fa {
/* head_dim: the largest of both sides. */
template <class C> static constexpr fa_kernel describe_memeff(int head_dim) {
  fa_kernel k = describe_tiles<C>(FA_STEP_FORWARD);
  k.ability.head_dim = head_dim;
  k.block_cols = C::VC;
  return k;
}
} // namespace fa
#endif

#define FA_CONFIG(T, VC) fa::memeff_forward_config<fa::T, VC>
#define FA_ENTRY(name, T, VC)                                                                                \
  FA_KERNEL(name, fa_attention_params, __launch_bounds__(FA_CONFIG(T, VC)::THREADS, 1),                      \
            "FA_ENTRY(" FA_TEXT_3(name, T, VC) ")", (fa::describe_memeff<FA_CONFIG(T, VC)>(INT_MAX)),             \
            fa::memeff_forward<FA_CONFIG(T, VC)>)
#define FA_ENTRY_WHOLE(name, T, D)                                                                           \
  FA_KERNEL(name, fa_attention_params, __launch_bounds__(fa::memeff_whole_config<D>::THREADS, 1),            \
            "FA_ENTRY_WHOLE(" FA_TEXT_3(name, T, D) ")", (fa::describe_memeff<fa::memeff_whole_config<D>>(D)),    \
            fa::memeff_forward_whole<fa::memeff_whole_config<D>>)

FA_UNIT_BEGIN(memeff, forward)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_FORWARD FA_ENTRY
#define FA_FORWARD_WHOLE FA_ENTRY_WHOLE
#include "gpu/kernels/registry/memeff.def"
#endif
FA_UNIT_END(memeff, forward)
