/* Attention over a KV cache of 8 or 4 bits: the lines FA_EIGHT of gpu/kernels/registry/cache.def, or the one in FA_ONLY. */
#include "gpu/kernels/cache/forward.cuh"
#include "gpu/kernels/registry/unit.cuh"

#define FA_CONFIG(T, D, shape, E) fa::cache_config<fa::T, D, fa::shape, true, 1, true, fa::E>

#ifndef __CUDACC__
namespace fa {
template <class C> static constexpr fa_kernel describe_eight_cache() {
  fa_kernel k = describe_tiles<C>(FA_STEP_FORWARD);
  k.ability.cache_dtype = dtype_of_bytes<typename C::E>();
  k.ability.head_dim = C::D;
  k.ability.packed_rows = C::FEW ? C::BM : 0;
  k.ability.unaligned = k.ability.alibi = k.ability.softcap = k.ability.chunk = 1;
  k.ability.mask_bits = k.ability.sinks = 1;
  k.blocks_per_processor = C::SHARED_BYTES > 75 * 1024 || !C::FEW ? 2 : 3;
  return k;
}
} // namespace fa
#endif

#define FA_ENTRY(name, T, D, shape, E)                                                                       \
  FA_KERNEL(name, fa_cache_params, __launch_bounds__(FA_CONFIG(T, D, shape, E)::THREADS, 2),                 \
            "FA_ENTRY(" FA_TEXT_5(name, T, D, shape, E) ")",                                                 \
            (fa::describe_eight_cache<FA_CONFIG(T, D, shape, E)>()),                                         \
            fa::cache_forward<FA_CONFIG(T, D, shape, E)>)

FA_UNIT_BEGIN(cache, eight)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_EIGHT FA_ENTRY
#include "gpu/kernels/registry/cache.def"
#endif
FA_UNIT_END(cache, eight)
