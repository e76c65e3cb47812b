/* The gradients of one pair (row, key) with score_mod and mask_mod, for the backward kernels.
 *
 *   p = exp(logit - LSE), g = p (Z dP - delta)       g is the gradient of the bias; Z is 1 without dropout
 *   dS = g * d score_mod / d score * d softcap / d score
 *                                                    the gradient of the scaled product
 *   g * d score_mod / d element                      the contribution to a captured element
 *
 * A pair that is masked, or whose P is 0, has p = g = dS = 0 and contributes nothing. The zeros are set, not
 * computed, because its expression and derivatives may be NaN or infinite. */
#ifndef FA_GPU_KERNELS_MEMEFF_BACKWARD_MODS_CUH
#define FA_GPU_KERNELS_MEMEFF_BACKWARD_MODS_CUH

#include "gpu/kernels/mods/gradient.cuh"
#include "gpu/kernels/memeff/dropout_mods.cuh"
#include "gpu/kernels/memeff/score_mods.cuh"
#include "gpu/kernels/params/memeff_backward.h"
#include "gpu/kernels/parts/sink.cuh"
#include "gpu/kernels/parts/statistics.cuh"

namespace fa {

/* The offset of a row of a tensor. */
FA_DEVICE int64_t row_at(const fa_kernel_strides &s, const memeff_coord &t, int row) {
  return t.batch * s.batch + t.head * s.head + (t.seq.q_row + static_cast<int64_t>(row)) * s.row;
}
/* And of its LSE, dLSE or delta. */
FA_DEVICE int64_t statistics_of(const fa_attention_params &f, const fa_kernel_strides &s, const memeff_coord &t,
                                int row) {
  return statistics_at(f, s, t.batch, t.head, t.seq.q_row, row);
}

/* What the pairs of a query row need; past the last row it has no keys. */
struct flex_query {
  flex_row row;
  float lse, delta;
};

FA_DEVICE flex_query load_flex_query(const fa_memeff_backward_params &p, const memeff_coord &t, int row) {
  const fa_attention_params &f = p.forward;
  flex_query q = {load_flex_row(f, t, row), 0.0f, 0.0f};
  if (row >= t.seq.len_q) return q;
  q.lse = lse_of_p(f, t.head, load_global(f.lse + statistics_of(f, f.lse_stride, t, row)));
  q.delta = load_global(p.delta + statistics_of(f, p.delta_stride, t, row));
  return q;
}

struct flex_flow {
  float p, g;
};

/* Which pairs of a warp's tile are masked: bit 4 n + i for element [n][i]. The tile has 16 keys by 8 N8 rows
 * (BY_KEYS), or 16 rows by 8 N8 keys; row, key: of the lane's element 0. Expressions may be long, so the code
 * exists for a lane's four pairs of one n only, in a loop. */
template <class MODS, int N8, bool BY_KEYS>
FA_DEVICE uint32_t flex_masked(const fa_attention_params &f, const memeff_coord &t, int row, int key, int kind,
                               int lane) {
  static_assert(4 * N8 <= 32, "a bit for each pair");
  const int row0 = row - (BY_KEYS ? lane % 4 * 2 : lane / 4), row1 = row0 + (BY_KEYS ? 8 * N8 : 16);
  const int key0 = key - (BY_KEYS ? lane / 4 : lane % 4 * 2), key1 = key0 + (BY_KEYS ? 16 : 8 * N8);
  if (kind == FA_FLEX_FULL && row1 <= t.seq.len_q && !keys_need_mask<true>(f, t.seq, row0, row1, key0, key1))
    return 0;
  uint32_t masked = 0;
  FA_NO_UNROLL
  for (int n = 0; n < N8; ++n) {
    FA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int across = i / 2 * 8, along = 8 * n + i % 2;
      const flex_pair at =
          flex_pair_of(t, row + (BY_KEYS ? along : across), key + (BY_KEYS ? across : along));
      const row_limits limits = at.i < at.len_q ? limits_of_row<true>(f, t.seq, at.i) : row_limits{0, 0};
      if (at.j < limits.lo || at.j >= limits.hi || !flex_visible<MODS>(f.flex, kind, at))
        masked |= 1u << (4 * n + i);
    }
  }
  return masked;
}

/* scaled: the pair's score after scale and softcap. p: what dV is made of, 0 where the pair is dropped; it and dP are scaled
 * by 1 / (1 - p_drop) here and where dV is stored. */
template <class MODS, class T>
FA_DEVICE flex_flow flex_flow_of(const fa_attention_params &f, const flex_query &q, const flex_pair &at,
                                 bool masked, bool dropped, float scaled, float dp) {
  if (MODS::DROPS && flex_drops(f)) dp = dropped ? 0.0f : dp * f.dropout_scale;
  const float logit = flex_modified<MODS, T>(f, q.row, at, scaled);
  if (masked || logit == -infinity() || q.lse == -infinity()) return flex_flow{0.0f, 0.0f};
  const float prob = exp2_approx(multiply(logit - q.lse, 1.44269504088896340736f));
  return flex_flow{dropped ? 0.0f : prob, prob == 0.0f ? 0.0f : prob * (dp - q.delta)};
}

/* dS; add: as for MODS::derivative. */
template <class MODS, class F>
FA_DEVICE float flex_score_gradient(const fa_attention_params &f, const flex_pair &at, float scaled, float g,
                                    const F &add) {
  if (g == 0.0f) return 0.0f;
  return g * MODS::derivative(f.flex, scaled, at, add) * softcap_derivative(f, scaled);
}

/* For kernels that leave the contributions to captured elements to others. */
struct no_shares {
  FA_DEVICE void operator()(int, int64_t, float) const {}
};

/* The kind of a tile in a walk; FA_FLEX_FULLY_MASKED if the walk does not visit it. */
template <class MODS> FA_DEVICE int kind_of_tile(const tile_walk<MODS> &tiles, int tile) {
  int low = tiles.begin(), high = tiles.end();
  while (low < high) {
    const int middle = (low + high) / 2;
    if (tiles.at(middle).tile < tile)
      low = middle + 1;
    else
      high = middle;
  }
  if (low >= tiles.end()) return FA_FLEX_FULLY_MASKED;
  const flex_tile found = tiles.at(low);
  return found.tile == tile ? found.kind : FA_FLEX_FULLY_MASKED;
}

} // namespace fa

#endif
