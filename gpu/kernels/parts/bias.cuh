/* Loads a tile of the bias into shared memory, and moves parts of rows of a bias or its gradient whose length
 * is not a multiple of 8. Tiles are those of tile.cuh; rows are queries, columns keys. */
#ifndef FA_GPU_KERNELS_PARTS_BIAS_CUH
#define FA_GPU_KERNELS_PARTS_BIAS_CUH

#include "gpu/kernels/params/attention.h"
#include "gpu/kernels/parts/tile.cuh"

namespace fa {

/* 8 elements of a row of a bias or of its gradient, of which the first n exist. */
FA_DEVICE vec4 load_some(const uint16_t *from, int n) {
  uint32_t w[4] = {0, 0, 0, 0};
  FA_UNROLL
  for (int i = 0; i < 8; ++i)
    if (i < n) w[i / 2] |= static_cast<uint32_t>(load_global(from + i)) << i % 2 * 16;
  return vec4{w[0], w[1], w[2], w[3]};
}
FA_DEVICE void store_some(uint16_t *to, vec4 v, int n) {
  const uint32_t w[4] = {v.x, v.y, v.z, v.w};
  FA_UNROLL
  for (int i = 0; i < 8; ++i)
    if (i < n) store_global(to + i, static_cast<uint16_t>(w[i / 2] >> i % 2 * 16));
}

/* Loads ROWS x KEYS of a head's bias from (row0, key0) on into a tile; n_rows: rows that exist from row0 on.
 * Elements outside become zeros. Asynchronous if p.bias_aligned; the caller commits. */
template <class C, int ROWS, int KEYS>
FA_DEVICE void load_bias(const fa_attention_params &p, uint32_t tile, int batch, int head, int row0, int n_rows,
                         int key0, int thread) {
  typedef tile_copy<KEYS, C::THREADS> copy;
  static_assert(copy::PARTS == 1 && ROWS % copy::ROWS_AT_ONCE == 0, "all threads copy whole columns");
  const int64_t stride = p.bias_stride.row;
  const uint16_t *from = static_cast<const uint16_t *>(p.bias) + batch * p.bias_stride.batch +
                         head * p.bias_stride.head + row0 * stride + key0 + copy::in_global(thread, stride);
  tile += copy::in_tile(thread);
  const int n_keys = p.seqlen_k - key0 - 8 * copy::chunk(thread); /* from the thread's chunk on */
  const int n_left = (n_keys > 0 ? n_rows : 0) - copy::first_row(thread);
  if (C::ALIGNED || p.bias_aligned) {
    FA_UNROLL
    for (int row = 0; row < ROWS; row += copy::ROWS_AT_ONCE) {
      cp_async16(tile + row * (KEYS * 2), from, row < n_left);
      if (row < n_left) from += copy::ROWS_AT_ONCE * stride;
    }
  } else {
    FA_NO_UNROLL
    for (int row = 0; row < ROWS; row += copy::ROWS_AT_ONCE) {
      store_shared16(tile + row * (KEYS * 2), row < n_left ? load_some(from, n_keys) : vec4{0, 0, 0, 0});
      if (row < n_left) from += copy::ROWS_AT_ONCE * stride;
    }
  }
}

} // namespace fa

#endif
