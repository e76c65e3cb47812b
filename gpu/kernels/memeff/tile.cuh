/* Tiles of f32 in shared memory, and the GEMMs of the memeff kernels on them: for float32 elements, and for
 * head dims that no 16-bit kernel supports. Elements of any type are converted to f32 when they are loaded.
 *
 * GEMMs are 3xTF32: x = big + small, x y = small big + big small + big big; the fourth product is below f32's
 * precision. They are as accurate as f32 arithmetic, on tensor cores.
 *
 * A row of COLS floats, a multiple of 32, is padded to COLS + 4. Eight rows by four columns of a fragment are
 * then in 32 different banks, and so are two neighbouring rows by eight columns, for GEMMs with k along the
 * rows. */
#ifndef FA_GPU_KERNELS_MEMEFF_TILE_CUH
#define FA_GPU_KERNELS_MEMEFF_TILE_CUH

#include "gpu/kernels/parts/traits.cuh"

namespace fa {

template <int COLS> struct memeff_row {
  static_assert(COLS % 32 == 0, "so that rows begin four banks apart");
  static constexpr int BYTES = (COLS + 4) * 4;
};

/* ---- elements ---- */

FA_DEVICE float load_element(const void *base, int64_t index, f32) {
  return load_global(static_cast<const float *>(base) + index);
}
template <class T> FA_DEVICE float load_element(const void *base, int64_t index, T) {
  return low_half(load_global(static_cast<const uint16_t *>(base) + index), T());
}
FA_DEVICE void store_element(void *base, int64_t index, float x, f32) {
  store_global(static_cast<float *>(base) + index, x);
}
template <class T> FA_DEVICE void store_element(void *base, int64_t index, float x, T) {
  store_global(static_cast<uint16_t *>(base) + index, static_cast<uint16_t>(pack2(x, 0.0f, T())));
}

template <class T> struct is_f32 { static constexpr bool value = false; };
template <> struct is_f32<f32> { static constexpr bool value = true; };

/* ---- loads from global memory ---- */

/* The rows of one head of a tensor. first: offset of the first row; stride: from one row to the next, in
 * elements. */
struct memeff_rows {
  const void *base;
  int64_t first, stride;
  int n_rows, n_cols; /* outside: zeros, and no read */
};

/* Loads ROWS x COLS of them from row row0, column col0 on. aligned (f32 only): rows begin on 16 bytes and
 * n_cols is a multiple of 4; the copies are then asynchronous, and the caller commits. */
template <class T, int ROWS, int COLS, int THREADS>
FA_DEVICE void load_memeff_tile(uint32_t tile, const memeff_rows &from, int row0, int col0, bool aligned, int thread) {
  constexpr int QUADS = COLS / 4;
  FA_NO_UNROLL
  for (int i = thread; i < ROWS * QUADS; i += THREADS) {
    const int r = i / QUADS, row = row0 + r, col = col0 + i % QUADS * 4;
    const uint32_t to = tile + r * memeff_row<COLS>::BYTES + i % QUADS * 16;
    const bool in_range = row < from.n_rows && col < from.n_cols;
    const int64_t at = from.first + (in_range ? row * from.stride + col : 0);
    if (is_f32<T>::value && rows_are_aligned(aligned)) {
      cp_async16(to, static_cast<const float *>(from.base) + at, in_range);
      continue;
    }
    uint32_t x[4];
    FA_UNROLL
    for (int e = 0; e < 4; ++e)
      x[e] = in_range && col + e < from.n_cols ? float_bits(load_element(from.base, at + e, T())) : 0;
    store_shared16(to, vec4{x[0], x[1], x[2], x[3]});
  }
}

/* ---- GEMMs ---- */

struct tf32_parts {
  uint32_t big, small;
};

/* An MMA uses the upper 19 bits; adding half a unit of them first rounds to nearest. The big part gets it as a number: added to
 * the bits, it would carry those of a NaN into the sign, and leave a zero. (The small part of a NaN does become zero that way,
 * and that of infinity, which is a NaN as it is computed.) */
FA_DEVICE tf32_parts split(float x) {
  const float power = as_float(float_bits(x) & 0xff800000u); /* of two, below x: 2^11 times half a unit */
  tf32_parts p;
  p.big = float_bits(x + power * 0x1p-11f) & 0xffffe000u;
  p.small = float_bits(x - as_float(p.big)) + 0x1000u;
  return p;
}

struct tf32_a {
  uint32_t big[4], small[4];
};
struct tf32_b {
  tf32_parts k0, k4; /* k = l % 4 and l % 4 + 4, column l / 4 */
};

FA_DEVICE void mma_3xtf32(float (&d)[4], const tf32_a &a, const tf32_b &b) {
  mma_tf32(d, a.small, b.k0.big, b.k4.big);
  mma_tf32(d, a.big, b.k0.small, b.k4.small);
  mma_tf32(d, a.big, b.k0.big, b.k4.big);
}

FA_DEVICE void set_a(tf32_a &a, int i, float x) {
  const tf32_parts p = split(x);
  a.big[i] = p.big;
  a.small[i] = p.small;
}

/* A: 16 rows of a tile, 8 columns of k. first: the lane's address, at row l / 4 and column l % 4. */
template <int COLS> FA_DEVICE void load_memeff_a(tf32_a &a, uint32_t first) {
  FA_UNROLL
  for (int i = 0; i < 4; ++i)
    set_a(a, i, as_float(load_shared4(first + i % 2 * 8 * memeff_row<COLS>::BYTES + i / 2 * 16)));
}
/* B whose columns are 8 rows of a tile, 8 columns of k; first as for A. */
FA_DEVICE tf32_b load_memeff_b(uint32_t first) {
  return tf32_b{split(as_float(load_shared4(first))), split(as_float(load_shared4(first + 16)))};
}
template <int COLS> FA_DEVICE uint32_t memeff_fragment_rows(uint32_t tile, int row0, int lane) {
  return tile + (row0 + lane / 4) * memeff_row<COLS>::BYTES + lane % 4 * 4;
}

/* The accumulators of 8 columns as an A operand, for GEMMs with k along the columns of an accumulator tile.
 * Registers stay where they are: k = l % 4 is column l % 4 * 2, k = l % 4 + 4 the next, and B takes its rows
 * in that order. */
FA_DEVICE void accumulators_as_a(tf32_a &a, const float (&x)[4]) {
  set_a(a, 0, x[0]);
  set_a(a, 1, x[2]);
  set_a(a, 2, x[1]);
  set_a(a, 3, x[3]);
}
/* B: 8 columns of a tile, 8 rows of k in that order. first: the lane's address, at row l % 4 * 2, column l /
 * 4. */
template <int COLS> FA_DEVICE tf32_b load_memeff_b_rows(uint32_t first) {
  return tf32_b{split(as_float(load_shared4(first))),
                split(as_float(load_shared4(first + memeff_row<COLS>::BYTES)))};
}
template <int COLS> FA_DEVICE uint32_t memeff_fragment_depth_rows(uint32_t tile, int lane) {
  return tile + lane % 4 * 2 * memeff_row<COLS>::BYTES + lane / 4 * 4;
}

/* x += A B^T over one chunk of COLS columns: A the warp's 16 rows, B N8 * 8 rows. */
template <int COLS, int N8>
FA_DEVICE void gemm_chunk(float (&x)[N8][4], uint32_t a_first, uint32_t b_first) {
  FA_UNROLL_2
  for (int k = 0; k < COLS / 8; ++k) {
    tf32_a a;
    load_memeff_a<COLS>(a, a_first + k * 32);
    FA_UNROLL
    for (int n = 0; n < N8; ++n)
      mma_3xtf32(x[n], a, load_memeff_b(b_first + n * 8 * memeff_row<COLS>::BYTES + k * 32));
  }
}

/* x += W B: W the warp's accumulators over K8 * 8 columns, B as many rows of a tile, N8 * 8 of its
 * columns. */
template <int COLS, int K8, int N8>
FA_DEVICE void gemm_rows(float (&x)[N8][4], const float (&w)[K8][4], uint32_t b_first) {
  FA_UNROLL
  for (int k = 0; k < K8; ++k) {
    tf32_a a;
    accumulators_as_a(a, w[k]);
    FA_UNROLL
    for (int n = 0; n < N8; ++n)
      mma_3xtf32(x[n], a, load_memeff_b_rows<COLS>(b_first + k * 8 * memeff_row<COLS>::BYTES + n * 32));
  }
}

} // namespace fa

#endif
