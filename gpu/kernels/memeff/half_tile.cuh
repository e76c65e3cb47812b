/* Tiles of 16-bit elements for the portable flex kernels: rows of any head dim and alignment, chunk by chunk.
 *
 * A row of COLS elements, a multiple of 32, is padded by 16 bytes: to an odd multiple of 16 bytes, so that
 * the eight rows of an ldmatrix phase are in different banks. */
#ifndef FA_GPU_KERNELS_MEMEFF_HALF_TILE_CUH
#define FA_GPU_KERNELS_MEMEFF_HALF_TILE_CUH

#include "gpu/kernels/memeff/tile.cuh"

namespace fa {

template <int COLS> struct half_row {
  static_assert(COLS % 32 == 0, "so that rows are an odd number of 16 bytes apart");
  static constexpr int BYTES = COLS * 2 + 16;
};

/* Eight elements to a tile; zeros from column n_cols on, and all of them out of range. */
FA_DEVICE void load_eight(uint32_t to, const uint16_t *at, bool in_range, int col, int n_cols) {
  uint32_t x[4] = {0, 0, 0, 0};
  FA_UNROLL
  for (int e = 0; e < 8; ++e)
    if (in_range && col + e < n_cols) x[e / 2] |= static_cast<uint32_t>(load_global(at + e)) << e % 2 * 16;
  store_shared16(to, vec4{x[0], x[1], x[2], x[3]});
}

/* load_half for kernels that are compiled for rows that begin anywhere, alone: n times eight columns, 2^log_eights of which are a
 * row's. It waits for memory most of its time, and a kernel has up to five such loads: inlined they are a third of its code, and
 * of the time that it takes to compile. */
template <int THREADS>
FA_CALLED void load_half_anywhere(uint32_t tile, memeff_rows from, int row0, int col0, int n, int log_eights,
                                  int thread) {
  FA_NO_UNROLL
  for (int i = thread; i < n; i += THREADS) {
    const int r = i >> log_eights, row = row0 + r, eight = i - (r << log_eights), col = col0 + eight * 8;
    const bool in_range = row < from.n_rows && col < from.n_cols;
    const uint16_t *const at =
        static_cast<const uint16_t *>(from.base) + from.first + (in_range ? row * from.stride + col : 0);
    load_eight(tile + r * ((16 << log_eights) + 16) + eight * 16, at, in_range, col, from.n_cols);
  }
}

FA_DEVICE constexpr int log2_of(int n) {
  return n > 1 ? 1 + log2_of(n / 2) : 0;
}

/* Loads ROWS x COLS of a head from row row0, column col0 on; zeros outside. aligned: rows begin on 16 bytes
 * and n_cols is a multiple of 8; the copies are then asynchronous, and the caller commits. */
template <int ROWS, int COLS, int THREADS>
FA_DEVICE void load_half(uint32_t tile, const memeff_rows &from, int row0, int col0, bool aligned, int thread) {
  constexpr int CHUNKS = COLS / 8;
  if constexpr (!may_have(FA_HAS_ALIGNED)) {
    static_assert(1 << log2_of(CHUNKS) == CHUNKS, "what is a row's is found by shifting");
    load_half_anywhere<THREADS>(tile, from, row0, col0, ROWS * CHUNKS, log2_of(CHUNKS), thread);
  } else {
    FA_NO_UNROLL
    for (int i = thread; i < ROWS * CHUNKS; i += THREADS) {
      const int r = i / CHUNKS, row = row0 + r, col = col0 + i % CHUNKS * 8;
      const uint32_t to = tile + r * half_row<COLS>::BYTES + i % CHUNKS * 16;
      const bool in_range = row < from.n_rows && col < from.n_cols;
      const uint16_t *const at =
          static_cast<const uint16_t *>(from.base) + from.first + (in_range ? row * from.stride + col : 0);
      if (rows_are_aligned(aligned))
        cp_async16(to, at, in_range);
      else
        load_eight(to, at, in_range, col, from.n_cols);
    }
  }
}

/* The lane's address for
 *   first_half_a      A: 16 rows from row0 on, k along the columns
 *   first_half_b      B: its columns are 16 rows of a tile
 *   first_half_rows   B: k along 16 rows, 16 columns at once */
template <int COLS> FA_DEVICE uint32_t first_half_a(uint32_t tile, int row0, int lane) {
  return tile + (row0 + lane % 16) * half_row<COLS>::BYTES + lane / 16 * 16;
}
template <int COLS> FA_DEVICE uint32_t first_half_b(uint32_t tile, int lane) {
  return tile + (lane % 8 + lane / 16 * 8) * half_row<COLS>::BYTES + lane / 8 % 2 * 16;
}
template <int COLS> FA_DEVICE uint32_t first_half_rows(uint32_t tile, int lane) {
  return tile + lane % 16 * half_row<COLS>::BYTES + lane / 16 * 16;
}

/* x += A B^T over COLS columns: A the warp's 16 rows, B 8 N8 rows. */
template <int COLS, int N8, class T>
FA_DEVICE void gemm_half(float (&x)[N8][4], uint32_t a_first, uint32_t b_first, T t) {
  static_assert(N8 % 2 == 0, "two tiles of 8 columns at once");
  FA_UNROLL
  for (int k = 0; k < COLS / 16; ++k) {
    uint32_t a[4];
    ldmatrix_x4(a, a_first + k * 32);
    FA_UNROLL
    for (int n = 0; n < N8; n += 2) {
      uint32_t b[4];
      ldmatrix_x4(b, b_first + n * 8 * half_row<COLS>::BYTES + k * 32);
      mma(x[n], a, b, t);
      mma(x[n + 1], a, b + 2, t);
    }
  }
}

/* x += W B: W the warp's accumulators over 8 K8 columns, rounded to 16 bits, B as many rows of a tile, 8 N8
 * of its columns. */
template <int COLS, int K8, int N8, class T>
FA_DEVICE void gemm_half_rows(float (&x)[N8][4], const float (&w)[K8][4], uint32_t b_first, T t) {
  static_assert(K8 % 2 == 0 && N8 % 2 == 0, "16 rows and 16 columns at once");
  FA_UNROLL
  for (int k = 0; k < K8; k += 2) {
    const uint32_t a[4] = {pack2(w[k][0], w[k][1], t), pack2(w[k][2], w[k][3], t),
                           pack2(w[k + 1][0], w[k + 1][1], t), pack2(w[k + 1][2], w[k + 1][3], t)};
    FA_UNROLL
    for (int n = 0; n < N8; n += 2) {
      uint32_t b[4];
      ldmatrix_x4_trans(b, b_first + k * 8 * half_row<COLS>::BYTES + n * 16);
      mma(x[n], a, b, t);
      mma(x[n + 1], a, b + 2, t);
    }
  }
}

} // namespace fa

#endif
