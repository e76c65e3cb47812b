#include "gpu/kernels/flash_forward_host.h"

#include "gpu/kernels/flash_forward.cuh"

#include <type_traits>

#define FA_ENTRY(name, T, D, ALIGNED, SCORE_MOD)                                                             \
  static void name(const void *params) {                                                                     \
    fa::flash_forward<fa::flash_forward_config<fa::T, D, ALIGNED, SCORE_MOD>>(                               \
        *static_cast<const fa_flash_params *>(params));                                                      \
  }
#include "gpu/kernels/flash_forward_list.h"

template <class C> static constexpr fa_flash_kernel describe(const char *name, void (*entry)(const void *)) {
  return {name,           entry,      std::is_same<typename C::T, fa::bf16>::value,
          C::D,           C::ALIGNED, C::SCORE_MOD,
          C::BM,          C::BN,      C::THREADS,
          C::SHARED_BYTES};
}

#define FA_ENTRY(name, T, D, ALIGNED, SCORE_MOD)                                                             \
  describe<fa::flash_forward_config<fa::T, D, ALIGNED, SCORE_MOD>>(#name, name),
static const fa_flash_kernel kernels[] = {
#include "gpu/kernels/flash_forward_list.h"
};

const fa_flash_kernel *fa_flash_forward_find(int bf16, int head_dim, int aligned, int score_mod) {
  for (const fa_flash_kernel &k : kernels)
    if (k.bf16 == bf16 && k.head_dim == head_dim && k.aligned == aligned && k.score_mod == score_mod)
      return &k;
  return nullptr;
}
