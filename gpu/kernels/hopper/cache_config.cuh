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
  static constexpr int LOADERS = 2;
  static constexpr bool TURNS = false;
  static constexpr bool SKIPS = false; /* rows of packed heads are few: groups see the same key blocks */
  static constexpr int PRODUCER_REGISTERS = GROUPS_ == 3 ? 32 : 24;
  static constexpr int CONSUMER_REGISTERS = GROUPS_ == 3 ? 160 : 240;
  static_assert(BN_ % 16 == 0 && BN_ <= 32 * 16, "boxes have 16 keys at least, and a lane for each");
};

} // namespace fa

#endif
