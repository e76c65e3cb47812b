/* From a warp's S and dP to P and dS: masks, score modifications, dropout, and the softmax's derivative. */
#ifndef FA_GPU_KERNELS_FLASH_BACKWARD_SCORE_CUH
#define FA_GPU_KERNELS_FLASH_BACKWARD_SCORE_CUH

#include "gpu/kernels/dropout.cuh"
#include "gpu/kernels/flash_backward_config.cuh"

namespace fa {

/* Where a warp's part of the score tile begins. */
template <class C> FA_DEVICE int score_row(int warp) {
  return 16 * C::S_TILES * (warp % C::S_WARPS);
}
template <class C> FA_DEVICE int score_col(int warp) {
  return C::S_COLS * (warp / C::S_WARPS);
}

/* Where a thread's scores stand: its first row and key, in the entry, and the first key of its warp. */
struct score_place {
  int batch, head, row, key, warp_key;
  float slope;
};

/* Logit of a raw score in units of log2, and the factor by which the raw score's gradient shrinks. */
FA_DEVICE float modified_score(const fa_flash_backward_params &p, float s, float slope, int distance,
                               float &shrink) {
  float t = s * p.scale;
  shrink = 1.0f;
  if (p.forward.softcap > 0.0f) {
    const float th = tanh_approx(t / p.forward.softcap);
    t = p.forward.softcap * th;
    shrink = fmaf(-th, th, 1.0f);
  }
  return fmaf(-slope, static_cast<float>(distance < 0 ? -distance : distance), t) * 1.44269504088896340736f;
}

/* The random bytes for 16 rows and 32 keys; none drops where there is no dropout. */
template <class C>
FA_DEVICE void backward_drop_words(uint32_t (&words)[4], const fa_flash_params &f, const score_place &at,
                                   int m, int n, int lane) {
  if (!C::GENERAL || f.dropout_limit != 0x00ff00ffu)
    dropout_words(words, f, dropout_of(f, at.batch, at.head, lane), (at.row + 16 * m) / 16,
                  (at.warp_key + 8 * n) / 32);
  else
    FA_UNROLL
  for (int i = 0; i < 4; ++i) words[i] = 0;
}

/* P and dS, rounded, to shared memory at p_first (dS: P_BYTES further). values: shared address of LSE of the
 * thread's first row; delta follows BM rows on. MASK: some pair of the block is hidden; its P is 0 by
 * definition and not by arithmetic, since the exponential of a hidden score may well overflow. */
template <class C, bool MASK>
FA_DEVICE void score_gradients(const typename C::score_tile &s, const typename C::score_tile &dp,
                               const fa_flash_backward_params &p, const sequence &seq, const score_place &at,
                               uint32_t values, uint32_t p_first, int lane) {
  const fa_flash_params &f = p.forward;
  typename C::T t;
  FA_UNROLL
  for (int m = 0; m < C::S_TILES; ++m) {
    float lse_log2[2], delta[2];
    int lo[2] = {0, 0}, hi[2] = {0, 0}; /* to compare with constants */
    FA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int row = 16 * m + 8 * r;
      lse_log2[r] = as_float(load_shared4(values + row * 4));
      delta[r] = as_float(load_shared4(values + (C::BM + row) * 4));
      if (!MASK) continue;
      const row_limits limits = limits_of_row(f, seq, at.row + row);
      lo[r] = limits.lo - at.key;
      hi[r] = limits.hi - at.key;
    }
    uint32_t words[4];
    FA_UNROLL
    for (int n = 0; n < C::S_COLS / 8; ++n) {
      if (C::DROPOUT && n % 4 == 0) backward_drop_words<C>(words, f, at, m, n, lane);
      FA_UNROLL
      for (int r = 0; r < 2; ++r) {
        const uint32_t kept = C::DROPOUT ? dropout_kept(f, words[n % 4], r) : 0xffffffffu;
        const int diagonal = at.row + 16 * m + 8 * r + seq.len_k - seq.len_q - at.key;
        float weight[2], gradient[2];
        FA_UNROLL
        for (int e = 0; e < 2; ++e) {
          float shrink = 1.0f, exponent, g = dp[m][n][2 * r + e];
          if (C::SCORE_MOD)
            exponent =
                modified_score(p, s[m][n][2 * r + e], at.slope, diagonal - (8 * n + e), shrink) - lse_log2[r];
          else
            exponent = fmaf(s[m][n][2 * r + e], p.scale_log2, -lse_log2[r]);
          weight[e] = exp2_approx(exponent);
          if (MASK && (8 * n + e < lo[r] || 8 * n + e >= hi[r])) weight[e] = 0.0f;
          if (C::DROPOUT) g = (kept >> 16 * e & 1) ? g * f.dropout_scale : 0.0f;
          gradient[e] = weight[e] * (g - delta[r]);
          if (C::SCORE_MOD) gradient[e] *= shrink;
        }
        const uint32_t to = tile_right<C::BN>(p_first, n) + (16 * m + 8 * r) * (C::BN * 2);
        store_shared4(to, pack2(weight[0], weight[1], t) & kept);
        store_shared4(to + C::P_BYTES, pack2(gradient[0], gradient[1], t));
      }
    }
  }
}

} // namespace fa

#endif
