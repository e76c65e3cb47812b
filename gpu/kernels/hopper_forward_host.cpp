#include "gpu/kernels/hopper_forward_host.h"

#include "gpu/kernels/hopper_describe.cuh"
#include "gpu/kernels/hopper_forward.cuh"

#include <string.h>

/* As in flash_forward_host.cpp. */
#ifdef FA_TABLES_ONLY
#define FA_ON_HOST(name) nullptr
#else
#define FA_ON_HOST(name) name
#define FA_ENTRY(name, ...)                                                                                  \
  static void name(const void *params) {                                                                     \
    fa::hopper_forward<fa::hopper_forward_config<__VA_ARGS__>>(                                              \
        *static_cast<const fa_hopper_params *>(params));                                                     \
  }
#include "gpu/kernels/hopper_forward_list.h"
#define FA_ENTRY(name, ...)                                                                                  \
  static void name(const void *params) {                                                                     \
    fa::hopper_forward<fa::hopper_forward_config<__VA_ARGS__>>(                                              \
        *static_cast<const fa_hopper_params *>(params));                                                     \
  }
#include "gpu/kernels/hopper_flex_list.h"
#endif

template <class C>
static constexpr fa_flash_kernel describe(const char *name, void (*entry)(const void *), const char *only) {
  return fa::hopper_describe<C>("hopper_forward", name, entry, only, C::D, 1);
}

#define FA_DESCRIBE(name, ...)                                                                               \
  describe<fa::hopper_forward_config<__VA_ARGS__>>(#name, FA_ON_HOST(name),                                  \
                                                   "FA_ENTRY(" #name "," #__VA_ARGS__ ")")
#define FA_ENTRY_VARIANT(variant, least, name, ...)                                                          \
  {FA_DESCRIBE(name, __VA_ARGS__), least, fa::hopper_forward_config<__VA_ARGS__>::VARLEN, variant, 1},
#define FA_ENTRY(...) FA_ENTRY_VARIANT(FA_HOPPER_USUAL, 0, __VA_ARGS__)
#define FA_ENTRY_LONG(...) FA_ENTRY_VARIANT(FA_HOPPER_USUAL, FA_HOPPER_LONG, __VA_ARGS__)
#define FA_ENTRY_PAIRS(variant, name, ...)                                                                   \
  {describe<fa::hopper_forward_config<__VA_ARGS__>>(#name, FA_ON_HOST(name),                                 \
                                                    "FA_ENTRY_PAIRS(0," #name "," #__VA_ARGS__ ")"),         \
   0, false, variant, 2},
static const struct forward_row {
  fa_flash_kernel kernel;
  int64_t least_keys;
  bool varlen;
  int variant, cluster;
} kernels[] = {
#include "gpu/kernels/hopper_forward_list.h"
};
static const int n_kernels = sizeof kernels / sizeof *kernels;

#define FA_ENTRY(name, ...) FA_DESCRIBE(name, __VA_ARGS__),
static const fa_flash_kernel flex_kernels[] = {
#include "gpu/kernels/hopper_flex_list.h"
};
static const int n_flex_kernels = sizeof flex_kernels / sizeof *flex_kernels;

static const char *const variants[] = {"usual", "pairs", "pairs_3", "fma", "hints"};

int fa_hopper_variant_of(const char *text) {
  const size_t n = strcspn(text, ",");
  for (int i = 0; i < static_cast<int>(sizeof variants / sizeof *variants); ++i)
    if (strlen(variants[i]) == n && strncmp(variants[i], text, n) == 0) return i;
  return -1;
}

const char *fa_hopper_variants(void) {
  return "usual, pairs, pairs_3, fma, hints";
}

const fa_flash_kernel *fa_hopper_forward_find(fa_flash_ability wanted, int64_t seqlen_k, int varlen,
                                              int masked, const fa_flash_device *device) {
  if (!device || !device->hopper) return nullptr;
  const fa_flash_kernel *usual = nullptr;
  for (const forward_row &k : kernels) {
    if (!fa::hopper_fits(k.kernel, wanted, device) || k.least_keys > seqlen_k || k.varlen < varlen) continue;
    if (k.variant == FA_HOPPER_USUAL) {
      if (!usual) usual = &k.kernel;
    } else if (k.variant == device->variant && usual &&
               k.kernel.ability.head_dim == usual->ability.head_dim &&
               !(k.cluster > 1 && (masked || device->hopper < k.cluster))) {
      return &k.kernel;
    }
  }
  return usual;
}

int fa_hopper_forward_cluster(const fa_flash_kernel *kernel) {
  for (const forward_row &k : kernels)
    if (kernel == &k.kernel) return k.cluster;
  return 1;
}

const fa_flash_kernel *fa_hopper_flex_forward_find(fa_flash_ability wanted, const fa_flash_device *device) {
  if (!device || !device->hopper) return nullptr;
  for (const fa_flash_kernel &k : flex_kernels)
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
