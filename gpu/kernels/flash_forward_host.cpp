#include "gpu/kernels/flash_forward_host.h"

#include "gpu/kernels/flash_forward.cuh"

#include <type_traits>

#define FA_ENTRY(name, T, D, kind)                                                                           \
  static void name(const void *params) {                                                                     \
    fa::flash_forward<fa::flash_forward_config<fa::T, D, fa::kind>>(                                         \
        *static_cast<const fa_flash_params *>(params));                                                      \
  }
#include "gpu/kernels/flash_forward_list.h"

template <class C> static constexpr fa_flash_kernel describe(const char *name, void (*entry)(const void *)) {
  return {
      name,
      entry,
      {std::is_same<typename C::T, fa::bf16>::value, C::D, !C::ALIGNED, C::SCORE_MOD, C::DROPOUT, C::GENERAL},
      C::BM,
      C::BN,
      C::THREADS,
      C::SHARED_BYTES};
}

#define FA_ENTRY(name, T, D, kind) describe<fa::flash_forward_config<fa::T, D, fa::kind>>(#name, name),
static const fa_flash_kernel kernels[] = {
#include "gpu/kernels/flash_forward_list.h"
};

static bool can_do(const fa_flash_ability &k, const fa_flash_ability &wanted) {
  return k.bf16 == wanted.bf16 && wanted.head_dim <= k.head_dim && wanted.head_dim > k.head_dim - 32 &&
         k.unaligned >= wanted.unaligned && k.score_mod >= wanted.score_mod && k.dropout >= wanted.dropout &&
         k.p_debug >= wanted.p_debug;
}

const fa_flash_kernel *fa_flash_forward_find(fa_flash_ability wanted) {
  for (const fa_flash_kernel &k : kernels)
    if (can_do(k.ability, wanted)) return &k;
  return nullptr;
}
