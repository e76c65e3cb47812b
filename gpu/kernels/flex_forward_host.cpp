#include "gpu/kernels/dtype_of.h"
#include "gpu/kernels/flex_forward.cuh"
#include "gpu/kernels/flex_host.h"

/* FA_TABLES_ONLY: for a library that has no host executor. */
#ifdef FA_TABLES_ONLY
#define FA_ON_HOST(name) nullptr
#else
#define FA_ON_HOST(name) name
#define FA_ENTRY(name, T, VC)                                                                                \
  static void name(const void *params) {                                                                     \
    fa::flex_forward<fa::flex_forward_config_of<fa::T, VC>::type>(                                           \
        *static_cast<const fa_flash_params *>(params));                                                      \
  }
#include "gpu/kernels/flex_forward_list.h"
#endif

struct forward_row {
  fa_dtype dtype;
  fa_flash_kernel kernel;
};
template <class C>
static constexpr forward_row forward(const char *name, void (*entry)(const void *), const char *only) {
  return {dtype_of<typename C::T>(),
          {name, entry, {"flex_forward", only, 0}, {}, C::BM, C::BN, C::VC, C::THREADS, C::SHARED_BYTES}};
}

#define FA_ENTRY(name, T, VC)                                                                                \
  forward<fa::flex_forward_config_of<fa::T, VC>::type>(#name, FA_ON_HOST(name),                              \
                                                       "FA_ENTRY(" #name "," #T "," #VC ")"),
static const forward_row forwards[] = {
#include "gpu/kernels/flex_forward_list.h"
};

const fa_flash_kernel *fa_flex_forward_find(fa_dtype dtype, int64_t, int64_t head_dim_v,
                                            const fa_flash_device *device) {
  const fa_flash_kernel *widest = nullptr;
  for (const forward_row &r : forwards) {
    if (r.dtype != dtype || (device && r.kernel.shared_bytes > device->max_shared_bytes)) continue;
    widest = &r.kernel;
    if (head_dim_v <= r.kernel.block_cols) break;
  }
  return widest;
}

const char *fa_flex_forward_name(int i) {
  for (const forward_row &r : forwards)
    if (i-- == 0) return r.kernel.name;
  return nullptr;
}
