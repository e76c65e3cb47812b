#include "gpu/kernels/hopper_backward_host.h"

#include "gpu/kernels/hopper_backward_wide.cuh"
#include "gpu/kernels/hopper_describe.cuh"

/* As in flash_forward_host.cpp. */
#ifdef FA_TABLES_ONLY
#define FA_ON_HOST(name) nullptr
#else
#define FA_ON_HOST(name) name
#define FA_ENTRY(name, ...)                                                                                  \
  static void name(const void *params) {                                                                     \
    fa::hopper_backward_wide<fa::hopper_backward_wide_config<__VA_ARGS__>>(                                  \
        *static_cast<const fa_hopper_backward_params *>(params));                                            \
  }
#include "gpu/kernels/hopper_backward_wide_list.h"
#endif

/* The workspace has rows of the head dim up to a multiple of 32. */
template <class C>
static constexpr fa_flash_kernel describe(const char *name, void (*entry)(const void *), const char *only) {
  return fa::hopper_describe<C>("hopper_backward_wide", name, entry, only, C::ROW_D, C::ROW_D - 31);
}

#define FA_ENTRY(name, ...)                                                                                  \
  describe<fa::hopper_backward_wide_config<__VA_ARGS__>>(#name, FA_ON_HOST(name),                            \
                                                         "FA_ENTRY(" #name "," #__VA_ARGS__ ")"),
static const fa_flash_kernel kernels[] = {
#include "gpu/kernels/hopper_backward_wide_list.h"
};
static const int n_kernels = sizeof kernels / sizeof *kernels;

const fa_flash_kernel *fa_hopper_backward_wide_find(fa_flash_ability wanted, const fa_flash_device *device) {
  for (const fa_flash_kernel &k : kernels)
    if (fa::hopper_fits(k, wanted, device)) return &k;
  return nullptr;
}

const char *fa_hopper_backward_wide_name(int i) {
  return i < n_kernels ? kernels[i].name : nullptr;
}

int fa_hopper_backward_cluster(const fa_flash_kernel *kernel) {
  for (const fa_flash_kernel &k : kernels)
    if (kernel == &k) return fa::hopper_backward_wide_config<fa::f16, 256>::RANKS;
  return 1;
}
