#include "gpu/kernels/registry/hopper_backward.h"

#include "gpu/kernels/hopper_backward/pair.cuh"
#include "gpu/kernels/registry/hopper_describe.cuh"

/* As in gpu/kernels/registry/flash_forward.cpp. */
#ifdef FA_TABLES_ONLY
#define FA_ON_HOST(name) nullptr
#else
#define FA_ON_HOST(name) name
#define FA_ENTRY(name, ...)                                                                                  \
  static void name(const void *params) {                                                                     \
    fa::hopper_backward_pair<fa::hopper_backward_pair_config<__VA_ARGS__>>(                                  \
        *static_cast<const fa_hopper_backward_params *>(params));                                            \
  }
#include "gpu/kernels/hopper_backward/pair_list.h"
#endif

#define FA_ENTRY(name, ...)                                                                                  \
  {fa::hopper_describe<fa::hopper_backward_pair_config<__VA_ARGS__>>(                                        \
       "hopper_backward/pair", #name, FA_ON_HOST(name), "FA_ENTRY(" #name "," #__VA_ARGS__ ")",              \
       fa::hopper_backward_pair_config<__VA_ARGS__>::D,                                                      \
       fa::hopper_backward_pair_config<__VA_ARGS__>::D - 63),                                                \
   fa::hopper_backward_pair_config<__VA_ARGS__>::VARLEN,                                                     \
   fa::hopper_backward_pair_config<__VA_ARGS__>::ORDERED},
static const struct {
  fa_kernel kernel;
  bool varlen, ordered;
} kernels[] = {
#include "gpu/kernels/hopper_backward/pair_list.h"
};
static const int n_kernels = sizeof kernels / sizeof *kernels;

const fa_kernel *fa_hopper_backward_pair_find(fa_kernel_ability wanted, int varlen, int ordered,
                                                    const fa_kernel_device *device) {
  for (const auto &k : kernels)
    if (fa::hopper_fits(k.kernel, wanted, device) && k.varlen >= varlen && k.ordered >= ordered)
      return &k.kernel;
  return nullptr;
}

const char *fa_hopper_backward_pair_name(int i) {
  return i < n_kernels ? kernels[i].kernel.name : nullptr;
}

int fa_hopper_backward_cluster(const fa_kernel *kernel) {
  for (const auto &k : kernels)
    if (kernel == &k.kernel) return fa::hopper_backward_pair_config<fa::f16, 256>::RANKS;
  return 1;
}
