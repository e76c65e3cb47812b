#include "gpu/kernels/registry/hopper_forward.h"

#include "gpu/kernels/registry/hopper_describe.cuh"
#include "gpu/kernels/hopper/forward.cuh"

/* As in gpu/kernels/registry/flash_forward.cpp. */
#ifdef FA_TABLES_ONLY
#define FA_ON_HOST(name) nullptr
#else
#define FA_ON_HOST(name) name
#define FA_ENTRY(name, ...)                                                                                  \
  static void name(const void *params) {                                                                     \
    fa::hopper_forward<fa::hopper_forward_config<__VA_ARGS__>>(                                              \
        *static_cast<const fa_hopper_params *>(params));                                                     \
  }
#include "gpu/kernels/hopper/forward_list.h"
#define FA_ENTRY(name, ...)                                                                                  \
  static void name(const void *params) {                                                                     \
    fa::hopper_forward<fa::hopper_forward_config<__VA_ARGS__>>(                                              \
        *static_cast<const fa_hopper_params *>(params));                                                     \
  }
#include "gpu/kernels/hopper/forward_flex_list.h"
#endif

template <class C>
static constexpr fa_kernel describe(const char *name, void (*entry)(const void *), const char *only) {
  return fa::hopper_describe<C>("hopper/forward", name, entry, only, C::D, 1);
}

#define FA_DESCRIBE(name, ...)                                                                               \
  describe<fa::hopper_forward_config<__VA_ARGS__>>(#name, FA_ON_HOST(name),                                  \
                                                   "FA_ENTRY(" #name "," #__VA_ARGS__ ")")
#define FA_ENTRY_AND_LONGER(least, name, ...)                                                                \
  {FA_DESCRIBE(name, __VA_ARGS__), least, fa::hopper_forward_config<__VA_ARGS__>::VARLEN},
#define FA_ENTRY(...) FA_ENTRY_AND_LONGER(0, __VA_ARGS__)
#define FA_ENTRY_LONG(...) FA_ENTRY_AND_LONGER(FA_HOPPER_LONG, __VA_ARGS__)
static const struct forward_row {
  fa_kernel kernel;
  int64_t least_keys;
  bool varlen;
} kernels[] = {
#include "gpu/kernels/hopper/forward_list.h"
};
static const int n_kernels = sizeof kernels / sizeof *kernels;

#define FA_ENTRY(name, ...) FA_DESCRIBE(name, __VA_ARGS__),
static const fa_kernel flex_kernels[] = {
#include "gpu/kernels/hopper/forward_flex_list.h"
};
static const int n_flex_kernels = sizeof flex_kernels / sizeof *flex_kernels;

const fa_kernel *fa_hopper_forward_find(fa_kernel_ability wanted, int64_t seqlen_k, int varlen,
                                              const fa_kernel_device *device) {
  if (!device || !device->hopper) return nullptr;
  for (const forward_row &k : kernels)
    if (fa::hopper_fits(k.kernel, wanted, device) && k.least_keys <= seqlen_k && k.varlen >= varlen)
      return &k.kernel;
  return nullptr;
}

const fa_kernel *fa_hopper_flex_forward_find(fa_kernel_ability wanted, const fa_kernel_device *device) {
  if (!device || !device->hopper) return nullptr;
  for (const fa_kernel &k : flex_kernels)
    if (fa::hopper_fits(k, wanted, device)) return &k;
  return nullptr;
}

int fa_hopper_host_counter(void) {
  static unsigned n;
  return static_cast<int>(__atomic_fetch_add(&n, 1u, __ATOMIC_RELAXED) % FA_HOPPER_COUNTERS);
}

unsigned fa_hopper_host_counter_left(int counter) {
  return __atomic_exchange_n(fa::hopper_counters + counter, 0u, __ATOMIC_RELAXED);
}

const char *fa_hopper_forward_name(int i) {
  return i < n_kernels ? kernels[i].kernel.name : nullptr;
}

const char *fa_hopper_flex_forward_name(int i) {
  return i < n_flex_kernels ? flex_kernels[i].name : nullptr;
}
