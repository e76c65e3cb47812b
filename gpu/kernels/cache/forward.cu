/* Attention over a KV cache: the lines FA_FORWARD, FA_COMBINE and FA_AMAX of gpu/kernels/registry/cache.def, or the one in
 * FA_ONLY. */
#include "gpu/kernels/cache/combine.cuh"
#include "gpu/kernels/cache/forward.cuh"
#include "gpu/kernels/registry/unit.cuh"

#ifndef __CUDACC__
namespace fa {
template <class C> static constexpr fa_kernel describe_cache() {
  fa_kernel k = describe_tiles<C>(FA_STEP_FORWARD);
  k.ability.head_dim = C::D;
  k.ability.packed_rows = C::FEW ? C::BM : 0;
  k.ability.unaligned = k.ability.alibi = k.ability.softcap = k.ability.chunk = C::GENERAL;
  k.ability.mask_bits = k.ability.sinks = C::GENERAL;
  k.blocks_per_processor = C::SHARED_BYTES > 75 * 1024 ? 2 : 3;
  return k;
}
template <class C> static constexpr fa_kernel describe_combine() {
  fa_kernel k = describe_type<typename C::T>(FA_STEP_COMBINE, C::THREADS);
  k.ability.head_dim = 256;
  k.ability.unaligned = k.ability.alibi = k.ability.softcap = 1;
  k.block_m = 1;
  k.shared_bytes = C::SHARED_BYTES;
  k.blocks_per_processor = 8;
  return k;
}
} // namespace fa
#endif

#define FA_CONFIG(T, D, shape, general) fa::cache_config<fa::T, D, fa::shape, general>
#define FA_ENTRY(name, T, D, shape, general)                                                                 \
  FA_KERNEL(name, fa_cache_params, __launch_bounds__(FA_CONFIG(T, D, shape, general)::THREADS, 2),           \
            "FA_ENTRY(" FA_TEXT_5(name, T, D, shape, general) ")",                                           \
            (fa::describe_cache<FA_CONFIG(T, D, shape, general)>()),                                              \
            fa::cache_forward<FA_CONFIG(T, D, shape, general)>)
#define FA_ENTRY_COMBINE(name, T)                                                                            \
  FA_KERNEL(name, fa_cache_params, __launch_bounds__(fa::cache_combine_config<fa::T>::THREADS),              \
            "FA_ENTRY_COMBINE(" FA_TEXT_2(name, T) ")", (fa::describe_combine<fa::cache_combine_config<fa::T>>()), \
            fa::cache_combine<fa::cache_combine_config<fa::T>>)
#define FA_ENTRY_AMAX(name)                                                                                  \
  FA_KERNEL(name, fa_kernel_amax, __launch_bounds__(FA_AMAX_THREADS), "FA_ENTRY_AMAX(" #name ")",            \
            fa::describe_step(FA_STEP_CLEAR, FA_AMAX_THREADS), fa::clear_amax)

FA_UNIT_BEGIN(cache, forward)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_FORWARD FA_ENTRY
#define FA_COMBINE FA_ENTRY_COMBINE
#define FA_AMAX FA_ENTRY_AMAX
#include "gpu/kernels/registry/cache.def"
#endif
FA_UNIT_END(cache, forward)
