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

/* Which chunks of a tile a thread copies: its column of chunks, every ROWS_AT_ONCE-th row from its first. */
template <int D, int THREADS> struct tile_copy {
  static constexpr int CHUNKS = D / 8, ROWS_AT_ONCE = THREADS / CHUNKS;
  static_assert(THREADS % CHUNKS == 0 && ROWS_AT_ONCE % 8 == 0, "the rows of a thread share their swizzle");
  FA_DEVICE static int first_row(int thread) { return thread / CHUNKS; }
  FA_DEVICE static int chunk(int thread) { return thread % CHUNKS; }
  /* What the thread adds to the address of row 0. */
  FA_DEVICE static uint32_t in_tile(int thread) { return tile_offset<D>(first_row(thread), chunk(thread)); }
  FA_DEVICE static int64_t in_global(int thread, int64_t row_stride) {
    return first_row(thread) * row_stride + chunk(thread) * 8;
  }
};

/* ROWS rows of a tile from global rows. tile, global: the thread's own addresses, in_tile and in_global
 * added. Rows from n_rows on become zeros and are not read. C::ALIGNED: every row begins on 16 bytes; the
 * copies are asynchronous then, to be committed by the caller. */
template <int ROWS, class C>
FA_DEVICE void load_tile(uint32_t tile, const uint16_t *global, int64_t row_stride, int n_rows, int thread) {
  constexpr int D = C::D;
  typedef tile_copy<D, C::THREADS> copy;
  const int n_left = n_rows - copy::first_row(thread);
  const int64_t step = copy::ROWS_AT_ONCE * row_stride;
  if (C::ALIGNED) {
    FA_UNROLL
    for (int row = 0; row < ROWS; row += copy::ROWS_AT_ONCE) {
      cp_async16(tile + row * (D * 2), global, row < n_left);
      if (row < n_left) global += step;
    }
  } else {
    FA_NO_UNROLL
    for (int row = 0; row < ROWS; row += copy::ROWS_AT_ONCE) {
      store_shared16(tile + row * (D * 2), row < n_left ? load_global_8x2(global) : vec4{0, 0, 0, 0});
      if (row < n_left) global += step;
    }
  }
}

/* One 16-byte chunk of an output row. */
template <bool ALIGNED> FA_DEVICE void store_chunk(uint16_t *p, vec4 v) {
  if (ALIGNED)
    store_global(reinterpret_cast<vec4 *>(p), v);
  else
    store_global_8x2(p, v);
}

/* The same the other way. */
template <bool ALIGNED> FA_DEVICE vec4 load_chunk(const uint16_t *p) {
  return ALIGNED ? load_global(reinterpret_cast<const vec4 *>(p)) : load_global_8x2(p);
}

/* ---- fragments of mma.m16n8k16 ----
 *
 * Each lane keeps one address per tile, of its 16-byte row in the first fragment. Two chunks to the right is
 * then an exclusive or (tiles begin on a multiple of the row size, and the swizzle only permutes chunks), 16
 * rows down an addition; so the unrolled loops need no table of addresses. */

template <int D> FA_DEVICE uint32_t fragment_address(uint32_t first, int rows16, int chunks2) {
  return (first ^ static_cast<uint32_t>(chunks2 << 5)) + static_cast<uint32_t>(rows16 * (16 * D * 2));
}

/* A from a tile whose rows are A's: fragment (m, k) covers rows 16m.., depth 16k... */
template <int D> FA_DEVICE uint32_t first_a(uint32_t tile, int row0, int lane) {
  return tile + tile_offset<D>(row0 + lane % 16, lane / 16);
}
template <int D> FA_DEVICE void load_a(uint32_t (&a)[4], uint32_t first, int m, int k) {
  ldmatrix_x4(a, fragment_address<D>(first, m, k));
}
/* A from a tile whose rows are A's depth (P for P^T dO: they are queries): rows (tile columns) 16m..,
 * depth 16k... Two chunks to the right are the next m. */
template <int D> FA_DEVICE uint32_t first_a_trans(uint32_t tile, int chunk0, int lane) {
  return tile + tile_offset<D>(lane % 8 + lane / 16 * 8, lane / 8 % 2 + chunk0);
}
template <int D> FA_DEVICE void load_a_trans(uint32_t (&a)[4], uint32_t first, int m, int k) {
  ldmatrix_x4_trans(a, fragment_address<D>(first, k, m));
}
/* B from a tile whose rows are B's columns (K: they are keys): columns 16n.., depth 16k.., as two fragments
 * of 8 columns, b[0..1] and b[2..3]. */
template <int D> FA_DEVICE uint32_t first_b(uint32_t tile, int lane) {
  return tile + tile_offset<D>(lane % 8 + lane / 16 * 8, lane / 8 % 2);
}
template <int D> FA_DEVICE void load_b(uint32_t (&b)[4], uint32_t first, int n, int k) {
  ldmatrix_x4(b, fragment_address<D>(first, n, k));
}
/* B from a tile whose rows are B's depth (V: it is keys): depth 16k.., columns 16n... */
template <int D> FA_DEVICE uint32_t first_b_trans(uint32_t tile, int lane, int chunk0 = 0) {
  return tile + tile_offset<D>(lane % 16, lane / 16 + chunk0);
}
template <int D> FA_DEVICE void load_b_trans(uint32_t (&b)[4], uint32_t first, int k, int n) {
  ldmatrix_x4_trans(b, fragment_address<D>(first, k, n));
}

} // namespace fa

#endif
