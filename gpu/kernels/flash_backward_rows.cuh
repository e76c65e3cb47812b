/* Where a query row's entries stand in the backward workspace (layout: flash_backward_plan.h). */
#ifndef FA_GPU_KERNELS_FLASH_BACKWARD_ROWS_CUH
#define FA_GPU_KERNELS_FLASH_BACKWARD_ROWS_CUH

#include "gpu/kernels/flash_backward_params.h"
#include "gpu/kernels/flash_backward_plan.h"
#include "gpu/kernels/mask.cuh"

namespace fa {

/* The workspace row of an entry's first query row: a multiple of the row block, so that no tile straddles
 * entries. D: of the kernels' tiles. */
template <int D> FA_DEVICE int64_t first_workspace_row(const fa_flash_backward_params &p, int batch) {
  constexpr int BLOCK = fa_flash_backward_row_block(D);
  const fa_flash_params &f = p.forward;
  if (f.cu_seqlens_q)
    return (load_global(f.cu_seqlens_q + batch) + static_cast<int64_t>(batch) * BLOCK) / BLOCK * BLOCK;
  return static_cast<int64_t>(batch) * ((f.seqlen_q + BLOCK - 1) / BLOCK * BLOCK);
}

/* The same of any row, counted over all heads: index into lse_log2 and delta, and in units of D into
 * dq_accum. */
template <int D>
FA_DEVICE int64_t workspace_row(const fa_flash_backward_params &p, int batch, int head, int row) {
  return head * p.rows + first_workspace_row<D>(p, batch) + row;
}

} // namespace fa

#endif
