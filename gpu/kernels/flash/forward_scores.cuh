/* Scores of the flash forward kernel: S = Q K^T, and the masks and modifications before the softmax. */
#ifndef FA_GPU_KERNELS_FLASH_FORWARD_SCORES_CUH
#define FA_GPU_KERNELS_FLASH_FORWARD_SCORES_CUH

#include "gpu/kernels/parts/bias.cuh"
#include "gpu/kernels/flash/forward_config.cuh"
#include "gpu/kernels/parts/softmax.cuh"

namespace fa {

/* s = Q K^T for this warp's rows and all keys of the tile. */
template <class C>
FA_DEVICE void gemm_qk(float (&s)[C::M_TILES][C::BN / 8][4], uint32_t q_first, uint32_t k_first) {
  FA_UNROLL_2 /* no further: ptxas would load ahead until it spills */
  for (int kk = 0; kk < C::D / 16; ++kk) {
    uint32_t a[C::M_TILES][4];
    FA_UNROLL
    for (int m = 0; m < C::M_TILES; ++m) load_a<C::D>(a[m], q_first, m, kk);
    FA_UNROLL
    for (int n = 0; n < C::BN / 16; ++n) {
      uint32_t b[4];
      load_b<C::D>(b, k_first, n, kk);
      FA_UNROLL
      for (int m = 0; m < C::M_TILES; ++m) {
        mma(s[m][2 * n], a[m], b, typename C::T());
        mma(s[m][2 * n + 1], a[m], b + 2, typename C::T());
      }
    }
  }
}

/* Sets masked scores to -inf. */
template <class C>
FA_DEVICE void mask_scores(float (&s)[C::M_TILES][C::BN / 8][4], const fa_attention_params &p,
                           const sequence &seq, int row0, int key0, int thread) {
  const int col = key0 + score_col(thread);
  FA_UNROLL
  for (int m = 0; m < C::M_TILES; ++m) {
    FA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const row_limits limits = limits_of_row<C::GENERAL>(p, seq, row0 + score_row<C>(thread, m) + 8 * r);
      const int lo = limits.lo - col, hi = limits.hi - col; /* relative to the thread's key, to compare with
                                                               constants */
      FA_UNROLL
      for (int n = 0; n < C::BN / 8; ++n) {
        FA_UNROLL
        for (int e = 0; e < 2; ++e)
          if (8 * n + e < lo || 8 * n + e >= hi) s[m][n][2 * r + e] = -infinity();
      }
    }
  }
}

/* Sets the scores of pairs that a custom mask hides to -inf. */
template <class C>
FA_DEVICE void mask_scores_by_bits(float (&s)[C::M_TILES][C::BN / 8][4], const fa_attention_params &p,
                                   const sequence &seq, int batch, int row0, int key0, int thread) {
  const uint8_t *bits = p.mask_bits + load_global(p.mask_indptr + batch);
  FA_UNROLL
  for (int m = 0; m < C::M_TILES; ++m) {
    FA_UNROLL
    for (int n = 0; n < C::BN / 8; ++n) {
      FA_UNROLL
      for (int e = 0; e < 4; ++e)
        if (bits_hide(bits, seq, row0 + score_row<C>(thread, m) + e / 2 * 8,
                      key0 + score_col(thread) + 8 * n + e % 2))
          s[m][n][e] = -infinity();
    }
  }
}

/* s -> scale * s - slope * distance. first: the distance of the thread's first pair from the diagonal. It is
 * exact, and so are its sums with constants: one conversion serves all pairs. */
template <class C>
FA_DEVICE void add_alibi(float (&s)[C::M_TILES][C::BN / 8][4], float scale, float slope, float first) {
  FA_UNROLL
  for (int m = 0; m < C::M_TILES; ++m) {
    FA_UNROLL
    for (int n = 0; n < C::BN / 8; ++n) {
      FA_UNROLL
      for (int e = 0; e < 4; ++e)
        s[m][n][e] = fmaf(s[m][n][e], scale,
                          -slope * fabsf(first + static_cast<float>(16 * m + e / 2 * 8 - 8 * n - e % 2)));
    }
  }
}

/* s -> softcap * tanh(scale * s / softcap) */
template <class C> FA_DEVICE void cap_scores(float (&s)[C::M_TILES][C::BN / 8][4], float scale, float cap) {
  const float inverse_cap = 1.0f / cap;
  FA_UNROLL
  for (int m = 0; m < C::M_TILES; ++m) {
    FA_UNROLL
    for (int n = 0; n < C::BN / 8; ++n) {
      FA_UNROLL
      for (int e = 0; e < 4; ++e) s[m][n][e] = cap * tanh_approx(multiply(s[m][n][e], scale) * inverse_cap);
    }
  }
}

/* s -> scale * s + bias, with the bias in shared memory. */
template <class C>
FA_DEVICE void add_bias(float (&s)[C::M_TILES][C::BN / 8][4], const fa_attention_params &p, int thread) {
  typename C::T t;
  const uint32_t first =
      first_a<C::BN>(shared_base() + C::BIAS_AT, 16 * C::M_TILES * (thread / 32), thread % 32);
  const bool any = !C::MIXED || p.bias;
  FA_UNROLL
  for (int m = 0; m < C::M_TILES; ++m) {
    FA_UNROLL
    for (int k = 0; k < C::BN / 16; ++k) {
      uint32_t pairs[4] = {0, 0, 0, 0};
      if (any) load_a<C::BN>(pairs, first, m, k);
      FA_UNROLL
      for (int i = 0; i < 4; ++i) { /* in the order of A's registers: rows l/4, l/4 + 8 of keys 0..7, then of
                                       8..15 */
        float(&x)[4] = s[m][2 * k + i / 2];
        x[i % 2 * 2] = fmaf(x[i % 2 * 2], p.scale, low_half(pairs[i], t));
        x[i % 2 * 2 + 1] = fmaf(x[i % 2 * 2 + 1], p.scale, high_half(pairs[i], t));
      }
    }
  }
}

/* Raw scores to logits: scale, softcap, ALiBi, bias. What a kind cannot have is removed at compile time; what
 * the general kernels may have is tested once, not for every pair. */
template <class C>
FA_DEVICE void modify_scores(float (&s)[C::M_TILES][C::BN / 8][4], const fa_attention_params &p,
                             const sequence &seq, float slope, int row0, int key0, int thread) {
  if (C::BIAS) add_bias<C>(s, p, thread);
  const bool cap = C::SOFTCAP && (!C::GENERAL || p.softcap > 0.0f);
  if (cap) cap_scores<C>(s, p.scale, p.softcap);
  if (!C::ALIBI || (C::GENERAL && !p.alibi_slopes)) return;
  const int first = row0 + score_row<C>(thread, 0) + seq.len_k - seq.len_q - key0 - score_col(thread);
  add_alibi<C>(s, cap ? 1.0f : p.scale, slope, static_cast<float>(first));
}

FA_DEVICE float alibi_slope(const fa_attention_params &p, int batch, int head) {
  return p.alibi_slopes ? load_global(p.alibi_slopes + batch * p.alibi_batch_stride + head) : 0.0f;
}

} // namespace fa

#endif
