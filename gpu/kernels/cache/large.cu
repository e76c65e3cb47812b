/* Attention over a KV cache with large head dims: the lines FA_LARGE and FA_MIXED of gpu/kernels/registry/cache.def, or the
 * one in FA_ONLY. */
#include "gpu/kernels/cache/large.cuh"
#include "gpu/kernels/registry/unit.cuh"

#ifndef __CUDACC__
namespace fa {
template <class C> static constexpr fa_kernel describe_large() {
  fa_kernel k = describe_tiles<C>(FA_STEP_FORWARD);
  k.ability.head_dim = C::D;
  k.ability.large = 1;
  k.ability.v_in_k = C::V_IN_K;
  k.ability.cache_dtype = C::MIXED ? FA_E4M3 : 0;
  k.ability.packed_rows = C::FEW ? C::BM : 0;
  k.ability.unaligned = k.ability.alibi = k.ability.softcap = k.ability.chunk = 1;
  k.ability.mask_bits = k.ability.sinks = 1;
  k.blocks_per_processor = C::FEW ? 2 : 1;
  return k;
}
} // namespace fa
#endif

#define FA_CONFIG(T, shape, v_in_k) fa::cache_large_config<fa::T, fa::shape, v_in_k>
#define FA_ENTRY(name, T, shape, v_in_k)                                                                     \
  FA_KERNEL(name, fa_cache_params,                                                                           \
            __launch_bounds__(FA_CONFIG(T, shape, v_in_k)::THREADS, FA_CONFIG(T, shape, v_in_k)::FEW ? 2 : 1), \
            "FA_ENTRY(" FA_TEXT_4(name, T, shape, v_in_k) ")",                                               \
            (fa::describe_large<FA_CONFIG(T, shape, v_in_k)>()), fa::cache_large<FA_CONFIG(T, shape, v_in_k)>)

#define FA_MIXED_CONFIG(T, shape) fa::cache_large_config<fa::T, fa::shape, true, uint8_t>
#define FA_ENTRY_MIXED(name, T, shape)                                                                       \
  FA_KERNEL(name, fa_cache_params,                                                                           \
            __launch_bounds__(FA_MIXED_CONFIG(T, shape)::THREADS, FA_MIXED_CONFIG(T, shape)::FEW ? 2 : 1),   \
            "FA_ENTRY_MIXED(" FA_TEXT_3(name, T, shape) ")",                                                 \
            (fa::describe_large<FA_MIXED_CONFIG(T, shape)>()), fa::cache_large<FA_MIXED_CONFIG(T, shape)>)

FA_UNIT_BEGIN(cache, large)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_LARGE FA_ENTRY
#define FA_MIXED FA_ENTRY_MIXED
#include "gpu/kernels/registry/cache.def"
#endif
FA_UNIT_END(cache, large)
