/* What a configuration of the memeff backward kernels is launched with, for their rows in the registry. */
#ifndef FA_GPU_KERNELS_MEMEFF_DESCRIBE_H
#define FA_GPU_KERNELS_MEMEFF_DESCRIBE_H

#include "gpu/kernels/memeff/backward.cuh"
#include "gpu/kernels/registry/row.h"

namespace fa {

/* Of keys, queries or dbias, the last of which has all keys of a block in its columns. */
template <class C> static constexpr fa_kernel describe_memeff_backward(fa_kernel_step step) {
  fa_kernel k = describe_type<typename C::T>(step, C::THREADS);
  k.block_m = C::BM;
  k.block_n = C::BN;
  k.block_cols = step == FA_STEP_DBIAS ? C::BN : C::VC;
  k.shared_bytes = step == FA_STEP_KEYS    ? C::KEYS_SHARED_BYTES
                   : step == FA_STEP_QUERIES ? C::QUERIES_SHARED_BYTES
                                             : C::DBIAS_SHARED_BYTES;
  return k;
}

} // namespace fa

#endif
