/* Configuration of the forward kernels for sm_90a over a KV cache: plain forward kernels, whose key blocks come in
 * pieces from pages, and whose rows are those of several query heads of a KV head. */
#ifndef FA_GPU_KERNELS_HOPPER_CACHE_CONFIG_CUH
#define FA_GPU_KERNELS_HOPPER_CACHE_CONFIG_CUH

#include "gpu/kernels/hopper/forward.cuh"
#include "gpu/kernels/params/hopper_cache.h"

namespace fa {

template <class T_, int D_, int GROUPS_, int BN_, bool APART_, int LAZY_>
struct hopper_cache_config : hopper_forward_config<T_, D_, plain, GROUPS_, BN_, APART_, LAZY_> {
  static constexpr bool CACHE = true;
  static constexpr bool SKIPS = false; /* rows of packed heads are few: groups see the same key blocks */
  static constexpr int PRODUCER_REGISTERS = 56; /* it has more to do than one of forward_produce.cuh */
  static constexpr int CONSUMER_REGISTERS = 224;
  static_assert(GROUPS_ == 2, "register shares are given for these");
  static_assert(BN_ % 16 == 0, "a page of 16 slots is the smallest piece");
};

} // namespace fa

#endif
