/* What a configuration of a flash kernel can do, for its row in the registry. */
#ifndef FA_GPU_KERNELS_FLASH_DESCRIBE_H
#define FA_GPU_KERNELS_FLASH_DESCRIBE_H

#include "gpu/kernels/parts/tile.cuh"
#include "gpu/kernels/registry/row.h"

namespace fa {

/* Padding lies within the last 32 columns; of either head dim alone anywhere where load_tile allows it. */
template <class C> static constexpr fa_kernel describe_flash(fa_kernel_step step) {
  constexpr bool anywhere = C::MIXED || tile_copy<C::D, C::THREADS>::PARTS == 1;
  fa_kernel k = describe_tiles<C>(step);
  k.ability.head_dim = C::D;
  k.ability.narrow = anywhere ? 1 : C::D - 31;
  k.ability.least = C::MIXED ? 1 : C::D - 31;
  k.ability.unaligned = !C::ALIGNED;
  k.ability.alibi = C::ALIBI;
  k.ability.softcap = C::SOFTCAP;
  k.ability.dropout = C::DROPOUT;
  k.ability.bias = C::BIAS;
  k.ability.linear_dropout = C::LINEAR;
  k.ability.chunk = k.ability.mask_bits = C::GENERAL;
  return k;
}

} // namespace fa

#endif
