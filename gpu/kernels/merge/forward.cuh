/* O = sum w_i O_i / sum w_i with w_i = exp(L_i - max L), L = max L + log sum w_i. An empty part's O_i is not read: it may
 * hold anything. */
#ifndef FA_GPU_KERNELS_MERGE_FORWARD_CUH
#define FA_GPU_KERNELS_MERGE_FORWARD_CUH

#include "gpu/kernels/merge/row.cuh"

namespace fa {

/* The largest LSE, and the sum of all weights relative to it. -inf and 0: every part is empty. */
FA_DEVICE void merge_weights(const fa_merge_params &p, const merge_row &r, int lane, float &max, float &sum) {
  max = -infinity();
  sum = 0.0f;
  for (int k = lane; k < p.parts; k += 32) {
    const float lse = merge_part_lse(p, r, k);
    max = lse > max ? lse : max;
  }
  max = merge_warp_max(max);
  if (max == -infinity()) return;
  for (int k = lane; k < p.parts; k += 32) sum += merge_weight(p, merge_part_lse(p, r, k) - max);
  sum = merge_warp_sum(sum);
}

/* O in column `column` of the row, P the type of the parts. */
template <class P>
FA_DEVICE float merge_column(const fa_merge_params &p, const merge_row &r, int column, float max) {
  float x = 0.0f;
  for (int k = 0; k < p.parts; ++k) {
    const float lse = merge_part_lse(p, r, k);
    if (lse == -infinity()) continue;
    x = fmaf(merge_weight(p, lse - max), load_state(p.o_parts.data, merge_offset(p.o_parts, r, k) + column, P()), x);
  }
  return x;
}

template <class T, class P> FA_DEVICE void merge_forward(const fa_merge_params &p) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const merge_row r = merge_row_of_warp(p);
  float max, sum;
  if (!r.exists) return;
  merge_weights(p, r, lane, max, sum);
  const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;
  const int64_t to = merge_offset(p.o, r, 0);
  for (int column = lane; column < p.head_dim; column += 32)
    store_state(p.o.data, to + column, merge_column<P>(p, r, column, max) * inverse, T());
  if (lane == 0)
    store_state(p.lse.data, merge_offset(p.lse, r, 0), sum > 0.0f ? max + merge_log(p, sum) : -infinity(), f32());
}

} // namespace fa

#endif
