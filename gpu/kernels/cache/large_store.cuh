/* The epilogue of attention over a KV cache with large head dims: O goes through shared memory, from which whole
 * rows are stored. */
#ifndef FA_GPU_KERNELS_CACHE_LARGE_STORE_CUH
#define FA_GPU_KERNELS_CACHE_LARGE_STORE_CUH

#include "gpu/kernels/cache/forward_store.cuh"
#include "gpu/kernels/cache/large_config.cuh"

namespace fa {

/* A warp's part of O: [16 rows][run of 16 columns][half of it], accumulators of m16n8. */
template <class C> struct large_o {
  float x[C::ROW_GROUPS][C::RUNS][2][4] = {};
};

/* Addresses of the numbers of the block's rows. */
template <class C> FA_DEVICE uint32_t large_maximum(int key_group, int row) {
  return shared_base() + C::MAXIMA_AT + (key_group * C::BM + row) * 4;
}
template <class C> FA_DEVICE uint32_t large_factor(int row) {
  return shared_base() + C::FACTORS_AT + row * 4;
}

/* Sums take the place of maxima, and maxima that of factors. */
template <class C>
FA_DEVICE void store_large_parts(const large_o<C> &o, const fa_cache_params &p, const row_state (&state)[2], int row0,
                                 int key_group, int warp, int lane) {
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int row = row0 + lane / 4 + 8 * r;
    const float sum = quad_sum(state[r].sum);
    if (lane % 4 == 0) store_shared4(large_maximum<C>(key_group, row), float_bits(sum));
    if (lane % 4 == 1 && key_group == 0) store_shared4(large_factor<C>(row), float_bits(state[r].max));
  }
  FA_UNROLL
  for (int c = 0; c < C::RUNS; ++c) {
    const int column = (warp + c * C::WARPS) * 16 + lane % 4 * 2;
    if (column - lane % 4 * 2 >= p.head_dim_v) continue;
    FA_UNROLL
    for (int i = 0; i < C::ROW_GROUPS * 2; ++i) {
      const uint32_t row = shared_base() + (i * 8 + lane / 4) * C::ROW_BYTES + column * 4;
      FA_UNROLL
      for (int e = 0; e < 4; ++e)
        store_shared4(row + e / 2 * 32 + e % 2 * 4, float_bits(o.x[i / 2][c][e / 2][i % 2 * 2 + e % 2]));
    }
  }
}

/* Four columns of a row, normalised. */
template <class C> FA_DEVICE vec4 large_columns(int row, int column, float factor) {
  const vec4 v = load_shared16(shared_base() + row * C::ROW_BYTES + column * 4);
  return vec4{float_bits(as_float(v.x) * factor), float_bits(as_float(v.y) * factor),
              float_bits(as_float(v.z) * factor), float_bits(as_float(v.w) * factor)};
}

/* From shared memory to O and LSE, by all threads. */
template <class C> FA_DEVICE void large_epilogue(const fa_cache_params &p, const cache_work_tile &work, int thread) {
  const float scale = cache_scores_are_modified<C>(p) ? 1.0f : p.scale;
  const int n_chunks = p.head_dim_v / 8;
  FA_NO_UNROLL
  for (int i = thread; i < work.n_rows * n_chunks; i += C::THREADS) {
    const int row = i / n_chunks, chunk = i - row * n_chunks;
    const packed_row at = unpack_row(p, work.kv_head, work.row0 + row);
    float sum = 0.0f;
    FA_UNROLL
    for (int g = 0; g < C::KEY_GROUPS; ++g) sum += as_float(load_shared4(large_maximum<C>(g, row)));
    const finished_row end =
        finish_cache_row<C>(p, at.head, as_float(load_shared4(large_factor<C>(row))) * scale, sum);
    store_columns<C>(p, work, at, p.head_dim_v, chunk * 8, large_columns<C>(row, chunk * 8, end.factor),
                     large_columns<C>(row, chunk * 8 + 4, end.factor));
    if (chunk == 0) store_lse(p, work, at, end.lse);
  }
}

} // namespace fa

#endif
