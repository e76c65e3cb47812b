/* From a warp's S and dP to P and dS: masks, score modifications, dropout, and the derivative of the
 * softmax. */
#ifndef FA_GPU_KERNELS_FLASH_BACKWARD_SCORE_CUH
#define FA_GPU_KERNELS_FLASH_BACKWARD_SCORE_CUH

#include "gpu/kernels/parts/dropout.cuh"
#include "gpu/kernels/parts/dropout_linear.cuh"
#include "gpu/kernels/flash/backward_config.cuh"

namespace fa {

/* The origin of a warp's part of the score tile. */
template <class C> FA_DEVICE int score_row(int warp) {
  return 16 * C::S_TILES * (warp % C::S_WARPS);
}
template <class C> FA_DEVICE int score_col(int warp) {
  return C::S_COLS * (warp / C::S_WARPS);
}

/* The position of a thread's scores: its first row and key, in the sequence, and the first key of its
 * warp. */
struct score_place {
  int batch, head, row, key, warp_key;
  float minus_slope;
};

/* In units of log2. */
FA_DEVICE float minus_slope(const fa_attention_params &f, int batch, int head) {
  if (!f.alibi_slopes) return 0.0f;
  return load_global(f.alibi_slopes + batch * f.alibi_batch_stride + head) * -1.44269504088896340736f;
}

/* The distance of the thread's first pair (row, key) from the diagonal. It is exact, and so are its sums with
 * constants: one conversion serves all pairs. */
FA_DEVICE float first_distance(const sequence &seq, const score_place &at) {
  return static_cast<float>(at.row + seq.len_k - seq.len_q - at.key);
}

/* Raw scores to logits with ALiBi, in units of log2. Done before dP exists, which takes as many registers. */
template <class C>
FA_DEVICE void add_alibi(typename C::score_tile &s, const fa_backward_params &p, float minus_slope,
                         float distance) {
  FA_UNROLL
  for (int m = 0; m < C::S_TILES; ++m) {
    FA_UNROLL
    for (int n = 0; n < C::S_COLS / 8; ++n) {
      FA_UNROLL
      for (int e = 0; e < 4; ++e)
        s[m][n][e] =
            fmaf(s[m][n][e], p.scale_log2,
                 minus_slope * fabsf(distance + static_cast<float>(16 * m + e / 2 * 8 - 8 * n - e % 2)));
    }
  }
}

/* Raw scores to the tanh of softcap; the derivative needs the tanh too. */
template <class C> FA_DEVICE void cap_scores(typename C::score_tile &s, const fa_backward_params &p) {
  FA_UNROLL
  for (int m = 0; m < C::S_TILES; ++m) {
    FA_UNROLL
    for (int n = 0; n < C::S_COLS / 8; ++n) {
      FA_UNROLL
      for (int e = 0; e < 4; ++e) s[m][n][e] = tanh_approx(multiply(s[m][n][e], p.scale) * p.inverse_softcap);
    }
  }
}

/* The exponent of P in units of log2, from what add_alibi or cap_scores made of the score. Only the general
 * kernels, whose tiles leave room for it, add ALiBi here. */
template <class C>
FA_DEVICE float score_exponent(const fa_backward_params &p, float s, float lse_log2, float minus_slope,
                               float distance) {
  if (C::GENERAL)
    return fmaf(minus_slope, fabsf(distance),
                fmaf(s, p.forward.softcap > 0.0f ? p.softcap_log2 : p.scale_log2, -lse_log2));
  return C::ALIBI ? s - lse_log2 : fmaf(s, C::SOFTCAP ? p.softcap_log2 : p.scale_log2, -lse_log2);
}

/* The random bytes of 16 rows and 32 keys. Without dropout they are zeros, which keep everything. */
template <class C>
FA_DEVICE void backward_drop_words(uint32_t (&words)[4], const fa_attention_params &f, const score_place &at,
                                   int m, int n, int lane) {
  if (!C::GENERAL || f.dropout_limit != 0x00ff00ffu)
    dropout_words(words, f, dropout_of(f, at.batch, at.head, lane), (at.row + 16 * m) / 16,
                  (at.warp_key + 8 * n) / 32);
  else
    FA_UNROLL
  for (int i = 0; i < 4; ++i) words[i] = 0;
  if (C::S_COLS == 16 && at.warp_key % 32 != 0) { /* the warp has the second half of them */
    words[0] = words[2];
    words[1] = words[3];
  }
}

/* P from a raw score, for kinds with a bias; lse in natural units. */
FA_DEVICE float biased_p(const fa_backward_params &p, float s, float bias, float lse) {
  return exp2_approx(multiply(fmaf(s, p.scale, bias) - lse, LOG2E));
}

/* Adds a thread's dS of one 16 x 8 tile to the sums of dbias. */
FA_DEVICE void add_dbias(const fa_backward_params &p, const score_place &at, int m, int n,
                         const float (&ds)[4], int lane) {
  atomic_add4(p.dbias_accum + at.batch * p.dbias_accum_stride.batch + at.head * p.dbias_accum_stride.head +
                  (at.row / 16 + m) * p.dbias_accum_stride.row + (at.warp_key / 8 + n) * 128ll + lane * 4,
              ds);
}

/* Stores P and dS, rounded, in shared memory: P at p_first, dS P_BYTES further. values: the shared address of
 * the LSE of the thread's first row; delta is BM rows further. The bias is in the space of P. MASK: some pair
 * of the block is masked; its P is set to 0 rather than computed, because the exponential of a masked score
 * may overflow. */
template <class C, bool MASK>
FA_DEVICE void compute_p_ds(const typename C::score_tile &s, const typename C::score_tile &dp,
                               const fa_backward_params &p, const sequence &seq, const score_place &at,
                               uint32_t values, uint32_t p_first, int lane) {
  const fa_attention_params &f = p.forward;
  typename C::T t;
  const float diagonal = C::GENERAL ? first_distance(seq, at) : 0.0f;
  const bool cap = C::SOFTCAP && (!C::GENERAL || f.softcap > 0.0f);
  const uint8_t *bits =
      MASK && C::GENERAL && f.mask_bits ? f.mask_bits + load_global(f.mask_indptr + at.batch) : nullptr;
  FA_UNROLL
  for (int m = 0; m < C::S_TILES; ++m) {
    float lse[2], delta[2]; /* of the row; the LSE times p.lse_factor */
    int lo[2] = {0, 0}, hi[2] = {0, 0}; /* relative to the thread's key, to compare with constants */
    FA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int row = 16 * m + 8 * r;
      lse[r] = as_float(load_shared4(values + row * 4));
      delta[r] = as_float(load_shared4(values + (C::BM + row) * 4));
      if (!MASK) continue;
      const row_limits limits = limits_of_row<C::GENERAL>(f, seq, at.row + row);
      lo[r] = limits.lo - at.key;
      hi[r] = limits.hi - at.key;
    }
    uint32_t words[4], linear[2] = {0, 0};
    if constexpr (C::LINEAR)
      if (f.dropout_linear)
        linear_kept_tile<C::S_COLS / 8>(linear, f, seq, at.batch, at.head, at.row + 16 * m, at.warp_key, lane);
    FA_UNROLL
    for (int n = 0; n < C::S_COLS / 8; ++n) {
      if (C::DROPOUT && n % 4 == 0) backward_drop_words<C>(words, f, at, m, n, lane);
      float ds[4];
      FA_UNROLL
      for (int r = 0; r < 2; ++r) {
        const uint32_t to = tile_right<C::BN>(p_first, n) + (16 * m + 8 * r) * (C::BN * 2);
        const uint32_t bias = C::BIAS && (!C::MIXED || f.bias) ? load_shared4(to) : 0;
        uint32_t kept = C::DROPOUT ? dropout_kept(f, words[n % 4], r) : 0xffffffffu;
        if (C::LINEAR && f.dropout_linear)
          kept = linear_kept_halves(linear[r], n);
        float prob[2], gradient[2];
        FA_UNROLL
        for (int e = 0; e < 2; ++e) {
          const float x = s[m][n][2 * r + e];
          float g = dp[m][n][2 * r + e];
          prob[e] =
              C::BIAS
                  ? biased_p(p, x, e ? high_half(bias, t) : low_half(bias, t), lse[r])
                  : exp2_approx(score_exponent<C>(p, x, lse[r], at.minus_slope,
                                                  diagonal + static_cast<float>(16 * m + 8 * r - 8 * n - e)));
          if (MASK && C::GENERAL && bits && bits_hide(bits, seq, at.row + 16 * m + 8 * r, at.key + 8 * n + e))
            prob[e] = 0.0f;
          if (MASK && (8 * n + e < lo[r] || 8 * n + e >= hi[r])) prob[e] = 0.0f;
          if (C::DROPOUT || C::LINEAR) g = (kept >> 16 * e & 1) ? g * f.dropout_scale : 0.0f;
          gradient[e] = prob[e] * (g - delta[r]);
          if (cap) gradient[e] *= fmaf(-x, x, 1.0f); /* the derivative of tanh */
        }
        store_shared4(to, pack2(prob[0], prob[1], t) & kept);
        store_shared4(to + C::P_BYTES, pack2(gradient[0], gradient[1], t));
        ds[2 * r] = gradient[0];
        ds[2 * r + 1] = gradient[1];
      }
      if (C::BIAS && p.dbias_accum) add_dbias(p, at, m, n, ds, lane);
    }
  }
}

} // namespace fa

#endif
