/* After the backward main loop: dQ = scale * (sum of the accumulators), rounded to the element type.
 *
 * One block per BLOCK query rows of one head; a thread makes two rows of one 16 x 8 accumulator tile, whose
 * registers of the four lanes of a quad lie side by side. */
#ifndef FA_GPU_KERNELS_FLASH_BACKWARD_CONVERT_CUH
#define FA_GPU_KERNELS_FLASH_BACKWARD_CONVERT_CUH

#include "gpu/kernels/flash_backward_rows.cuh"
#include "gpu/kernels/tile.cuh"

namespace fa {

template <class T_, int D_> struct flash_backward_convert_config {
  typedef T_ T;
  static constexpr int D = D_, BLOCK = fa_flash_backward_row_block(D), THREADS = FA_FLASH_BACKWARD_THREADS;
};

template <class C>
FA_DEVICE void store_dq_row(const fa_flash_backward_params &p, uint16_t *dq, const float (&x)[8]) {
  typename C::T t;
  const vec4 v = {pack2(x[0] * p.scale, x[1] * p.scale, t), pack2(x[2] * p.scale, x[3] * p.scale, t),
                  pack2(x[4] * p.scale, x[5] * p.scale, t), pack2(x[6] * p.scale, x[7] * p.scale, t)};
  if (p.forward.aligned)
    store_chunk<true>(dq, v);
  else
    store_chunk<false>(dq, v);
}

template <class C> FA_DEVICE void flash_backward_convert(const fa_flash_backward_params &p) {
  constexpr int CHUNKS = C::D / 8, UNITS = C::BLOCK / 16 * 8 * CHUNKS; /* unit: rows r, r + 8 of a tile */
  const fa_flash_params &f = p.forward;
  const int head = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  const int row0 = static_cast<int>(blockIdx.x) * C::BLOCK;
  const sequence seq = load_sequence(f, batch);
  if (row0 >= seq.len_q) return;
  const float *accum = p.dq_accum + workspace_row<C::D>(p, batch, head, row0) * C::D;
  uint16_t *dq = p.dq + batch * p.dq_stride.batch + head * p.dq_stride.head +
                 (static_cast<int64_t>(seq.q_row) + row0) * p.dq_stride.row;
  for (int unit = static_cast<int>(threadIdx.x); unit < UNITS; unit += C::THREADS) {
    /* neighbours in a row take the row's chunks, so that they store side by side */
    const int chunk = unit % CHUNKS, r = unit / CHUNKS % 8, tile = unit / (8 * CHUNKS), row = 16 * tile + r;
    if (row0 + row >= seq.len_q || chunk >= f.head_dim / 8) continue;
    const float *from = accum + ((tile * CHUNKS + chunk) * 32 + 4 * r) * 4;
    float upper[8] = {}, lower[8] = {};
    for (int split = 0; split < p.n_splits; ++split) {
      FA_UNROLL
      for (int lane = 0; lane < 4; ++lane) {
        const vec4 v = load_global(reinterpret_cast<const vec4 *>(from + split * p.split_stride + 4 * lane));
        upper[2 * lane] += as_float(v.x);
        upper[2 * lane + 1] += as_float(v.y);
        lower[2 * lane] += as_float(v.z);
        lower[2 * lane + 1] += as_float(v.w);
      }
    }
    store_dq_row<C>(p, dq + row * p.dq_stride.row + chunk * 8, upper);
    if (row0 + row + 8 < seq.len_q) store_dq_row<C>(p, dq + (row + 8) * p.dq_stride.row + chunk * 8, lower);
  }
}

} // namespace fa

#endif
