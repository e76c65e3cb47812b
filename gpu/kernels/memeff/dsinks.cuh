/* The gradient of the sinks: minus the sum over all sequences and rows of a head of the sink's share times delta. A
 * block has a head, and adds in a fixed order. */
#ifndef FA_GPU_KERNELS_MEMEFF_DSINKS_CUH
#define FA_GPU_KERNELS_MEMEFF_DSINKS_CUH

#include "gpu/kernels/memeff/backward.cuh"

namespace fa {

struct memeff_dsinks_config {
  static constexpr int THREADS = FA_MEMEFF_BACKWARD_THREADS, WARPS = THREADS / 32, SHARED_BYTES = WARPS * 4;
};

/* Where a sequence's rows begin in delta. */
FA_DEVICE int64_t first_delta(const fa_memeff_backward_params &p, const memeff_coord &t) {
  if (!p.forward.cu_seqlens_q || !p.delta_block) return statistics_of(p.forward, p.delta_stride, t, 0);
  const int64_t row =
      (t.seq.q_row + static_cast<int64_t>(t.batch) * p.delta_block) / p.delta_block * p.delta_block;
  return t.head * p.delta_stride.head + row * p.delta_stride.row;
}

/* A thread's share of one sequence's sum. */
FA_DEVICE float sum_of_sink(const fa_memeff_backward_params &p, const memeff_coord &t, float sink,
                            int thread) {
  const fa_attention_params &f = p.forward;
  const float *delta = p.delta + first_delta(p, t);
  float sum = 0.0f;
  FA_UNROLL_BY(4)
  for (int row = thread; row < t.seq.len_q; row += memeff_dsinks_config::THREADS) {
    const float lse = lse_of_p(f, t.head, load_global(f.lse + statistics_of(f, f.lse_stride, t, row)));
    sum = fmaf(exp_of(sink - lse), load_global(delta + row * p.delta_stride.row), sum);
  }
  return sum;
}

/* Grid: x over query heads. */
template <class T> FA_DEVICE void memeff_backward_dsinks(const fa_memeff_backward_params &p) {
  typedef memeff_dsinks_config C;
  const int thread = static_cast<int>(threadIdx.x), head = static_cast<int>(blockIdx.x);
  const float sink = sink_of(p.forward, head);
  float sum = 0.0f;
  FA_NO_UNROLL
  for (int batch = 0; batch < p.batch && sink > -infinity(); ++batch)
    sum += sum_of_sink(p, load_memeff_coord(p.forward, batch, head), sink, thread);
  FA_UNROLL
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += shfl_xor(sum, lanes);
  if (thread % 32 == 0) store_shared4(shared_base() + thread / 32 * 4, float_bits(sum));
  sync_block();
  if (thread > 0) return;
  for (int warp = 1; warp < C::WARPS; ++warp) sum += as_float(load_shared4(shared_base() + warp * 4));
  store_global(p.dsinks + head, -sum);
}

} // namespace fa

#endif
