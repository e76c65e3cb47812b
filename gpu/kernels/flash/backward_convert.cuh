/* After the backward main kernel: sums the accumulators, scales, rounds to the element type, and stores dQ,
 * or dK and dV.
 *
 * A block works on BLOCK rows of one head. A thread makes two rows of one 16 x 8 accumulator tile: the
 * registers of the four lanes of a quad, which are contiguous in memory. */
#ifndef FA_GPU_KERNELS_FLASH_BACKWARD_CONVERT_CUH
#define FA_GPU_KERNELS_FLASH_BACKWARD_CONVERT_CUH

#include "gpu/kernels/flash/backward_copy.cuh"

namespace fa {

/* What is summed: n_splits accumulators of each of n_heads neighbouring heads. */
struct accumulators {
  const float *first;
  int n_heads;
  int64_t head_stride;
};

/* The 8 columns of rows r and r + 8 of a tile. */
FA_DEVICE void sum_accumulators(const fa_backward_params &p, const accumulators &from, int64_t at,
                                float (&upper)[8], float (&lower)[8]) {
  for (int i = 0; i < 8; ++i) upper[i] = lower[i] = 0.0f;
  for (int head = 0; head < from.n_heads; ++head)
    for (int split = 0; split < p.n_splits; ++split) {
      const float *part = from.first + head * from.head_stride + split * p.split_stride + at;
      FA_UNROLL
      for (int lane = 0; lane < 4; ++lane) {
        const vec4 v = load_global(reinterpret_cast<const vec4 *>(part + 4 * lane));
        upper[2 * lane] += as_float(v.x);
        upper[2 * lane + 1] += as_float(v.y);
        lower[2 * lane] += as_float(v.z);
        lower[2 * lane + 1] += as_float(v.w);
      }
    }
}

template <class C>
FA_DEVICE void store_scaled(const fa_backward_params &p, uint16_t *to, float factor,
                            const float (&x)[8]) {
  typename C::T t;
  const vec4 v = {pack2(x[0] * factor, x[1] * factor, t), pack2(x[2] * factor, x[3] * factor, t),
                  pack2(x[4] * factor, x[5] * factor, t), pack2(x[6] * factor, x[7] * factor, t)};
  if (p.forward.aligned)
    store_chunk<true>(to, v);
  else
    store_chunk<false>(to, v);
}

/* Converts n_rows rows, at most BLOCK. to: the first of them. */
template <class C>
FA_DEVICE void convert_rows(const fa_backward_params &p, const accumulators &from, uint16_t *to,
                            int64_t row_stride, int n_rows, int head_dim, float factor, int thread) {
  constexpr int CHUNKS = C::D / 8, UNITS = C::BLOCK / 16 * 8 * CHUNKS; /* a unit is rows r and r + 8 of a
                                                                          tile */
  for (int unit = thread; unit < UNITS; unit += C::THREADS) {
    /* neighbouring threads take neighbouring chunks of a row, so that their stores are contiguous */
    const int chunk = unit % CHUNKS, r = unit / CHUNKS % 8, tile = unit / (8 * CHUNKS), row = 16 * tile + r;
    if (row >= n_rows || chunk >= head_dim / 8) continue;
    float upper[8], lower[8];
    sum_accumulators(p, from, ((tile * CHUNKS + chunk) * 32 + 4 * r) * 4, upper, lower);
    store_scaled<C>(p, to + row * row_stride + chunk * 8, factor, upper);
    if (row + 8 < n_rows) store_scaled<C>(p, to + (row + 8) * row_stride + chunk * 8, factor, lower);
  }
}

/* dQ. */
template <class C> FA_DEVICE void flash_backward_convert(const fa_backward_params &p) {
  const int head = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  const int row0 = static_cast<int>(blockIdx.x) * C::BLOCK;
  const sequence seq = load_sequence(p.forward, batch);
  if (row0 >= seq.len_q) return;
  const accumulators from = {p.dq_accum + workspace_row<C::D>(p, batch, head, row0) * C::D, 1, 0};
  convert_rows<C>(p, from,
                  p.dq + batch * p.dq_stride.batch + head * p.dq_stride.head +
                      (static_cast<int64_t>(seq.q_row) + row0) * p.dq_stride.row,
                  p.dq_stride.row, min_int(C::BLOCK, seq.len_q - row0), p.forward.head_dim, p.scale,
                  static_cast<int>(threadIdx.x));
}

/* dK and dV of a KV head: summed over all query heads of its group. */
template <class C> FA_DEVICE void flash_backward_convert_keys(const fa_backward_params &p) {
  const int thread = static_cast<int>(threadIdx.x);
  const int head = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  const int block = static_cast<int>(blockIdx.x), key0 = block * C::BLOCK;
  const sequence seq = load_sequence(p.forward, batch);
  clear_masked_keys<C>(p, seq, batch, head, block, thread);
  if (key0 >= seq.len_k) return;
  const int n_keys = min_int(C::BLOCK, seq.len_k - key0), group = p.forward.heads_per_kv;
  const int64_t row = static_cast<int64_t>(seq.k_row) + key0;
  const int64_t at = workspace_key<C::D>(p, batch, head * group, key0) * C::D, head_stride = p.keys * C::D;
  convert_rows<C>(p, accumulators{p.dk_accum + at, group, head_stride},
                  p.dk + batch * p.dk_stride.batch + head * p.dk_stride.head + row * p.dk_stride.row,
                  p.dk_stride.row, n_keys, p.forward.head_dim, p.scale, thread);
  convert_rows<C>(p, accumulators{p.dv_accum + at, group, head_stride},
                  p.dv + batch * p.dv_stride.batch + head * p.dv_stride.head + row * p.dv_stride.row,
                  p.dv_stride.row, n_keys, p.forward.head_dim_v, p.forward.dropout_scale, thread);
}

} // namespace fa

#endif
