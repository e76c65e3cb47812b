#include "gpu/kernels/registry/hopper_backward.h"

#include "gpu/kernels/hopper_backward/main.cuh"
#include "gpu/kernels/registry/hopper_describe.cuh"

/* As in gpu/kernels/registry/flash_forward.cpp. */
#ifdef FA_TABLES_ONLY
#define FA_ON_HOST(name) nullptr
#else
#define FA_ON_HOST(name) name
#define FA_ENTRY(name, ...)                                                                                  \
  static void name(const void *params) {                                                                     \
    fa::hopper_backward<fa::hopper_backward_config<__VA_ARGS__>>(                                            \
        *static_cast<const fa_hopper_backward_params *>(params));                                            \
  }
#include "gpu/kernels/hopper_backward/main_list.h"
#define FA_ENTRY(name, ...)                                                                                  \
  static void name(const void *params) {                                                                     \
    fa::hopper_backward<fa::hopper_backward_config<__VA_ARGS__>>(                                            \
        *static_cast<const fa_hopper_backward_params *>(params));                                            \
  }
#include "gpu/kernels/hopper_backward/flex_list.h"
#endif

/* The workspace has rows of the head dim up to a multiple of 32, and they must be the tiles'. */
template <class C>
static constexpr fa_kernel describe(const char *name, void (*entry)(const void *), const char *only) {
  return fa::hopper_describe<C>("hopper_backward/main", name, entry, only, C::D, C::D - 31);
}

#define FA_DESCRIBE(name, ...)                                                                               \
  describe<fa::hopper_backward_config<__VA_ARGS__>>(#name, FA_ON_HOST(name),                                 \
                                                    "FA_ENTRY(" #name "," #__VA_ARGS__ ")")
#define FA_ROW(name, ...)                                                                                    \
  {FA_DESCRIBE(name, __VA_ARGS__), fa::hopper_backward_config<__VA_ARGS__>::VARLEN,                          \
   fa::hopper_backward_config<__VA_ARGS__>::ORDERED},
struct row {
  fa_kernel kernel;
  bool varlen, ordered;
};
#define FA_ENTRY(name, ...) FA_ROW(name, __VA_ARGS__)
static const row kernels[] = {
#include "gpu/kernels/hopper_backward/main_list.h"
};
static const int n_kernels = sizeof kernels / sizeof *kernels;

#define FA_ENTRY(name, ...) FA_ROW(name, __VA_ARGS__)
static const row flex_kernels[] = {
#include "gpu/kernels/hopper_backward/flex_list.h"
};
static const int n_flex_kernels = sizeof flex_kernels / sizeof *flex_kernels;

const fa_kernel *fa_hopper_backward_find(fa_kernel_ability wanted, int varlen, int ordered,
                                               const fa_kernel_device *device) {
  if (!device || !device->hopper) return nullptr;
  for (const auto &k : kernels)
    if (fa::hopper_fits(k.kernel, wanted, device) && k.varlen >= varlen && k.ordered >= ordered)
      return &k.kernel;
  return fa_hopper_backward_pair_find(wanted, varlen, ordered, device);
}

const fa_kernel *fa_hopper_flex_backward_find(fa_kernel_ability wanted, int ordered,
                                                    const fa_kernel_device *device) {
  if (!device || !device->hopper) return nullptr;
  for (const auto &k : flex_kernels)
    if (fa::hopper_fits(k.kernel, wanted, device) && k.ordered >= ordered) return &k.kernel;
  return nullptr;
}

const char *fa_hopper_backward_name(int i) {
  return i < n_kernels ? kernels[i].kernel.name : fa_hopper_backward_pair_name(i - n_kernels);
}

const char *fa_hopper_flex_backward_name(int i) {
  return i < n_flex_kernels ? flex_kernels[i].kernel.name : nullptr;
}
