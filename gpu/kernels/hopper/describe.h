/* What a configuration of a kernel for sm_90a can do, for its row in the registry. */
#ifndef FA_GPU_KERNELS_HOPPER_DESCRIBE_H
#define FA_GPU_KERNELS_HOPPER_DESCRIBE_H

#include "gpu/kernels/registry/row.h"

namespace fa {

/* least: of a call's larger head dim; the smaller one may be any. */
template <class C> static constexpr fa_kernel describe_hopper(fa_kernel_step step, int least) {
  fa_kernel k = describe_tiles<C>(step);
  k.recipe.is_ahead_of_time = !C::FLEX;
  k.ability.flex = C::FLEX;
  k.ability.head_dim = C::D;
  k.ability.narrow = 1;
  k.ability.least = least;
  k.ability.alibi = C::ALIBI;
  k.ability.softcap = C::SOFTCAP;
  k.ability.dropout = C::DROPOUT && !C::LINEAR;
  k.ability.linear_dropout = C::LINEAR;
  k.ability.bias = C::BIAS;
  k.ability.varlen = C::VARLEN;
  k.ability.chunk = 0;
  return k;
}

} // namespace fa

#endif
