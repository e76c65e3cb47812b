/* Tables of forward kernels that take any head dim: a block makes block_cols columns of O at a time. */
#ifndef FA_GPU_KERNELS_REGISTRY_FORWARD_ROWS_H
#define FA_GPU_KERNELS_REGISTRY_FORWARD_ROWS_H

#include "gpu/kernels/registry/dtype_of.h"
#include "gpu/kernels/registry/flash_forward.h"

struct forward_row {
  fa_dtype dtype;
  fa_kernel kernel;
};

template <class C>
static constexpr forward_row forward_row_of(const char *name, void (*entry)(const void *),
                                            fa_kernel_recipe recipe) {
  return {dtype_of<typename C::T>(),
          {name, entry, recipe, {}, C::BM, C::BN, C::VC, C::THREADS, C::SHARED_BYTES}};
}

/* The narrowest that makes all columns at once, or else the widest, of those that fit the device; the table
 * is in ascending order. NULL: none is of this type. device: NULL is any. */
template <int N>
static const fa_kernel *find_forward_row(const forward_row (&rows)[N], fa_dtype dtype,
                                               int64_t head_dim_v, const fa_kernel_device *device) {
  const fa_kernel *widest = nullptr;
  for (const forward_row &r : rows) {
    if (r.dtype != dtype || (device && r.kernel.shared_bytes > device->max_shared_bytes)) continue;
    widest = &r.kernel;
    if (head_dim_v <= r.kernel.block_cols) break;
  }
  return widest;
}

#endif
