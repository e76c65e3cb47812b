/* score_mod and mask_mod on transposed scores: what hopper_compute_p and hopper_compute_ds are for the other
 * kinds, but with the LSE in natural units. What an expression returns for a masked pair is not used: its P
 * and dS are set to 0. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_FLEX_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_FLEX_CUH

#include "gpu/kernels/mods/gradient.cuh"
#include "gpu/kernels/hopper_backward/scores.cuh"

namespace fa {

#ifndef __CUDACC__
/* True if gradients of captured buffers are wanted. */
inline bool hopper_has_reads(const fa_flex_args &x) {
  return x.functions->derivative && x.functions->n_reads > 0;
}
#endif

struct hopper_no_reads {
  FA_DEVICE void operator()(int, int64_t, float) const {}
};

/* The pair (row, key) of a thread's [n][2r + e], from its first pair. */
FA_DEVICE flex_pair hopper_flex_pair(const flex_pair &first, int n, int r, int e) {
  flex_pair at = first;
  at.i += 8 * n + e;
  at.j += 8 * r;
  return at;
}

/* Bit 4n + 2r + e: the pair is visible. seen: the limits by position, used unless `all`. kind: of the
 * tile. */
template <class C>
FA_DEVICE uint32_t hopper_flex_visible(const fa_flex_args &x, int kind, const flex_pair &first, bool all,
                                     const hopper_row_limits &seen) {
  typedef typename C::MODS mods;
  uint32_t masked = 0;
  if (kind == FA_FLEX_PARTIAL) {
    FA_UNROLL
    for (int i = 0; mods::has_mask(x) && i < 32; ++i)
      if (!mods::mask(x, hopper_flex_pair(first, i / 4, i / 2 % 2, i % 2))) masked |= 1u << i;
  } else if (may_have(FA_HAS_BLOCKS) && kind == FA_FLEX_MIXED) {
    FA_NO_UNROLL
    for (int i = 0; i < 32; ++i) {
      const flex_pair at = hopper_flex_pair(first, i / 4, i / 2 % 2, i % 2);
      if (at.i >= at.len_q || at.j >= at.len_k || !flex_visible<mods>(x, kind, at)) masked |= 1u << i;
    }
  }
  if (!all) {
    FA_UNROLL
    for (int i = 0; i < 32; ++i) {
      const int row = i / 4 * 8 + i % 2, r = i / 2 % 2;
      if (row < seen.lo[r] || row >= seen.hi[r]) masked |= 1u << i;
    }
  }
  return ~masked;
}

/* The same with the limits of the sequence. */
template <class C>
FA_DEVICE uint32_t hopper_flex_seen(const fa_attention_params &f, const sequence &seq, int kind,
                                    const flex_pair &first, bool all) {
  hopper_row_limits seen = rows_of_keys<C>(f, seq, first.j, first.i);
  seen.hi[0] = min_int(seen.hi[0], seq.len_q - first.i);
  seen.hi[1] = min_int(seen.hi[1], seq.len_q - first.i);
  return hopper_flex_visible<C>(f.flex, kind, first, all, seen);
}

/* P from a raw score, which score_mod is applied to first. */
template <class C>
FA_DEVICE float hopper_flex_p(const fa_backward_params &p, float s, float lse, const flex_pair &at,
                                   bool visible) {
  typedef typename C::MODS mods;
  const fa_flex_args &x = p.forward.flex;
  float prob;
  if (mods::has_score(x))
    prob = exp2_approx(multiply(mods::score(x, multiply(s, p.scale), at) - lse, LOG2E));
  else
    prob = exp2_approx(fmaf(s, p.scale_log2, -multiply(lse, LOG2E)));
  return visible ? prob : 0.0f;
}

/* s -> P times the derivative of score_mod; p_frag: P in 16 bits. rows: shared address of the block's LSE. */
template <class C>
FA_DEVICE void hopper_flex_compute_p(uint32_t (&p_frag)[C::BM / 16][4], float (&s)[C::BM / 8][4],
                                 const fa_backward_params &p, const flex_pair &first, uint32_t visible,
                                 uint32_t rows) {
  typedef typename C::MODS mods;
  const fa_flex_args &x = p.forward.flex;
  hopper_compute_p_pairs<C>(p_frag, s, rows, [&](float &score, float lse, int n, int r, int e) {
    const flex_pair at = hopper_flex_pair(first, n, r, e);
    const float prob = hopper_flex_p<C>(p, score, lse, at, visible >> (4 * n + 2 * r + e) & 1);
    const float derivative =
        mods::has_score(x) ? mods::derivative(x, multiply(score, p.scale), at, hopper_no_reads()) : 1.0f;
    score = prob != 0.0f ? prob * derivative : 0.0f;
    return prob;
  });
}

/* hopper_flex_compute_p and dS in one pass, in 16 bits, with the gradients of captured buffers. delta follows
 * LSE in shared memory. */
template <class C>
FA_DEVICE void hopper_flex_compute_p_ds(uint32_t (&p_frag)[C::BM / 16][4], uint32_t (&ds)[C::BM / 16][4],
                                 const float (&s)[C::BM / 8][4], const float (&dp)[C::BM / 8][4],
                                 const fa_backward_params &p, const flex_pair &first, uint32_t visible,
                                 uint32_t rows, int lane) {
  typedef typename C::MODS mods;
  const fa_flex_args &x = p.forward.flex;
  flex_gradients<mods> gradients;
  FA_UNROLL
  for (int n = 0; n < C::BM / 8; ++n) {
    float lse[2], delta[2];
    FA_UNROLL
    for (int e = 0; e < 2; ++e) {
      lse[e] = as_float(load_shared4(rows + 32 * n + 4 * e));
      delta[e] = as_float(load_shared4(rows + C::ROW_BYTES + 32 * n + 4 * e));
    }
    FA_UNROLL
    for (int r = 0; r < 2; ++r) {
      float prob[2], gradient[2];
      FA_UNROLL
      for (int e = 0; e < 2; ++e) {
        const float score = s[n][2 * r + e];
        const flex_pair at = hopper_flex_pair(first, n, r, e);
        prob[e] = hopper_flex_p<C>(p, score, lse[e], at, visible >> (4 * n + 2 * r + e) & 1);
        gradient[e] = prob[e] != 0.0f ? prob[e] * (dp[n][2 * r + e] - delta[e]) : 0.0f;
        if (gradient[e] != 0.0f)
          gradient[e] *= mods::derivative(x, multiply(score, p.scale), at, gradients.adder(x, gradient[e]));
      }
      p_frag[n / 2][n % 2 * 2 + r] = pack2(prob[0], prob[1], typename C::T());
      ds[n / 2][n % 2 * 2 + r] = pack2(gradient[0], gradient[1], typename C::T());
    }
  }
  gradients.flush(x, lane);
}

} // namespace fa

#endif
