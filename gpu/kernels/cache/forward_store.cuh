/* The epilogue of attention over a KV cache: the warps combine their parts in shared memory and store O and
 * LSE or, with several splits, partial results. */
#ifndef FA_GPU_KERNELS_CACHE_FORWARD_STORE_CUH
#define FA_GPU_KERNELS_CACHE_FORWARD_STORE_CUH

#include "gpu/kernels/cache/forward_config.cuh"
#include "gpu/kernels/cache/eight.cuh"
#include "gpu/kernels/parts/amax.cuh"
#include "gpu/kernels/parts/kind.cuh"
#include "gpu/kernels/parts/sink.cuh"
#include "gpu/kernels/parts/softmax.cuh"
#include "gpu/kernels/parts/statistics.cuh"

namespace fa {

/* Of the fewest rows: a lane has columns of two rows (cache_add_pv_transposed). */
template <class C> FA_DEVICE void store_transposed(uint32_t part, const float (&o)[C::O_TILES][4], int lane) {
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const uint32_t row = part + (lane % 4 * 2 + r) * C::PART_ROW;
    FA_UNROLL
    for (int m = 0; m < C::O_TILES; ++m) {
      const int column = 16 * m + lane / 4 * (C::EIGHT ? 2 : 1); /* even columns, then odd ones, or two runs of 8 */
      store_shared4(row + column * 4, float_bits(o[m][r]));
      store_shared4(row + (column + (C::EIGHT ? 1 : 8)) * 4, float_bits(o[m][r + 2]));
    }
  }
}

template <class C>
FA_DEVICE void store_part(uint32_t part, const float (&o)[C::O_TILES][4], const row_state (&state)[C::ROWS8],
                          int lane) {
  if constexpr (C::FEWEST) store_transposed<C>(part, o, lane);
  FA_UNROLL
  for (int r = 0; r < C::ROWS8; ++r) {
    const uint32_t row = part + (lane / 4 + 8 * r) * C::PART_ROW;
    FA_UNROLL
    for (int n = 0; n < (C::FEWEST ? 0 : C::O_TILES); ++n) {
      const uint32_t x = float_bits(o[n][2 * r]), y = float_bits(o[n][2 * r + 1]);
      if constexpr (C::EIGHT) { /* even columns, then odd ones (eight.cuh) */
        store_shared4(row + (n / 2 * 16 + n % 2 + lane % 4 * 4) * 4, x);
        store_shared4(row + (n / 2 * 16 + n % 2 + lane % 4 * 4) * 4 + 8, y);
      } else {
        store_shared4(row + (n * 8 + lane % 4 * 2) * 4, x);
        store_shared4(row + (n * 8 + lane % 4 * 2) * 4 + 4, y);
      }
    }
    const float sum = quad_sum(state[r].sum);
    if (lane % 4 == 0) store_shared4(row + C::D * 4, float_bits(state[r].max));
    if (lane % 4 == 1) store_shared4(row + C::D * 4 + 4, float_bits(sum));
  }
}

/* One row of all parts: O is the sum of weight[.] times the row of each part. */
template <class C> struct cache_joined_row {
  static constexpr int PARTS = C::FEW ? C::WARPS : 1;
  uint32_t first; /* address of the row in the first part */
  float weight[PARTS], max, sum;
};

template <class C> FA_DEVICE void join_parts(cache_joined_row<C> &w, int row, float scale_log2) {
  constexpr int PARTS = cache_joined_row<C>::PARTS;
  w.first = shared_base() + (C::FEW ? 0 : row / 16 * C::PART_STEP) + row % 16 * C::PART_ROW;
  w.max = -infinity();
  w.sum = 0.0f;
  FA_UNROLL
  for (int i = 0; i < PARTS; ++i) {
    w.weight[i] = as_float(load_shared4(w.first + i * C::PART_STEP + C::D * 4));
    w.max = max_float(w.max, w.weight[i]);
  }
  const float shift = w.max == -infinity() ? 0.0f : multiply(w.max, scale_log2);
  FA_UNROLL
  for (int i = 0; i < PARTS; ++i) {
    w.weight[i] = exp2_approx(multiply(w.weight[i], scale_log2) - shift);
    w.sum += w.weight[i] * as_float(load_shared4(w.first + i * C::PART_STEP + C::D * 4 + 4));
  }
}

/* Four columns of a row, normalised. */
template <class C> FA_DEVICE vec4 joined_columns(const cache_joined_row<C> &w, int column, float inverse) {
  float x[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  FA_UNROLL
  for (int i = 0; i < cache_joined_row<C>::PARTS; ++i) {
    const vec4 part = load_shared16(w.first + i * C::PART_STEP + column * 4);
    x[0] = fmaf(w.weight[i], as_float(part.x), x[0]);
    x[1] = fmaf(w.weight[i], as_float(part.y), x[1]);
    x[2] = fmaf(w.weight[i], as_float(part.z), x[2]);
    x[3] = fmaf(w.weight[i], as_float(part.w), x[3]);
  }
  return vec4{float_bits(x[0] * inverse), float_bits(x[1] * inverse), float_bits(x[2] * inverse),
              float_bits(x[3] * inverse)};
}

/* The index of a row in the partial results, without the split. */
FA_DEVICE int64_t partial_row(const fa_cache_params &p, const cache_work_tile &work, packed_row at) {
  const int64_t batch = p.cu_seqlens_q ? 0 : work.batch;
  return (batch * p.heads_q + at.head) * p.rows_of_head + work.seq.q_row + at.row;
}

FA_DEVICE uint16_t *row_of_o(const fa_cache_params &p, const cache_work_tile &work, packed_row at) {
  return p.o + work.batch * p.o_stride.batch + at.head * p.o_stride.head + (work.seq.q_row + at.row) * p.o_stride.row;
}

/* Stores eight columns of a row of O, which has so many, or of its partial results. */
template <class C>
FA_DEVICE void store_columns(const fa_cache_params &p, const cache_work_tile &work, packed_row at, int columns,
                             int column, vec4 x, vec4 y) {
  if (p.n_splits > 1) {
    vec4 *to = reinterpret_cast<vec4 *>(
        p.partial_o + (partial_row(p, work, at) * p.n_splits + work.split) * columns + column);
    store_global(to, x);
    store_global(to + 1, y);
    return;
  }
  uint16_t *to = row_of_o(p, work, at);
  typename C::T t;
  const vec4 v = {pack2(as_float(x.x), as_float(x.y), t), pack2(as_float(x.z), as_float(x.w), t),
                  pack2(as_float(y.x), as_float(y.y), t), pack2(as_float(y.z), as_float(y.w), t)};
  if (!C::GENERAL || p.aligned)
    store_chunk<true>(to + column, v);
  else
    store_chunk<false>(to + column, v);
}

/* Of all keys; -inf: there are none. */
FA_DEVICE void store_whole_lse(const fa_cache_params &p, const cache_work_tile &work, packed_row at, float lse) {
  store_global(p.lse + statistics_at(p, p.lse_stride, work.batch, at.head, work.seq.q_row, at.row),
               lse == -infinity() ? p.empty_lse : lse);
}

FA_DEVICE void store_lse(const fa_cache_params &p, const cache_work_tile &work, packed_row at, float lse) {
  if (p.n_splits > 1)
    store_global(p.partial_lse + partial_row(p, work, at) * p.n_splits + work.split, lse);
  else
    store_whole_lse(p, work, at, lse);
}

/* The special kernels have no sinks, and of several splits the combine counts them, once. */
template <class C>
FA_DEVICE finished_row finish_cache_row(const fa_cache_params &p, int head, float max, float sum) {
  if (C::GENERAL && p.n_splits == 1) return finish_row(p, head, max, sum, 1.0f);
  return finish_keys(max, sum, 1.0f, -infinity());
}

/* Where a block's rows go: O and LSE, or partial results, in memory. */
template <class C> struct cache_results {
  FA_DEVICE static void columns(const fa_cache_params &p, const cache_work_tile &work, int, packed_row at, int column,
                                vec4 x, vec4 y) {
    store_columns<C>(p, work, at, p.head_dim, column, x, y);
  }
  FA_DEVICE static void lse(const fa_cache_params &p, const cache_work_tile &work, int, packed_row at, float lse) {
    store_lse(p, work, at, lse);
  }
};

/* Of eight columns of O, and of a row whose largest P this is; that of a split is left to the combine, as its O is. */
FA_DEVICE void take_amax(amax_of_lane &most, const fa_cache_params &p, const cache_work_tile &work, packed_row at,
                         float largest_p, int chunk, vec4 x, vec4 y) {
  if (p.n_splits > 1) {
    if (chunk == 0)
      store_global(p.partial_p + partial_row(p, work, at) * p.n_splits + work.split, largest_p);
    return;
  }
  const uint32_t o[8] = {x.x, x.y, x.z, x.w, y.x, y.y, y.z, y.w};
  most.take_p(largest_p);
  FA_UNROLL
  for (int i = 0; i < 8; ++i) most.take_o(as_float(o[i]));
}

/* From the parts in shared memory to where rows go, by all threads. */
template <class C, class TO>
FA_DEVICE void cache_epilogue(const fa_cache_params &p, const cache_work_tile &work, int thread) {
  amax_of_lane most;
  const bool modified = cache_scores_are_modified<C>(p);
  const cache_scales scales = scales_of<C>(p, work);
  const float scale_log2 = modified ? LOG2E : scales.log2, scale = modified ? 1.0f : scales.score;
  const int n_chunks = p.head_dim / 8;
  FA_NO_UNROLL
  for (int i = thread; i < work.n_rows * (C::D / 8); i += C::THREADS) {
    const int row = i / (C::D / 8), chunk = i % (C::D / 8);
    if (chunk >= n_chunks) continue;
    const packed_row at = unpack_row(p, work.kv_head, work.row0 + row);
    cache_joined_row<C> w;
    join_parts<C>(w, row, scale_log2);
    const finished_row end = finish_cache_row<C>(p, at.head, w.max * scale, w.sum);
    const float factor = C::DESCALED ? multiply(end.factor, scales.value) : end.factor;
    const vec4 x = joined_columns<C>(w, chunk * 8, factor), y = joined_columns<C>(w, chunk * 8 + 4, factor);
    TO::columns(p, work, row, at, chunk * 8, x, y);
    if (C::DESCALED && p.amax.p) take_amax(most, p, work, at, end.factor, chunk, x, y);
    if (chunk == 0) TO::lse(p, work, row, at, end.lse);
  }
  if (C::DESCALED && p.amax.p && p.n_splits == 1) raise_amax(p.amax, most, thread % 32);
}

} // namespace fa

#endif
