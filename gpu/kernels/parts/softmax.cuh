/* Online softmax over key blocks, for the rows that a thread holds in m16n8 accumulator tiles.
 *
 * In a warp's 16 x N accumulator, lane l holds row l/4 in elements 0, 1 and row l/4 + 8 in elements 2, 3 of
 * every 8-wide tile; the four lanes of a quad share a row. The state of a row is the maximum of its scores so
 * far (raw, before scaling) and this lane's share of the sum of exp2((score - max) * scale_log2). */
#ifndef FA_GPU_KERNELS_PARTS_SOFTMAX_CUH
#define FA_GPU_KERNELS_PARTS_SOFTMAX_CUH

#include "gpu/kernels/machine/prim.cuh"

namespace fa {

/* max: of the raw scores; sum: this lane's share. */
struct row_state {
  float max = -infinity(), sum = 0.0f;
};

FA_DEVICE float max_float(float a, float b) {
  return a > b ? a : b;
}

FA_DEVICE float quad_max(float x) {
  x = max_float(x, shfl_xor(x, 1));
  return max_float(x, shfl_xor(x, 2));
}
FA_DEVICE float quad_sum(float x) {
  x += shfl_xor(x, 1);
  return x + shfl_xor(x, 2);
}

/* Replaces the scores of one row (r = 0: elements 0, 1; r = 1: elements 2, 3) by their exponentials; returns
 * the factor by which O and the sum are rescaled. While a row has seen no visible key its maximum is -inf; 0
 * takes its place then, so that exp2 gives 0 and not NaN. */
template <int N_TILES>
FA_DEVICE float softmax_row(float (&s)[N_TILES][4], int r, float scale_log2, row_state &row) {
  float m = row.max;
  FA_UNROLL
  for (int n = 0; n < N_TILES; ++n) m = max_float(m, max_float(s[n][2 * r], s[n][2 * r + 1]));
  m = quad_max(m);
  const float shift = m == -infinity() ? 0.0f : multiply(m, scale_log2);
  const float rescale = exp2_approx(multiply(row.max, scale_log2) - shift); /* exactly 1 if m is unchanged */
  float sum = 0.0f;
  FA_UNROLL
  for (int n = 0; n < N_TILES; ++n) {
    FA_UNROLL
    for (int e = 2 * r; e < 2 * r + 2; ++e) {
      s[n][e] = exp2_approx(fmaf(s[n][e], scale_log2, -shift));
      sum += s[n][e];
    }
  }
  row.sum = row.sum * rescale + sum;
  row.max = m;
  return rescale;
}

/* The same for logits: the maximum is subtracted before the scaling to base 2. Logits may be as low as
 * -FLT_MAX, which has no finite value in units of log2. */
template <int N_TILES> FA_DEVICE float softmax_row_of_logits(float (&s)[N_TILES][4], int r, row_state &row) {
  const float log2e = 1.44269504088896340736f;
  float m = row.max;
  FA_UNROLL
  for (int n = 0; n < N_TILES; ++n) m = max_float(m, max_float(s[n][2 * r], s[n][2 * r + 1]));
  m = quad_max(m);
  const float base = m == -infinity() ? 0.0f : m;
  const float rescale = exp2_approx(multiply(row.max - base, log2e));
  float sum = 0.0f;
  FA_UNROLL
  for (int n = 0; n < N_TILES; ++n) {
    FA_UNROLL
    for (int e = 2 * r; e < 2 * r + 2; ++e) {
      s[n][e] = exp2_approx(multiply(s[n][e] - base, log2e));
      sum += s[n][e];
    }
  }
  row.sum = row.sum * rescale + sum;
  row.max = m;
  return rescale;
}

} // namespace fa

#endif
