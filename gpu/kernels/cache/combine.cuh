/* The last step of split-KV attention: merges the splits' partial results. O = sum over splits of exp(LSE_s -
 * LSE) O_s, with LSE = log sum exp(LSE_s), to which a sink is added. A block works on one row.
 *
 * Its blocks may be launched before the splits are done; they wait for them.
 *
 * A split of weight 0 is not read: if the row saw no key of the split, that part of partial_o was never
 * written. */
#ifndef FA_GPU_KERNELS_CACHE_COMBINE_CUH
#define FA_GPU_KERNELS_CACHE_COMBINE_CUH

#include "gpu/kernels/machine/prim.cuh"
#include "gpu/kernels/params/cache.h"
#include "gpu/kernels/parts/amax.cuh"
#include "gpu/kernels/parts/kind.cuh"
#include "gpu/kernels/parts/sink.cuh"
#include "gpu/kernels/parts/softmax.cuh"
#include "gpu/kernels/parts/statistics.cuh"
#include "gpu/kernels/parts/tile.cuh"

namespace fa {

/* Threads form groups of head_dim / 4, four columns a thread; the groups take the splits in turn. */
template <class T_> struct cache_combine_config {
  typedef T_ T;
  static constexpr int THREADS = 128, SHARED_BYTES = THREADS * 16;
};

/* NaN if one of them is, in whichever place: all lanes of a warp must come to the same maximum, since what
 * follows is the whole warp's to do. */
FA_DEVICE float max_or_nan(float a, float b) {
  return a > b || a != a ? a : b;
}
FA_DEVICE float warp_max(float x) {
  FA_UNROLL
  for (int i = 16; i > 0; i /= 2) x = max_or_nan(x, shfl_xor(x, i));
  return x;
}
FA_DEVICE float warp_sum(float x) {
  FA_UNROLL
  for (int i = 16; i > 0; i /= 2) x += shfl_xor(x, i);
  return x;
}

/* LSE over all splits; -inf if the row saw no key. Every warp computes it for itself. */
FA_DEVICE float combined_lse(const float *lse, int n_splits, int lane) {
  float max = -infinity(), sum = 0.0f;
  for (int s = lane; s < n_splits; s += 32) max = max_or_nan(max, load_written(lse + s));
  max = warp_max(max);
  if (max == -infinity()) return max;
  for (int s = lane; s < n_splits; s += 32) sum += exp2_approx(multiply(load_written(lse + s) - max, LOG2E));
  return max + natural_log(warp_sum(sum));
}

/* to += a thread's four columns of splits first, first + step, ..., times their weights. */
FA_DEVICE void add_splits(float (&to)[4], const float *o, const float *lse, float total, int first, int step,
                          int n_splits, int head_dim) {
  FA_UNROLL_BY(4)
  for (int s = first; s < n_splits; s += step) {
    const float weight = exp2_approx(multiply(load_written(lse + s) - total, LOG2E));
    if (!(weight > 0.0f)) continue; /* NaN: the row saw no key in any split */
    const vec4 x = load_written(reinterpret_cast<const vec4 *>(o + static_cast<int64_t>(s) * head_dim));
    to[0] = fmaf(weight, as_float(x.x), to[0]);
    to[1] = fmaf(weight, as_float(x.y), to[1]);
    to[2] = fmaf(weight, as_float(x.z), to[2]);
    to[3] = fmaf(weight, as_float(x.w), to[3]);
  }
}

/* The largest P of a row: that of each split, times its weight. */
FA_DEVICE float combined_largest_p(const float *p, const float *lse, float total, int n_splits) {
  amax_of_lane most;
  FA_NO_UNROLL
  for (int s = 0; s < n_splits; ++s) {
    const float weight = exp2_approx(multiply(load_written(lse + s) - total, LOG2E));
    if (weight > 0.0f) most.take_p(weight * load_written(p + s));
  }
  return as_float(most.p);
}

/* Raises the call's largest O to that of a thread's four columns, and one thread P to that of the row. */
FA_DEVICE void combine_amax(const fa_cache_params &p, const float (&x)[4], const float *lse, float total, int64_t at,
                            int thread) {
  amax_of_lane most;
  FA_UNROLL
  for (int i = 0; i < 4; ++i) most.take_o(x[i]);
  atomic_max(p.amax.o, as_float(most.o));
  if (thread == 0)
    atomic_max(p.amax.p, combined_largest_p(p.partial_p + at * p.n_splits, lse, total, p.n_splits));
}

/* Which sequence a packed row belongs to. */
FA_DEVICE int sequence_of_row(const fa_cache_params &p, int64_t row) {
  int low = 0, high = p.batch; /* cu_seqlens_q[low] <= row < cu_seqlens_q[high] */
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (load_global(p.cu_seqlens_q + middle) <= row)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* batch, row: as in the partial results. */
FA_DEVICE float *combined_lse_at(const fa_cache_params &p, int64_t batch, int64_t head, int64_t row) {
  if (p.lse_padded && p.cu_seqlens_q) {
    batch = sequence_of_row(p, row);
    row -= load_global(p.cu_seqlens_q + batch);
  }
  return p.lse + statistics_at(p, p.lse_stride, batch, head, 0, row);
}

/* Grid: x over rows, as in the partial results. */
template <class C> FA_DEVICE void cache_combine(const fa_cache_params &p) {
  const int thread = static_cast<int>(threadIdx.x);
  const int per_group = p.head_dim / 4, n_groups = C::THREADS / per_group;
  const int group = thread / per_group, column = thread % per_group * 4;
  const int64_t at = blockIdx.x, head_at = at / p.rows_of_head;
  const float *lse = p.partial_lse + at * p.n_splits;
  wait_for_kernels_before();
  /* Packed queries: batch is 0, and row counts all of them. */
  const int64_t row = at - head_at * p.rows_of_head, batch = head_at / p.heads_q,
                head = head_at - batch * p.heads_q;
  const float keys = combined_lse(lse, p.n_splits, thread % 32);
  const float total = with_sink(keys, sink_of(p, head));

  float x[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  if (group < n_groups)
    add_splits(x, p.partial_o + at * p.n_splits * p.head_dim + column, lse, total, group, n_groups,
               p.n_splits, p.head_dim);
  store_shared16(shared_base() + thread * 16,
                 vec4{float_bits(x[0]), float_bits(x[1]), float_bits(x[2]), float_bits(x[3])});
  sync_block();
  if (group > 0) return;
  for (int g = 1; g < n_groups; ++g) {
    const vec4 y = load_shared16(shared_base() + (g * per_group + thread) * 16);
    x[0] += as_float(y.x);
    x[1] += as_float(y.y);
    x[2] += as_float(y.z);
    x[3] += as_float(y.w);
  }
  if (p.amax.p) combine_amax(p, x, lse, total, at, thread);
  uint16_t *to = p.o + batch * p.o_stride.batch + head * p.o_stride.head + row * p.o_stride.row + column;
  const uint32_t pairs[2] = {pack2(x[0], x[1], typename C::T()), pack2(x[2], x[3], typename C::T())};
  FA_UNROLL
  for (int i = 0; i < 2; ++i) {
    if (p.aligned) {
      store_global(reinterpret_cast<uint32_t *>(to) + i, pairs[i]);
    } else {
      store_global(to + 2 * i, static_cast<uint16_t>(pairs[i]));
      store_global(to + 2 * i + 1, static_cast<uint16_t>(pairs[i] >> 16));
    }
  }
  if (thread == 0)
    store_global(combined_lse_at(p, batch, head, row),
                 keys == -infinity() ? lse_without_keys(p, head)
                 : p.sinks_in_lse    ? total
                                     : keys);
}

} // namespace fa

#endif
