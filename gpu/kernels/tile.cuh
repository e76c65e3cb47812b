/* Tiles of 16-bit elements in shared memory: ROWS x D, rows of D/8 chunks of 16 bytes.
 *
 * Chunk c of row r stands at position c ^ (r % 8) of the row: the eight rows that one ldmatrix phase or one
 * column of 16-byte stores touches then fall into eight different groups of banks. */
#ifndef FA_GPU_KERNELS_TILE_CUH
#define FA_GPU_KERNELS_TILE_CUH

#include "gpu/kernels/prim.cuh"

namespace fa {

template <int D> FA_DEVICE uint32_t tile_offset(int row, int chunk) {
  static_assert(D % 64 == 0, "the swizzle permutes groups of 8 chunks");
  return static_cast<uint32_t>(row * (D * 2) + ((chunk ^ (row & 7)) << 4));
}

/* 8 elements from any address. */
FA_DEVICE vec4 load_global_8x2(const uint16_t *p) {
  uint32_t w[4];
  FA_UNROLL
  for (int i = 0; i < 4; ++i)
    w[i] = load_global(p + 2 * i) | static_cast<uint32_t>(load_global(p + 2 * i + 1)) << 16;
  return vec4{w[0], w[1], w[2], w[3]};
}
FA_DEVICE void store_global_8x2(uint16_t *p, vec4 v) {
  const uint32_t w[4] = {v.x, v.y, v.z, v.w};
  FA_UNROLL
  for (int i = 0; i < 4; ++i) {
    store_global(p + 2 * i, static_cast<uint16_t>(w[i]));
    store_global(p + 2 * i + 1, static_cast<uint16_t>(w[i] >> 16));
  }
}

/* Rows 0..ROWS-1 of the tile from global rows of the given stride; rows from n_rows on become zeros and are
 * not read. ALIGNED: every row begins on 16 bytes; the copies are asynchronous then (one group, to be
 * committed by the caller). */
template <int ROWS, int D, int THREADS, bool ALIGNED>
FA_DEVICE void load_tile(uint32_t tile, const uint16_t *global, int64_t row_stride, int n_rows, int thread) {
  constexpr int CHUNKS = D / 8, ROWS_AT_ONCE = THREADS / CHUNKS;
  static_assert(THREADS % CHUNKS == 0 && ROWS % ROWS_AT_ONCE == 0,
                "every thread copies the same number of chunks");
  const int chunk = thread % CHUNKS;
  FA_UNROLL
  for (int row = thread / CHUNKS; row < ROWS; row += ROWS_AT_ONCE) {
    const bool in_range = row < n_rows;
    const uint16_t *p = in_range ? global + row * row_stride + chunk * 8 : global;
    if (ALIGNED)
      cp_async16(tile + tile_offset<D>(row, chunk), p, in_range);
    else
      store_shared16(tile + tile_offset<D>(row, chunk), in_range ? load_global_8x2(p) : vec4{0, 0, 0, 0});
  }
}

/* One 16-byte chunk of an output row. */
template <bool ALIGNED> FA_DEVICE void store_chunk(uint16_t *p, vec4 v) {
  if (ALIGNED)
    store_global(reinterpret_cast<vec4 *>(p), v);
  else
    store_global_8x2(p, v);
}

/* ---- fragments of mma.m16n8k16; lane l of the warp ---- */

/* A: rows row0..row0+15, depth 16*kk..16*kk+15. */
template <int D> FA_DEVICE void load_a(uint32_t (&a)[4], uint32_t tile, int row0, int kk, int lane) {
  ldmatrix_x4(a, tile + tile_offset<D>(row0 + lane % 16, 2 * kk + lane / 16));
}
/* B from a tile whose rows are B's columns (K: columns are keys): columns col0..col0+15, as two fragments
 * b[0..1], b[2..3]. */
template <int D> FA_DEVICE void load_b(uint32_t (&b)[4], uint32_t tile, int col0, int kk, int lane) {
  ldmatrix_x4(b, tile + tile_offset<D>(col0 + lane % 8 + lane / 16 * 8, 2 * kk + lane / 8 % 2));
}
/* B from a tile whose rows are B's depth (V: depth is keys): depth 16*kk.., columns 16*cc..16*cc+15. */
template <int D> FA_DEVICE void load_b_trans(uint32_t (&b)[4], uint32_t tile, int kk, int cc, int lane) {
  ldmatrix_x4_trans(b, tile + tile_offset<D>(16 * kk + lane % 16, 2 * cc + lane / 16));
}

} // namespace fa

#endif
