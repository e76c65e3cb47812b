/* Where a slot of a sequence lies in a cache, for the kernels that copy rows to and from it. */
#ifndef FA_GPU_KERNELS_CACHE_SLOT_CUH
#define FA_GPU_KERNELS_CACHE_SLOT_CUH

#include "gpu/kernels/machine/prim.cuh"
#include "gpu/kernels/params/cache.h"

namespace fa {

/* The offset of slot `slot` of a sequence in a cache, head 0. P: the arguments of such a kernel. */
template <class P>
FA_DEVICE int64_t slot_offset(const P &p, const fa_kernel_strides &stride, int batch, int slot) {
  if (p.block_table) {
    const int page = load_global(p.block_table + batch * p.block_table_stride + slot / p.page_size);
    return page * stride.batch + slot % p.page_size * stride.row;
  }
  const int row = p.cache_batch_idx ? load_global(p.cache_batch_idx + batch) : batch;
  return row * stride.batch + slot * stride.row;
}

} // namespace fa

#endif
