/* What a configuration of a flash kernel can do, for the tables of kernels. */
#ifndef FA_GPU_KERNELS_REGISTRY_FLASH_ABILITY_CUH
#define FA_GPU_KERNELS_REGISTRY_FLASH_ABILITY_CUH

#include "gpu/kernels/registry/flash_forward.h"
#include "gpu/kernels/parts/tile.cuh"

#include <type_traits>

namespace fa {

/* Padding lies within the last 32 columns; of either head dim alone anywhere where load_tile allows it. */
template <class C> static constexpr fa_kernel_ability flash_ability_of(bool p_debug) {
  constexpr bool anywhere = C::MIXED || tile_copy<C::D, C::THREADS>::PARTS == 1;
  return {std::is_same<typename C::T, bf16>::value,
          C::D,
          anywhere ? 1 : C::D - 31,
          C::MIXED ? 1 : C::D - 31,
          !C::ALIGNED,
          C::ALIBI,
          C::SOFTCAP,
          C::DROPOUT,
          p_debug,
          C::BIAS,
          C::LINEAR};
}

} // namespace fa

#endif
