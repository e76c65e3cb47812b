/* What a configuration of a kernel over a cache of 8 or 4 bits can do, for its row in the registry. */
#ifndef FA_GPU_KERNELS_CACHE_DESCRIBE_H
#define FA_GPU_KERNELS_CACHE_DESCRIBE_H

#include "gpu/kernels/registry/row.h"

namespace fa {

template <class C> static constexpr fa_kernel describe_eight_cache() {
  fa_kernel k = describe_tiles<C>(FA_STEP_FORWARD);
  k.ability.cache_dtype = dtype_of_bytes<typename C::E>();
  k.ability.head_dim = C::D;
  k.ability.packed_rows = C::FEW ? C::BM : 0;
  k.ability.unaligned = k.ability.alibi = k.ability.softcap = k.ability.chunk = C::GENERAL;
  k.ability.mask_bits = k.ability.sinks = C::GENERAL;
  k.blocks_per_processor = C::FEWEST ? C::A_PROCESSOR : C::SHARED_BYTES > 75 * 1024 || !C::FEW ? 2 : 3;
  return k;
}
} // namespace fa

#endif
