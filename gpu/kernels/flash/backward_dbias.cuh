/* The gradient of a bias that is broadcast over the batch or the heads: clears the accumulators that the main
 * kernels by keys add dS to, and rounds the sums. An accumulator of the portable ones [batch or 1][heads or 1] has 16 x 8 tiles in
 * the order of mma's accumulator registers (as for dQ in gpu/kernels/params/flash_backward_grids.h), so that
 * a warp adds to contiguous memory. */
#ifndef FA_GPU_KERNELS_FLASH_BACKWARD_DBIAS_CUH
#define FA_GPU_KERNELS_FLASH_BACKWARD_DBIAS_CUH

#include "gpu/kernels/flash/backward_bias.cuh"
#include "gpu/kernels/flash/backward_convert.cuh"

namespace fa {

/* Grid: x over FA_DBIAS_CLEARED floats. */
FA_DEVICE void flash_backward_dbias_clear(const fa_backward_params &p) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * FA_DBIAS_CLEARED;
  FA_NO_UNROLL
  for (int i = static_cast<int>(threadIdx.x) * 4; i < FA_DBIAS_CLEARED;
       i += FA_BACKWARD_THREADS * 4)
    if (first + i < p.dbias_floats)
      store_global(reinterpret_cast<vec4 *>(p.dbias_accum + first + i), vec4{0, 0, 0, 0});
}

/* 16 rows of a sum in strips; from: their part of the strip. A thread makes 16 keys of two rows. */
template <class T>
FA_DEVICE void convert_dbias_strip(const fa_backward_params &p, const float *from, int batch, int head, int row0) {
  const int n_keys = p.forward.seqlen_k, n_rows = p.forward.seqlen_q;
  FA_NO_UNROLL
  for (int64_t i = threadIdx.x; i < (n_keys + 15) / 16 * 8ll; i += FA_BACKWARD_THREADS) {
    const int key0 = static_cast<int>(i / 8) * 16, r = static_cast<int>(i % 8) * 2;
    const float *pairs = from + key0 * static_cast<int64_t>(FA_DBIAS_STRIP) + r / 8 * 128 + r % 8 * 2;
    uint32_t to[4][4]; /* the two rows of the first 8 keys, then of the others */
    FA_UNROLL
    for (int q = 0; q < 4; ++q) {
      const vec4 even = load_global(reinterpret_cast<const vec4 *>(pairs + q * 32)),
                 odd = load_global(reinterpret_cast<const vec4 *>(pairs + q * 32 + 16));
      to[0][q] = pack2(as_float(even.x), as_float(odd.x), T());
      to[1][q] = pack2(as_float(even.y), as_float(odd.y), T());
      to[2][q] = pack2(as_float(even.z), as_float(odd.z), T());
      to[3][q] = pack2(as_float(even.w), as_float(odd.w), T());
    }
    FA_UNROLL
    for (int h = 0; h < 4; ++h) {
      const int row = row0 + r + h % 2, key = key0 + h / 2 * 8;
      if (row < n_rows && key < n_keys)
        store_dbias(p, p.dbias_sums, batch, head, row, key, n_keys - key, vec4{to[h][0], to[h][1], to[h][2], to[h][3]});
    }
  }
}

/* Grid: x over tiles of 16 rows, y over the heads and z over the batch of the sum. A thread makes 8 keys of
 * two rows. */
template <class T> FA_DEVICE void flash_backward_dbias_convert(const fa_backward_params &p) {
  const int n_keys = p.forward.seqlen_k, n_rows = p.forward.seqlen_q,
            row0 = static_cast<int>(blockIdx.x) * 16;
  const int head = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  const float *sums = p.dbias_accum + batch * p.dbias_accum_stride.batch + head * p.dbias_accum_stride.head;
  if (p.dbias_strips)
    return convert_dbias_strip<T>(p,
                                  sums + row0 / FA_DBIAS_STRIP * (FA_DBIAS_STRIP / 16) * p.dbias_accum_stride.row +
                                      row0 % FA_DBIAS_STRIP * 16,
                                  batch, head, row0);
  const float *from = sums + blockIdx.x * p.dbias_accum_stride.row;
  const int n_chunks = (n_keys + 7) / 8;
  FA_NO_UNROLL
  for (int64_t i = threadIdx.x; i < static_cast<int64_t>(n_chunks) * 8; i += FA_BACKWARD_THREADS) {
    const int chunk = static_cast<int>(i % n_chunks), r = static_cast<int>(i / n_chunks);
    uint32_t row[2][4];
    FA_UNROLL
    for (int q = 0; q < 4; ++q) {
      const vec4 v = load_global(reinterpret_cast<const vec4 *>(from + chunk * 128ll + (4 * r + q) * 4));
      row[0][q] = pack2(as_float(v.x), as_float(v.y), T());
      row[1][q] = pack2(as_float(v.z), as_float(v.w), T());
    }
    FA_UNROLL
    for (int h = 0; h < 2; ++h)
      if (row0 + r + 8 * h < n_rows)
        store_dbias(p, p.dbias_sums, batch, head, row0 + r + 8 * h, 8 * chunk, n_keys - 8 * chunk,
                    vec4{row[h][0], row[h][1], row[h][2], row[h][3]});
  }
}

} // namespace fa

#endif
