#include "gpu/kernels/registry/flash_forward.h"

#include "gpu/kernels/registry/flash_ability.cuh"
#include "gpu/kernels/flash/forward.cuh"

/* FA_TABLES_ONLY: for a library that has no host executor. */
#ifdef FA_TABLES_ONLY
#define FA_ON_HOST(name) nullptr
#else
#define FA_ON_HOST(name) name
#define FA_ENTRY(name, T, D, kind)                                                                           \
  static void name(const void *params) {                                                                     \
    fa::flash_forward<fa::flash_forward_config<fa::T, D, fa::kind>>(                                         \
        *static_cast<const fa_attention_params *>(params));                                                      \
  }
#include "gpu/kernels/flash/forward_list.h"
#endif

template <class C>
static constexpr fa_kernel describe(const char *name, void (*entry)(const void *), const char *only,
                                          bool is_ahead_of_time) {
  return {name,
          entry,
          {"flash/forward", only, is_ahead_of_time},
          fa::flash_ability_of<C>(C::GENERAL),
          C::BM,
          C::BN,
          0,
          C::THREADS,
          C::SHARED_BYTES};
}

#define FA_DESCRIBE(name, entry, T, D, kind, is_ahead_of_time)                                               \
  describe<fa::flash_forward_config<fa::T, D, fa::kind>>(                                                    \
      #name, entry, "FA_ENTRY(" #name "," #T "," #D "," #kind ")", is_ahead_of_time),
#define FA_ENTRY(name, T, D, kind) FA_DESCRIBE(name, FA_ON_HOST(name), T, D, kind, true)
#define FA_ENTRY_AT_RUN_TIME(name, T, D, kind) FA_DESCRIBE(name, nullptr, T, D, kind, false)
static const fa_kernel kernels[] = {
#include "gpu/kernels/flash/forward_list.h"
};

static bool can_be_had(const fa_kernel &k, const fa_kernel_device *device) {
  return device
             ? k.shared_bytes <= device->max_shared_bytes && (k.recipe.is_ahead_of_time || device->compiles)
             : k.recipe.is_ahead_of_time;
}

const fa_kernel *fa_flash_forward_find(fa_kernel_ability wanted, const fa_kernel_device *device) {
  for (const fa_kernel &k : kernels)
    if (fa_kernel_is_able(&k.ability, &wanted) && can_be_had(k, device)) return &k;
  return nullptr;
}

const char *fa_flash_forward_name(int i) {
  for (const fa_kernel &k : kernels)
    if (k.recipe.is_ahead_of_time && i-- == 0) return k.name;
  return nullptr;
}
