/* The epilogue of the flash forward kernel: O and LSE, those of fully masked rows too, and the debug copy of
 * P. */
#ifndef FA_GPU_KERNELS_FLASH_FORWARD_STORE_CUH
#define FA_GPU_KERNELS_FLASH_FORWARD_STORE_CUH

#include "gpu/kernels/flash/forward_config.cuh"
#include "gpu/kernels/parts/sink.cuh"
#include "gpu/kernels/parts/softmax.cuh"
#include "gpu/kernels/parts/statistics.cuh"

namespace fa {

/* Addresses of this block's first row of O, row counting packed rows, and of LSE, row being the sequence's. */
FA_DEVICE uint16_t *first_o_row(const fa_attention_params &p, int row) {
  return p.o + blockIdx.z * p.o_stride.batch + blockIdx.y * p.o_stride.head + row * p.o_stride.row;
}
FA_DEVICE float *first_lse(const fa_attention_params &p, const sequence &seq, int row) {
  return p.lse + statistics_at(p, p.lse_stride, blockIdx.z, blockIdx.y, seq.q_row, row);
}

/* When all rows of this block are fully masked: O = 0, and the conventional LSE. */
template <class C>
FA_DEVICE void store_fully_masked(const fa_attention_params &p, const flash_work_tile &work, int thread) {
  constexpr int CHUNKS = C::D / 8;
  uint16_t *o = first_o_row(p, work.seq.q_row + work.row0);
  float *lse = first_lse(p, work.seq, work.row0);
  for (int i = thread; i < work.n_rows * CHUNKS; i += C::THREADS)
    if (i % CHUNKS < p.head_dim_v / 8)
      store_chunk<C>(p, o + i / CHUNKS * p.o_stride.row + i % CHUNKS * 8, vec4{0, 0, 0, 0});
  const float value = lse_without_keys(p, blockIdx.y);
  for (int row = thread; row < work.n_rows; row += C::THREADS) store_global(lse + row * p.lse_stride.row, value);
}

template <class C>
FA_DEVICE finished_row finish_flash_row(const fa_attention_params &p, float max, float sum) {
  const float scale = C::DROPOUT || C::LINEAR ? p.dropout_scale : 1.0f;
  if (!C::SINKS) return finish_keys(max, sum, scale, p.empty_lse);
  return finish_row(p, blockIdx.y, max, sum, scale);
}

/* Normalises, and stores this warp's rows of O and LSE. */
template <class C>
FA_DEVICE void flash_epilogue(const fa_attention_params &p, float (&o)[C::M_TILES][C::D / 8][4],
                            const row_state (&rows)[C::M_TILES][2], const flash_work_tile &work, int warp,
                            int lane) {
  constexpr int CHUNKS = C::D / 8, WARP_ROWS = 16 * C::M_TILES;
  const float score_scale = scores_are_modified<C>(p) ? 1.0f : p.scale;
  const uint32_t o_tile = shared_base(); /* reuses Q's space */
  uint16_t *o_global = first_o_row(p, work.seq.q_row + work.row0);
  float *lse_global = first_lse(p, work.seq, work.row0);
  FA_UNROLL
  for (int m = 0; m < C::M_TILES; ++m) {
    FA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int row = WARP_ROWS * warp + 16 * m + 8 * r + lane / 4;
      const finished_row end = finish_flash_row<C>(p, rows[m][r].max * score_scale, quad_sum(rows[m][r].sum));
      FA_UNROLL
      for (int n = 0; n < CHUNKS; ++n)
        store_shared4(o_tile + tile_offset<C::D>(row, n) + lane % 4 * 4,
                      pack2(o[m][n][2 * r] * end.factor, o[m][n][2 * r + 1] * end.factor, typename C::T()));
      if (lane % 4 == 0 && row < work.n_rows) store_global(lse_global + row * p.lse_stride.row, end.lse);
    }
  }
  sync_warp(); /* a warp reads only its own rows */
  FA_NO_UNROLL
  for (int i = lane; i < WARP_ROWS * CHUNKS; i += 32) {
    const int row = WARP_ROWS * warp + i / CHUNKS, chunk = i % CHUNKS;
    const vec4 v = load_shared16(o_tile + tile_offset<C::D>(row, chunk));
    if (row < work.n_rows && chunk < p.head_dim_v / 8)
      store_chunk<C>(p, o_global + row * p.o_stride.row + chunk * 8, v);
  }
}

/* ---- the debug copy of P ---- */

FA_DEVICE uint16_t *p_debug_row(const fa_attention_params &p, int row) {
  const int64_t head = static_cast<int64_t>(blockIdx.z) * p.heads_q + blockIdx.y;
  return p.p_debug + (head * p.p_rows + row) * p.p_keys;
}

/* Stores two neighbouring elements of P; sign set = dropped. Masked elements stay as clear_p_debug left
 * them. */
template <class C>
FA_DEVICE void store_p_debug(const fa_attention_params &p, const sequence &seq, int row, int key, uint32_t pair,
                             uint32_t kept) {
  if (row >= seq.len_q) return;
  const row_limits limits = limits_of_row<C::GENERAL>(p, seq, row);
  const uint32_t signs = pair | (~kept & 0x80008000u);
  uint16_t *to = p_debug_row(p, row) + key;
  if (key >= limits.lo && key < limits.hi) store_global(to, static_cast<uint16_t>(signs));
  if (key + 1 >= limits.lo && key + 1 < limits.hi) store_global(to + 1, static_cast<uint16_t>(signs >> 16));
}

/* Zeros for the rows of this block and, in the last block, for the padding rows. */
template <class C> FA_DEVICE void clear_p_debug(const fa_attention_params &p, int thread) {
  const int row0 = static_cast<int>(blockIdx.x) * C::BM;
  const int row1 = blockIdx.x + 1 == gridDim.x ? p.p_rows : row0 + C::BM;
  const int64_t n = static_cast<int64_t>(row1 - row0) * p.p_keys / 8;
  vec4 *to = reinterpret_cast<vec4 *>(p_debug_row(p, row0));
  for (int64_t i = thread; i < n; i += C::THREADS) store_global(to + i, vec4{0, 0, 0, 0});
}

} // namespace fa

#endif
