/* dO_i = w_i dO and dL_i = w_i (dL + c dO . (O_i - O)) with w_i = exp(L_i - L), from the forward's O and L; c is ln 2 in base 2.
 * Of an empty part both are 0. */
#ifndef FA_GPU_KERNELS_MERGE_BACKWARD_CUH
#define FA_GPU_KERNELS_MERGE_BACKWARD_CUH

#include "gpu/kernels/merge/row.cuh"

namespace fa {

static constexpr float MERGE_LN_2 = 0.69314718055994530942f;

/* dO . (O_i - O) of the row, the same in every lane. */
template <class T, class P>
FA_DEVICE float merge_slope(const fa_merge_params &p, const merge_row &r, int part, int lane) {
  const int64_t part_at = merge_offset(p.o_parts, r, part), at = merge_offset(p.o, r, 0),
                d_at = merge_offset(p.d_o, r, 0);
  float sum = 0.0f;
  for (int column = lane; column < p.head_dim; column += 32) {
    const float apart =
        load_state(p.o_parts.data, part_at + column, P()) - load_state(p.o.data, at + column, T());
    sum = fmaf(load_state(p.d_o.data, d_at + column, T()), apart, sum);
  }
  return merge_warp_sum(sum);
}

template <class T, class P>
FA_DEVICE void merge_part_backward(const fa_merge_params &p, const merge_row &r, int part, float total, float d_lse,
                                   int lane) {
  const float lse = merge_part_lse(p, r, part);
  const bool empty = lse == -infinity();
  const float weight = empty ? 0.0f : merge_weight(p, lse - total);
  const float slope = empty ? 0.0f : merge_slope<T, P>(p, r, part, lane);
  const int64_t to = merge_offset(p.do_parts, r, part), d_at = merge_offset(p.d_o, r, 0);
  for (int column = lane; column < p.head_dim; column += 32) {
    const float d_o = load_state(p.d_o.data, d_at + column, T());
    store_state(p.do_parts.data, to + column, multiply(weight, d_o), P());
  }
  if (lane == 0)
    store_state(p.dlse_parts.data, merge_offset(p.dlse_parts, r, part),
                weight * (d_lse + (p.base_2 ? multiply(slope, MERGE_LN_2) : slope)), f32());
}

template <class T, class P> FA_DEVICE void merge_backward(const fa_merge_params &p) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const merge_row r = merge_row_of_warp(p);
  if (!r.exists) return;
  const float total = load_state(p.lse.data, merge_offset(p.lse, r, 0), f32());
  const float d_lse = p.d_lse.data ? load_state(p.d_lse.data, merge_offset(p.d_lse, r, 0), f32()) : 0.0f;
  for (int k = 0; k < p.parts; ++k) merge_part_backward<T, P>(p, r, k, total, d_lse, lane);
}

} // namespace fa

#endif
