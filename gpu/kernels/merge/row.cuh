/* What the kernels that merge partial states share. A warp works on one row; its lanes share the columns, and the parts
 * where only their LSE is looked at. */
#ifndef FA_GPU_KERNELS_MERGE_ROW_CUH
#define FA_GPU_KERNELS_MERGE_ROW_CUH

#include "gpu/kernels/machine/prim.cuh"
#include "gpu/kernels/params/merge.h"
#include "gpu/kernels/parts/kind.cuh"

namespace fa {

FA_DEVICE float load_state(const void *base, int64_t index, f32) {
  return load_global(static_cast<const float *>(base) + index);
}
template <class T> FA_DEVICE float load_state(const void *base, int64_t index, T) {
  return low_half(static_cast<uint32_t>(load_global(static_cast<const uint16_t *>(base) + index)), T());
}
FA_DEVICE void store_state(void *base, int64_t index, float x, f32) {
  store_global(static_cast<float *>(base) + index, x);
}
template <class T> FA_DEVICE void store_state(void *base, int64_t index, float x, T) {
  store_global(static_cast<uint16_t *>(base) + index, static_cast<uint16_t>(pack2(x, 0.0f, T())));
}

struct merge_row {
  int64_t batch, head, row;
  bool exists;
};

FA_DEVICE merge_row merge_row_of_warp(const fa_merge_params &p) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * FA_MERGE_ROWS + static_cast<int>(threadIdx.x) / 32;
  const int64_t head_at = at / p.rows, batch = head_at / p.heads;
  return merge_row{batch, head_at - batch * p.heads, at - head_at * p.rows, at < p.n_rows};
}

FA_DEVICE int64_t merge_offset(const fa_merge_tensor &t, const merge_row &r, int part) {
  return part * t.part + r.batch * t.stride.batch + r.head * t.stride.head + r.row * t.stride.row;
}

FA_DEVICE float merge_warp_max(float x) {
  FA_UNROLL
  for (int i = 16; i > 0; i /= 2) {
    const float y = shfl_xor(x, i);
    x = y > x ? y : x;
  }
  return x;
}
FA_DEVICE float merge_warp_sum(float x) {
  FA_UNROLL
  for (int i = 16; i > 0; i /= 2) x += shfl_xor(x, i);
  return x;
}

/* The LSE of a part of the row; -inf where the part is empty, which some say by +inf. */
FA_DEVICE float merge_part_lse(const fa_merge_params &p, const merge_row &r, int part) {
  const float lse = load_state(p.lse_parts.data, merge_offset(p.lse_parts, r, part), f32());
  return lse == infinity() ? -infinity() : lse;
}

/* exp or exp2 of a difference of two LSEs. */
FA_DEVICE float merge_weight(const fa_merge_params &p, float difference) {
  return exp2_approx(p.base_2 ? difference : multiply(difference, LOG2E));
}
/* log or log2. */
FA_DEVICE float merge_log(const fa_merge_params &p, float sum) {
  const float x = natural_log(sum);
  return p.base_2 ? multiply(x, LOG2E) : x;
}

} // namespace fa

#endif
