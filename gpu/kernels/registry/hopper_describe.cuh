/* What a configuration of a kernel for sm_90a is in its table. */
#ifndef FA_GPU_KERNELS_REGISTRY_HOPPER_DESCRIBE_CUH
#define FA_GPU_KERNELS_REGISTRY_HOPPER_DESCRIBE_CUH

#include "gpu/kernels/registry/flash_forward.h"
#include "gpu/kernels/machine/prim.cuh"

#include <type_traits>

namespace fa {

/* head_dim, least: the largest and the least of a call's larger head dim; the smaller one may be any. */
template <class C>
constexpr fa_kernel hopper_describe(const char *source, const char *name, void (*entry)(const void *),
                                          const char *only, int head_dim, int least) {
  return {name,
          entry,
          {source, only, !C::FLEX},
          {std::is_same<typename C::T, bf16>::value, head_dim, 1, least, 0, C::ALIBI, C::SOFTCAP, C::DROPOUT,
           0, 0, 0},
          C::BM,
          C::BN,
          0,
          C::THREADS,
          C::SHARED_BYTES};
}

inline bool hopper_fits(const fa_kernel &k, const fa_kernel_ability &wanted,
                        const fa_kernel_device *device) {
  return fa_kernel_is_able(&k.ability, &wanted) && k.shared_bytes <= device->max_shared_bytes;
}

} // namespace fa

#endif
