/* Tiles of 16-bit elements in shared memory: ROWS x D, rows of D/8 chunks of 16 bytes, swizzled to avoid bank
 * conflicts.
 *
 *   D a multiple of 64          chunk c of row r is at position c ^ (r % 8) of the row. The eight rows that
 *                               one ldmatrix phase or one column of 16-byte stores accesses then fall into
 *                               eight different groups of banks.
 *   D an odd multiple of 32     consecutive rows already begin four groups of banks apart, and c ^ (r / 2 %
 *                               4) takes care of the other two bits.
 *
 * So a swizzle permutes aligned runs of 8 or 4 chunks. */
#ifndef FA_GPU_KERNELS_PARTS_TILE_CUH
#define FA_GPU_KERNELS_PARTS_TILE_CUH

#include "gpu/kernels/machine/prim.cuh"

namespace fa {

template <int D> struct tile_row {
  static_assert(D % 32 == 0, "the swizzles permute 8 or 4 chunks");
  static constexpr bool POWER_OF_2 = (D & (D - 1)) == 0;
  static constexpr int RUN = D % 64 == 0 ? 8 : 4; /* chunks that the swizzle permutes */
};

template <int D> FA_DEVICE uint32_t tile_offset(int row, int chunk) {
  const int swizzle = tile_row<D>::RUN == 8 ? row & 7 : row >> 1 & 3;
  return static_cast<uint32_t>(row * (D * 2) + ((chunk ^ swizzle) << 4));
}

/* The address `chunks` to the right of `first`. first's chunk and `chunks` must have no bit in common, and
 * tiles must begin at a multiple of 128 bytes (of a row's size, if that is a power of two). */
template <int D> FA_DEVICE uint32_t tile_right(uint32_t first, int chunks) {
  constexpr int RUN = tile_row<D>::RUN;
  if (tile_row<D>::POWER_OF_2) return first ^ static_cast<uint32_t>(chunks << 4);
  return (first ^ static_cast<uint32_t>(chunks % RUN << 4)) +
         static_cast<uint32_t>(chunks / RUN * (RUN * 16));
}

/* 8 elements at any address. */
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

/* The chunks of a tile that a thread copies: in each of PARTS runs of columns one column of chunks, every
 * ROWS_AT_ONCE-th row from its first. */
template <int D, int THREADS> struct tile_copy {
  static constexpr int CHUNKS = tile_row<D>::POWER_OF_2 && D <= 128 ? D / 8 : tile_row<D>::RUN;
  static constexpr int PARTS = D / 8 / CHUNKS, ROWS_AT_ONCE = THREADS / CHUNKS;
  static_assert(THREADS % CHUNKS == 0 && ROWS_AT_ONCE % 8 == 0, "the rows of a thread share their swizzle");
  FA_DEVICE static int first_row(int thread) { return thread / CHUNKS; }
  FA_DEVICE static int chunk(int thread) { return thread % CHUNKS; } /* of the first part */
  /* What the thread adds to the address of row 0 for its chunk of the first part. Those of the next parts are
   * PART_BYTES and PART_ELEMENTS further. */
  FA_DEVICE static uint32_t in_tile(int thread) { return tile_offset<D>(first_row(thread), chunk(thread)); }
  FA_DEVICE static int64_t in_global(int thread, int64_t row_stride) {
    return first_row(thread) * row_stride + chunk(thread) * 8;
  }
  static constexpr int PART_BYTES = CHUNKS * 16, PART_ELEMENTS = CHUNKS * 8;
  /* True if the thread's column of this part lies within head_dim. */
  FA_DEVICE static bool in_part(int part, int thread, int head_dim) {
    return part * CHUNKS + chunk(thread) < head_dim / 8;
  }
};

/* Loads ROWS rows of a tile from global memory. tile, global: the thread's own addresses, with in_tile and
 * in_global added. Rows from n_rows on and columns from head_dim on become zeros and are not read. If a row
 * has several parts, the padding lies in the last (head_dim > D - 32) unless C is MIXED. aligned: every row
 * begins on 16 bytes; the copies are then asynchronous, and the caller commits. */
template <int ROWS, class C>
FA_DEVICE void load_tile(uint32_t tile, const uint16_t *global, int64_t row_stride, int n_rows, int thread,
                         int head_dim = C::D, bool aligned = C::ALIGNED) {
  constexpr int D = C::D;
  typedef tile_copy<D, C::THREADS> copy;
  static_assert(copy::PARTS == 1 || copy::PART_ELEMENTS >= 32, "padding is in the last part");
  static_assert(ROWS % copy::ROWS_AT_ONCE == 0, "no thread copies past the tile");
  const bool last_part = copy::in_part(copy::PARTS - 1, thread, head_dim);
  const int n_left = (copy::PARTS > 1 || last_part ? n_rows : 0) - copy::first_row(thread);
  const auto in_columns = [&](int part) {
    return C::MIXED && copy::PARTS > 1 ? copy::in_part(part, thread, head_dim)
                                       : part < copy::PARTS - 1 || last_part;
  };
  const int64_t step = copy::ROWS_AT_ONCE * row_stride;
  if (C::ALIGNED || aligned) {
    FA_UNROLL
    for (int row = 0; row < ROWS; row += copy::ROWS_AT_ONCE) {
      FA_UNROLL
      for (int part = 0; part < copy::PARTS; ++part)
        cp_async16(tile + row * (D * 2) + part * copy::PART_BYTES, global + part * copy::PART_ELEMENTS,
                   row < n_left && in_columns(part));
      if (row < n_left) global += step;
    }
  } else {
    FA_NO_UNROLL
    for (int row = 0; row < ROWS; row += copy::ROWS_AT_ONCE) {
      FA_NO_UNROLL
      for (int part = 0; part < copy::PARTS; ++part) {
        const bool read = row < n_left && in_columns(part);
        store_shared16(tile + row * (D * 2) + part * copy::PART_BYTES,
                       read ? load_global_8x2(global + part * copy::PART_ELEMENTS) : vec4{0, 0, 0, 0});
      }
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

/* One 16-byte chunk of an input row. */
template <bool ALIGNED> FA_DEVICE vec4 load_chunk(const uint16_t *p) {
  return ALIGNED ? load_global(reinterpret_cast<const vec4 *>(p)) : load_global_8x2(p);
}

/* ---- fragments of mma.m16n8k16 ----
 *
 * Each lane keeps one address per tile: that of its 16-byte row in the first fragment. The next fragments are
 * two chunks to the right (tile_right) and 16 rows down, so the unrolled loops need no table of addresses. */

template <int D> FA_DEVICE uint32_t fragment_address(uint32_t first, int rows16, int chunks2) {
  return tile_right<D>(first, 2 * chunks2) + static_cast<uint32_t>(rows16 * (16 * D * 2));
}

/* A from a tile whose rows are A's rows: fragment (m, k) covers rows 16m.., k 16k... */
template <int D> FA_DEVICE uint32_t first_a(uint32_t tile, int row0, int lane) {
  return tile + tile_offset<D>(row0 + lane % 16, lane / 16);
}
template <int D> FA_DEVICE void load_a(uint32_t (&a)[4], uint32_t first, int m, int k) {
  ldmatrix_x4(a, fragment_address<D>(first, m, k));
}
/* A from a tile whose rows run along A's k (P in P^T dO: its rows are queries): fragment (m, k) covers tile
 * columns 16m.., tile rows 16k... The next m is two chunks to the right. */
template <int D> FA_DEVICE uint32_t first_a_trans(uint32_t tile, int chunk0, int lane) {
  return tile + tile_offset<D>(lane % 8 + lane / 16 * 8, lane / 8 % 2 + chunk0);
}
template <int D> FA_DEVICE void load_a_trans(uint32_t (&a)[4], uint32_t first, int m, int k) {
  ldmatrix_x4_trans(a, fragment_address<D>(first, k, m));
}
/* B from a tile whose rows are B's columns (K in Q K^T: its rows are keys): columns 16n.., k 16k.., as two
 * fragments of 8 columns, b[0..1] and b[2..3]. */
template <int D> FA_DEVICE uint32_t first_b(uint32_t tile, int lane) {
  return tile + tile_offset<D>(lane % 8 + lane / 16 * 8, lane / 8 % 2);
}
template <int D> FA_DEVICE void load_b(uint32_t (&b)[4], uint32_t first, int n, int k) {
  ldmatrix_x4(b, fragment_address<D>(first, n, k));
}
/* B from a tile whose rows run along B's k (V in P V: its rows are keys): k 16k.., columns 16n... */
template <int D> FA_DEVICE uint32_t first_b_trans(uint32_t tile, int lane, int chunk0 = 0) {
  return tile + tile_offset<D>(lane % 16, lane / 16 + chunk0);
}
template <int D> FA_DEVICE void load_b_trans(uint32_t (&b)[4], uint32_t first, int k, int n) {
  ldmatrix_x4_trans(b, fragment_address<D>(first, k, n));
}

} // namespace fa

#endif
