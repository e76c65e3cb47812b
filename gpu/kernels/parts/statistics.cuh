/* Where a row's LSE lies, and what lies like it: dLSE, and delta where it is no workspace's of its own. */
#ifndef FA_GPU_KERNELS_PARTS_STATISTICS_CUH
#define FA_GPU_KERNELS_PARTS_STATISTICS_CUH

#include "gpu/kernels/params/attention.h"
#include "gpu/kernels/parts/traits.cuh"

namespace fa {

/* The offset of a sequence's row. q_row: the sequence's first row among the packed ones, which the statistics follow
 * unless they are padded. P: parameters with lse_padded. */
template <class P>
FA_DEVICE int64_t statistics_at(const P &p, const fa_kernel_strides &s, int64_t batch, int64_t head, int q_row,
                                int64_t row) {
  if (!may_have(FA_HAS_LENGTHS)) return batch * s.batch + head * s.head + row * s.row;
  const int first = opaque(p.lse_padded) ? 0 : q_row; /* not kept for each row, for which some have no registers */
  return batch * s.batch + head * s.head + (first + row) * s.row;
}

} // namespace fa

#endif
