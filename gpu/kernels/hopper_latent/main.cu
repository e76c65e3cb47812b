/* Multi-head latent attention over a KV cache for sm_90a: the lines FA_LATENT of gpu/kernels/registry/hopper.def, or the
 * one in FA_ONLY. */
#include "gpu/kernels/hopper_latent/main.cuh"
#include "gpu/kernels/registry/unit.cuh"

#ifndef __CUDACC__
namespace fa {
template <class C> static constexpr fa_kernel describe_latent() {
  fa_kernel k = describe_tiles<C>(FA_STEP_FORWARD);
  k.ability.head_dim = k.ability.least = C::D;
  k.ability.large = k.ability.v_in_k = 1;
  k.ability.chunk = 0;
  k.blocks_per_processor = 1;
  k.cluster = C::RANKS;
  k.ability.pairs = C::RANKS == 2;
  return k;
}
} // namespace fa
#endif

#define FA_CONFIG(T, ranks) fa::latent_config<fa::T, ranks>
#define FA_CLUSTER_1
#define FA_CLUSTER_2 __cluster_dims__(2, 1, 1)
#define FA_ENTRY(name, T, ranks)                                                                             \
  FA_KERNEL(name, fa_hopper_latent_params, FA_CLUSTER_##ranks __launch_bounds__(FA_CONFIG(T, ranks)::THREADS, 1), \
            "FA_ENTRY(" FA_TEXT_3(name, T, ranks) ")", (fa::describe_latent<FA_CONFIG(T, ranks)>()),         \
            fa::hopper_latent<FA_CONFIG(T, ranks)>)

FA_UNIT_BEGIN(hopper_latent, main)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_LATENT FA_ENTRY
#include "gpu/kernels/registry/hopper.def"
#endif
FA_UNIT_END(hopper_latent, main)
