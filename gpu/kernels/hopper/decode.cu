/* Attention of few rows over a KV cache by clusters: the lines FA_DECODE of gpu/kernels/registry/hopper.def, or the one in
 * FA_ONLY. */
#include "gpu/kernels/hopper/decode.cuh"
#include "gpu/kernels/registry/unit.cuh"

#ifndef __CUDACC__
namespace fa {
template <class C> static constexpr fa_kernel describe_decode() {
  fa_kernel k = describe_tiles<C>(FA_STEP_FORWARD);
  k.ability.head_dim = C::D;
  k.ability.packed_rows = C::BM;
  k.ability.chunk = k.ability.sinks = 0;
  k.blocks_per_processor = C::A_PROCESSOR;
  k.cluster = C::MOST_SPLITS;
  k.recipe.any_cluster = 1;
  return k;
}
} // namespace fa
#endif

#define FA_CONFIG(T, D, BLOCKS) fa::hopper_decode_config<fa::T, D, BLOCKS>
#define FA_ENTRY(name, T, D, BLOCKS)                                                                         \
  FA_KERNEL(name, fa_cache_params,                                                                           \
            __launch_bounds__(FA_CONFIG(T, D, BLOCKS)::THREADS, FA_CONFIG(T, D, BLOCKS)::A_PROCESSOR),       \
            "FA_ENTRY(" FA_TEXT_4(name, T, D, BLOCKS) ")", (fa::describe_decode<FA_CONFIG(T, D, BLOCKS)>()), \
            fa::hopper_decode<FA_CONFIG(T, D, BLOCKS)>)

FA_UNIT_BEGIN(hopper, decode)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_DECODE FA_ENTRY
#include "gpu/kernels/registry/hopper.def"
#endif
FA_UNIT_END(hopper, decode)
