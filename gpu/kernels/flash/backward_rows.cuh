/* Where the data of a query row or a key are in the backward workspace (layout:
 * gpu/kernels/params/flash_backward_grids.h), and what the kernels around the main one share. */
#ifndef FA_GPU_KERNELS_FLASH_BACKWARD_ROWS_CUH
#define FA_GPU_KERNELS_FLASH_BACKWARD_ROWS_CUH

#include "gpu/kernels/params/flash_backward.h"
#include "gpu/kernels/params/flash_backward_grids.h"
#include "gpu/kernels/parts/mask.cuh"

namespace fa {

/* Configuration of the kernels that work on rows of one head. D: of the tiles, head_dim rounded up to a
 * multiple of 32. BN: the piece of masked keys that one block clears (clear_masked_keys). */
template <class T_, int D_> struct flash_backward_row_config {
  typedef T_ T;
  static constexpr int D = D_, BLOCK = fa_backward_row_block(D), THREADS = FA_BACKWARD_THREADS;
  static constexpr int BN = BLOCK;
  static constexpr bool ALIGNED = false;
};

/* The workspace row of a sequence's first row: a multiple of the row block, so that no tile straddles
 * sequences. */
template <int D> FA_DEVICE int64_t first_workspace_row(const int32_t *cu_seqlens, int seqlen, int batch) {
  constexpr int BLOCK = fa_backward_row_block(D);
  if (cu_seqlens)
    return (load_global(cu_seqlens + batch) + static_cast<int64_t>(batch) * BLOCK) / BLOCK * BLOCK;
  return static_cast<int64_t>(batch) * ((seqlen + BLOCK - 1) / BLOCK * BLOCK);
}

/* The same for any query row, over all heads: the index into lse_log2 and delta, and in units of D into
 * dq_accum. */
template <int D>
FA_DEVICE int64_t workspace_row(const fa_backward_params &p, int batch, int head, int row) {
  return head * p.rows + first_workspace_row<D>(p.forward.cu_seqlens_q, p.forward.seqlen_q, batch) + row;
}
/* And for a key (counted after the left padding), in units of D into dk_accum and dv_accum. */
template <int D>
FA_DEVICE int64_t workspace_key(const fa_backward_params &p, int batch, int head, int key) {
  return head * p.keys + first_workspace_row<D>(p.forward.cu_seqlens_k, p.forward.seqlen_k, batch) + key;
}

/* Clears a block of rows in all accumulators of a gradient. row: its first row; first: the first
 * accumulator. */
template <class C>
FA_DEVICE void clear_accumulators(const fa_backward_params &p, float *first, int64_t row, int thread) {
  for (int split = 0; split < p.n_splits; ++split) {
    float *to = first + split * p.split_stride + row * C::D;
    for (int i = thread; i < C::BLOCK * C::D / 4; i += C::THREADS)
      store_global(reinterpret_cast<vec4 *>(to + 4 * i), vec4{0, 0, 0, 0});
  }
}

} // namespace fa

#endif
