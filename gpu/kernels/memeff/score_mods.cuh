/* From raw scores to logits in kernels with score_mod and mask_mod, forward and backward: scale, softcap,
 * score_mod, ALiBi, bias; -inf where masked.
 *
 * A masked pair's logit is set to -inf whatever its expression returned, NaN and inf included. */
#ifndef FA_GPU_KERNELS_MEMEFF_SCORE_MODS_CUH
#define FA_GPU_KERNELS_MEMEFF_SCORE_MODS_CUH

#include "gpu/kernels/mods/blocks.cuh"
#include "gpu/kernels/memeff/score.cuh"

namespace fa {

/* The argument of score_mod. */
FA_DEVICE float scaled_score(const fa_attention_params &p, float product) {
  const float t = multiply(product, p.scale * p.score_sign);
  return may_have(FA_HAS_SOFTCAP) && p.softcap > 0.0f ? multiply(p.softcap, tanh_approx(t / p.softcap)) : t;
}
/* The derivative of softcap, from its result. */
FA_DEVICE float softcap_derivative(const fa_attention_params &p, float scaled) {
  if (!may_have(FA_HAS_SOFTCAP) || !(p.softcap > 0.0f)) return 1.0f;
  const float th = scaled / p.softcap;
  return fmaf(-th, th, 1.0f);
}

/* A row of the sequence; it may lie past the end. */
struct flex_row {
  row_limits limits;
  int64_t bias_at;
  float slope; /* of ALiBi */
};

FA_DEVICE flex_row load_flex_row(const fa_attention_params &p, const memeff_coord &t, int row) {
  flex_row x = {{0, 0}, 0, 0.0f};
  if (row < t.seq.len_q) x = flex_row{limits_of_row<true>(p, t.seq, row), bias_row(p, t, row), 0.0f};
  if (may_have(FA_HAS_ALIBI) && p.alibi_slopes)
    x.slope = load_global(p.alibi_slopes + t.batch * p.alibi_batch_stride + t.head);
  return x;
}

FA_DEVICE flex_pair flex_pair_of(const memeff_coord &t, int row, int key) {
  return flex_pair{t.batch, t.head, row, key, t.seq.len_q, t.seq.len_k};
}

FA_DEVICE bool is_in_limits(const flex_row &x, const flex_pair &at) {
  return at.j >= x.limits.lo && at.j < x.limits.hi;
}

/* The logit of a pair before masking: score_mod, ALiBi, bias. */
template <class MODS, class T>
FA_DEVICE float flex_modified(const fa_attention_params &p, const flex_row &x, const flex_pair &at,
                              float scaled) {
  float logit = MODS::score(p.flex, scaled, at);
  if (may_have(FA_HAS_ALIBI) && p.alibi_slopes) {
    const int distance = at.i + at.len_k - at.len_q - at.j;
    logit -= x.slope * static_cast<float>(distance < 0 ? -distance : distance);
  }
  if (may_have(FA_HAS_BIAS) && p.bias && is_in_limits(x, at)) logit += load_element(p.bias, x.bias_at + at.j, T());
  return logit;
}

/* Sets the masked pairs of a warp's tile to -inf. Expressions may be long, so the code exists for one column
 * of pairs only, in a loop that collects one bit per pair. */
template <class MODS, int N8>
FA_DEVICE void mask_pairs(float (&s)[N8][4], const fa_attention_params &p, const memeff_coord &t, int row, int key,
                          int kind) {
  static_assert(4 * N8 <= 32, "a bit for each pair");
  const flex_row x[2] = {load_flex_row(p, t, row), load_flex_row(p, t, row + 8)};
  uint32_t masked = 0;
  FA_NO_UNROLL
  for (int n = 0; n < N8; ++n) {
    FA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const flex_pair at = flex_pair_of(t, row + i / 2 * 8, key + 8 * n + i % 2);
      if (!is_in_limits(x[i / 2], at) || !flex_visible<MODS>(p.flex, kind, at)) masked |= 1u << (4 * n + i);
    }
  }
  FA_UNROLL
  for (int i = 0; i < 4 * N8; ++i)
    if (masked >> i & 1) s[i / 4][i % 4] = -infinity();
}

/* Logits of a warp's tile of 16 rows. row, key: of the lane's element 0, in the sequence. */
template <class MODS, class T, int N8>
FA_DEVICE void make_flex_logits(float (&s)[N8][4], const fa_attention_params &p, const memeff_coord &t, int row,
                                int key, int kind, int lane) {
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int i = row + 8 * r;
    const flex_row x = load_flex_row(p, t, i);
    FA_UNROLL
    for (int n = 0; n < N8; ++n) {
      FA_UNROLL
      for (int e = 0; e < 2; ++e) {
        float &score = s[n][2 * r + e];
        score = flex_modified<MODS, T>(p, x, flex_pair_of(t, i, key + 8 * n + e), scaled_score(p, score));
      }
    }
  }
  const int row0 = row - lane / 4, row1 = min_int(row0 + 16, t.seq.len_q), key0 = key - lane % 4 * 2;
  if (kind != FA_FLEX_FULL || keys_need_mask<true>(p, t.seq, row0, row1, key0, key0 + 8 * N8))
    mask_pairs<MODS>(s, p, t, row, key, kind);
}

} // namespace fa

#endif
