#include "gpu/kernels/flex/forward.cuh"
#include "gpu/kernels/registry/flex.h"
#include "gpu/kernels/registry/forward_rows.h"

/* FA_TABLES_ONLY: for a library that has no host executor. */
#ifdef FA_TABLES_ONLY
#define FA_ON_HOST(name) nullptr
#else
#define FA_ON_HOST(name) name
#define FA_ENTRY(name, T, VC)                                                                                \
  static void name(const void *params) {                                                                     \
    fa::flex_forward<fa::flex_forward_config_of<fa::T, VC>::type>(                                           \
        *static_cast<const fa_attention_params *>(params));                                                      \
  }
#include "gpu/kernels/flex/forward_list.h"
#endif

#define FA_ENTRY(name, T, VC)                                                                                \
  forward_row_of<fa::flex_forward_config_of<fa::T, VC>::type>(                                               \
      #name, FA_ON_HOST(name), {"flex/forward", "FA_ENTRY(" #name "," #T "," #VC ")", 0}),
static const forward_row forwards[] = {
#include "gpu/kernels/flex/forward_list.h"
};

const fa_kernel *fa_flex_forward_find(fa_dtype dtype, int64_t, int64_t head_dim_v,
                                            const fa_kernel_device *device) {
  return find_forward_row(forwards, dtype, head_dim_v, device);
}

const char *fa_flex_forward_name(int i) {
  for (const forward_row &r : forwards)
    if (i-- == 0) return r.kernel.name;
  return nullptr;
}
