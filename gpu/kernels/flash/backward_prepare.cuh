/* Before the backward main kernel: delta = rowsum(dO * O) - dLSE in f32, the LSE in units of log2 (or as it
 * is), and cleared dQ accumulators where the main kernel needs them; or (flash_backward_clear) cleared
 * accumulators of dK and dV.
 *
 * A block works on BLOCK query rows of one head. Rows past the end of the sequence, up to whole tiles, get
 * LSE = +inf, so that the main kernel computes P = 0 for them without a test. So do fully masked rows. */
#ifndef FA_GPU_KERNELS_FLASH_BACKWARD_PREPARE_CUH
#define FA_GPU_KERNELS_FLASH_BACKWARD_PREPARE_CUH

#include "gpu/kernels/flash/backward_rows.cuh"
#include "gpu/kernels/parts/sink.cuh"
#include "gpu/kernels/parts/statistics.cuh"
#include "gpu/kernels/parts/tile.cuh"

namespace fa {

/* CLEAR: also clears the dQ accumulators. */
template <class T_, int D_, bool CLEAR_>
struct flash_backward_prepare_config : flash_backward_row_config<T_, D_> {
  static constexpr int D = D_;
  static constexpr int LANES = D <= 32    ? 4
                               : D <= 64  ? 8
                               : D <= 128 ? 16
                                          : 32; /* lanes that share a row, 8 columns each */
  static constexpr int ROWS_AT_ONCE = FA_BACKWARD_THREADS / LANES;
  static constexpr bool CLEAR = CLEAR_;
};

template <class T> FA_DEVICE float dot8(vec4 a, vec4 b) {
  const uint32_t x[4] = {a.x, a.y, a.z, a.w}, y[4] = {b.x, b.y, b.z, b.w};
  float sum = 0.0f;
  FA_UNROLL
  for (int i = 0; i < 4; ++i) {
    sum = fmaf(low_half(x[i], T()), low_half(y[i], T()), sum);
    sum = fmaf(high_half(x[i], T()), high_half(y[i], T()), sum);
  }
  return sum;
}

FA_DEVICE vec4 load_row_chunk(const uint16_t *p, int aligned) {
  return aligned ? load_chunk<true>(p) : load_chunk<false>(p);
}

template <class C> FA_DEVICE void flash_backward_prepare(const fa_backward_params &p) {
  const fa_attention_params &f = p.forward;
  const int thread = static_cast<int>(threadIdx.x);
  const int head = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  const int row0 = static_cast<int>(blockIdx.x) * C::BLOCK;
  const sequence seq = load_sequence(f, batch);
  if (row0 >= seq.len_q) return;
  const int64_t in_workspace = workspace_row<C::D>(p, batch, head, row0);
  const int chunk = thread % C::LANES;
  const uint16_t *o = f.o + batch * f.o_stride.batch + head * f.o_stride.head + chunk * 8;
  const uint16_t *d_o = p.d_o + batch * p.do_stride.batch + head * p.do_stride.head + chunk * 8;
  for (int i = thread / C::LANES; i < C::BLOCK; i += C::ROWS_AT_ONCE) {
    const bool exists = row0 + i < seq.len_q;
    const int64_t row = static_cast<int64_t>(seq.q_row) + row0 + i;
    float sum = 0.0f;
    if (exists && chunk < f.head_dim_v / 8)
      sum = dot8<typename C::T>(load_row_chunk(o + row * f.o_stride.row, f.aligned),
                                load_row_chunk(d_o + row * p.do_stride.row, f.aligned));
    FA_UNROLL
    for (int lanes = C::LANES / 2; lanes > 0; lanes /= 2) sum += shfl_xor(sum, lanes);
    if (chunk != 0) continue;
    float lse = infinity();
    if (exists) {
      lse = load_global(f.lse + statistics_at(f, f.lse_stride, batch, head, seq.q_row, row0 + i));
      const row_limits limits = limits_of_row<true>(f, seq, row0 + i);
      if (limits.lo >= limits.hi || lse == -infinity())
        lse = infinity(); /* fully masked, by the masks or by a bias of -inf */
      lse = lse_of_p(f, head, lse);
      if (p.d_lse)
        sum -= load_global(p.d_lse + statistics_at(f, p.dlse_stride, batch, head, seq.q_row, row0 + i));
    }
    store_global(p.lse_log2 + in_workspace + i, lse * p.lse_factor);
    store_global(p.delta + in_workspace + i, sum);
  }
  if (C::CLEAR) clear_accumulators<C>(p, p.dq_accum, in_workspace, thread);
  if (C::CLEAR && p.dq_semaphore && thread < C::BLOCK / FA_DQ_SEMAPHORE_ROWS)
    store_global(p.dq_semaphore + in_workspace / FA_DQ_SEMAPHORE_ROWS + thread, 0u);
}

/* A block clears BLOCK keys of one query head. */
template <class C> FA_DEVICE void flash_backward_clear(const fa_backward_params &p) {
  const int head = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  const int key0 = static_cast<int>(blockIdx.x) * C::BLOCK, thread = static_cast<int>(threadIdx.x);
  if (key0 >= load_sequence(p.forward, batch).len_k) return;
  const int64_t row = workspace_key<C::D>(p, batch, head, key0);
  clear_accumulators<C>(p, p.dk_accum, row, thread);
  clear_accumulators<C>(p, p.dv_accum, row, thread);
}

} // namespace fa

#endif
