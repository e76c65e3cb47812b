/* GEMMs of f32 tiles in shared memory, for kernels whose tiles are as wide as the head dim. The arithmetic is
 * the 3xTF32 of gpu/kernels/memeff/tile.cuh; the order of operations differs:
 *
 *   - Operands are loaded four floats at a time (by ldmatrix, whose 8 x 8 matrices of 16 bits are 8 x 4
 *     floats, or by 16-byte loads), split once, and used by all MMAs of a group of four tiles of 8 columns.
 *   - The three tf32 MMAs of the tiles of a group are interleaved, so that an MMA need not wait for the one
 *     before it on the same accumulators.
 *
 * GEMMs over rows of B (gemm_tile_rows) take 32 columns at a time: tile j of the four has columns 4 n + j. A
 * lane's accumulators of the four tiles are then two runs of four neighbouring columns, in each of two
 * rows. */
#ifndef FA_GPU_KERNELS_MEMEFF_GEMM_CUH
#define FA_GPU_KERNELS_MEMEFF_GEMM_CUH

#include "gpu/kernels/memeff/tile.cuh"

namespace fa {

/* One MMA step into four tiles, of which x[n] is the first. */
template <int N8>
FA_DEVICE void mma_group(float (&x)[N8][4], int n, const tf32_a &a, const tf32_b (&b)[4]) {
  FA_UNROLL
  for (int j = 0; j < 4; ++j) mma_tf32(x[n + j], a.small, b[j].k0.big, b[j].k4.big);
  FA_UNROLL
  for (int j = 0; j < 4; ++j) mma_tf32(x[n + j], a.big, b[j].k0.small, b[j].k4.small);
  FA_UNROLL
  for (int j = 0; j < 4; ++j) mma_tf32(x[n + j], a.big, b[j].k0.big, b[j].k4.big);
}

/* The lane's address for A: 16 rows from row0 on, k along the columns. */
template <int COLS> FA_DEVICE uint32_t first_tile_a(uint32_t tile, int row0, int lane) {
  return tile + (row0 + lane % 16) * memeff_row<COLS>::BYTES + lane / 16 * 16;
}
/* 8 columns of k from the address on. */
FA_DEVICE void load_tile_a(tf32_a &a, uint32_t at) {
  uint32_t x[4];
  ldmatrix_x4(x, at);
  FA_UNROLL
  for (int i = 0; i < 4; ++i) set_a(a, i, as_float(x[i]));
}

/* The same for B, whose columns are 8 rows of a tile; 16 columns of k. */
template <int COLS> FA_DEVICE uint32_t first_tile_b(uint32_t tile, int lane) {
  return tile + lane % 8 * memeff_row<COLS>::BYTES + lane / 8 * 16;
}
FA_DEVICE void load_tile_b(tf32_b &upper, tf32_b &lower, uint32_t at) {
  uint32_t x[4];
  ldmatrix_x4(x, at);
  upper = tf32_b{split(as_float(x[0])), split(as_float(x[1]))};
  lower = tf32_b{split(as_float(x[2])), split(as_float(x[3]))};
}

/* x += A B^T over the COLS columns of two tiles: A the warp's 16 rows, B 8 N8 rows. */
template <int COLS, int N8>
FA_DEVICE void gemm_tiles(float (&x)[N8][4], uint32_t a_first, uint32_t b_first) {
  FA_UNROLL_2
  for (int k = 0; k < COLS / 16; ++k) {
    tf32_a upper, lower;
    load_tile_a(upper, a_first + k * 64);
    load_tile_a(lower, a_first + k * 64 + 32);
    FA_UNROLL
    for (int n = 0; n < N8; n += 4) {
      tf32_b b[2][4];
      FA_UNROLL
      for (int j = 0; j < 4; ++j)
        load_tile_b(b[0][j], b[1][j], b_first + (n + j) * 8 * memeff_row<COLS>::BYTES + k * 64);
      mma_group(x, n, upper, b[0]);
      mma_group(x, n, lower, b[1]);
    }
  }
}

/* The lane's address for B: 32 columns from col0 on, k along the rows. Of every eight rows, k = l % 4 is row
 * l % 4 * 2, and k = l % 4 + 4 the next row. */
template <int COLS> FA_DEVICE uint32_t first_tile_rows(uint32_t tile, int col0, int lane) {
  return tile + lane % 4 * 2 * memeff_row<COLS>::BYTES + (col0 + lane / 4 * 4) * 4;
}
template <int COLS> FA_DEVICE void load_tile_rows(tf32_b (&b)[4], uint32_t at) {
  const vec4 even = load_shared16(at), odd = load_shared16(at + memeff_row<COLS>::BYTES);
  const uint32_t k0[4] = {even.x, even.y, even.z, even.w}, k4[4] = {odd.x, odd.y, odd.z, odd.w};
  FA_UNROLL
  for (int j = 0; j < 4; ++j) b[j] = tf32_b{split(as_float(k0[j])), split(as_float(k4[j]))};
}

/* x += W B: W the warp's accumulators of 8 K8 columns, B as many rows of a tile with all its columns. */
template <int COLS, int K8>
FA_DEVICE void gemm_tile_rows(float (&x)[COLS / 8][4], const float (&w)[K8][4], uint32_t b_first) {
  FA_UNROLL
  for (int k = 0; k < K8; ++k) {
    tf32_a a;
    accumulators_as_a(a, w[k]);
    FA_UNROLL
    for (int n = 0; n < COLS / 8; n += 4) {
      tf32_b b[4];
      load_tile_rows<COLS>(b, b_first + k * 8 * memeff_row<COLS>::BYTES + n * 32);
      mma_group(x, n, a, b);
    }
  }
}

/* x += A B for 32 columns of B. A is 16 rows of a tile whose columns are in the order of first_tile_rows;
 * [begin, end): the columns used, in eights. a_first and b_first are those of the whole tiles. */
template <int A_COLS, int B_COLS>
FA_DEVICE void gemm_ordered(float (&x)[4][4], uint32_t a_first, uint32_t b_first, int begin, int end) {
  FA_UNROLL_2
  for (int k = begin; k < end; ++k) {
    tf32_a a;
    tf32_b b[4];
    load_tile_a(a, a_first + k * 32);
    load_tile_rows<B_COLS>(b, b_first + k * 8 * memeff_row<B_COLS>::BYTES);
    mma_group(x, 0, a, b);
  }
}
/* The position of column c of eight in that order. */
FA_DEVICE int in_depth_order(int c) {
  return c / 2 + c % 2 * 4;
}

/* Stores a warp's 16 rows of a result of gemm_tile_rows, each of the lane's two rows times its factor. to:
 * row 0 of a tensor with n_cols columns; row: the lane's first. */
template <int N8>
FA_DEVICE void write_tile(float *to, int64_t stride, const float (&x)[N8][4], const float (&factor)[2],
                          int row, int n_rows, int n_cols, bool aligned, int lane) {
  FA_UNROLL
  for (int i = 0; i < N8; ++i) { /* 4 columns of a row */
    const int r = i % 2, n = i / 4 * 4, e = i / 2 % 2, col = 8 * n + lane % 4 * 8 + 4 * e;
    if (row + 8 * r >= n_rows || col >= n_cols) continue;
    float *at = to + (row + 8 * r) * stride + col;
    uint32_t y[4];
    FA_UNROLL
    for (int j = 0; j < 4; ++j) y[j] = float_bits(x[n + j][2 * r + e] * factor[r]);
    if (aligned) {
      store_global(reinterpret_cast<vec4 *>(at), vec4{y[0], y[1], y[2], y[3]});
      continue;
    }
    FA_UNROLL
    for (int j = 0; j < 4; ++j)
      if (col + j < n_cols) store_global(at + j, as_float(y[j]));
  }
}

} // namespace fa

#endif
