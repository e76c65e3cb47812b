/* From the transposed scores of a step to P and dS, in the accumulators of a warpgroup; rows are keys. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_SCORES_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_SCORES_CUH

#include "gpu/kernels/hopper_backward/config.cuh"

namespace fa {

/* The rows that see each of a thread's two keys: lo <= row < hi, relative to row0 and the thread's column. */
struct hopper_row_limits {
  int lo[2], hi[2];
};
template <class C>
FA_DEVICE hopper_row_limits rows_of_keys(const fa_attention_params &f, const sequence &seq, int key, int row0) {
  hopper_row_limits r;
  FA_UNROLL
  for (int i = 0; i < 2; ++i) {
    const int level = key + 8 * i - seq.shift;
    r.lo[i] = f.window_right >= 0 ? level - f.window_right - row0 : -(1 << 30);
    r.hi[i] = f.window_left >= 0 ? level + f.window_left + 1 - row0 : 1 << 30;
    if (key + 8 * i >= seq.len_k) r.hi[i] = -(1 << 30);
  }
  return r;
}

template <class C> FA_DEVICE void hopper_pack(uint32_t (&to)[C::BM / 16][4], const float (&x)[C::BM / 8][4]) {
  FA_UNROLL
  for (int i = 0; i < C::BM / 16; ++i) {
    FA_UNROLL
    for (int j = 0; j < 4; ++j)
      to[i][j] = pack2(x[2 * i + j / 2][j % 2 * 2], x[2 * i + j / 2][j % 2 * 2 + 1], typename C::T());
  }
}

/* Calls update(x[n][2r + e], the row's value, n, r, e) for all pairs (row, key) of a thread. rows: shared
 * address of the values: the block's LSE or its delta. */
template <class C, class F>
FA_DEVICE void hopper_update_pairs(float (&x)[C::BM / 8][4], uint32_t rows, const F &update) {
  FA_UNROLL
  for (int n = 0; n < C::BM / 8; ++n) {
    FA_UNROLL
    for (int e = 0; e < 2; ++e) {
      const float value = as_float(load_shared4(rows + 32 * n + 4 * e));
      FA_UNROLL
      for (int r = 0; r < 2; ++r) update(x[n][2 * r + e], value, n, r, e);
    }
  }
}

/* p_frag: P in 16 bits, as returned by compute(s[n][2r + e], the row's LSE, n, r, e). */
template <class C, class F>
FA_DEVICE void hopper_compute_p_pairs(uint32_t (&p_frag)[C::BM / 16][4], float (&s)[C::BM / 8][4], uint32_t rows,
                                  const F &compute) {
  FA_UNROLL
  for (int n = 0; n < C::BM / 8; ++n) {
    const float lse[2] = {as_float(load_shared4(rows + 32 * n)), as_float(load_shared4(rows + 32 * n + 4))};
    FA_UNROLL
    for (int r = 0; r < 2; ++r) {
      float prob[2];
      FA_UNROLL
      for (int e = 0; e < 2; ++e) prob[e] = compute(s[n][2 * r + e], lse[e], n, r, e);
      p_frag[n / 2][n % 2 * 2 + r] = pack2(prob[0], prob[1], typename C::T());
    }
  }
}

/* LSE or delta of the rows of a thread's pairs, in registers. */
template <class C> struct hopper_row_values { float x[C::BM / 8][2]; };
/* Loads those of the tiles of 8 rows from FROM to TO - 1. rows: as for hopper_update_pairs. */
template <int FROM, int TO, class C>
FA_DEVICE void hopper_load_rows(hopper_row_values<C> &values, uint32_t rows) {
  FA_UNROLL
  for (int n = FROM; n < TO; ++n) {
    FA_UNROLL
    for (int e = 0; e < 2; ++e) values.x[n][e] = as_float(load_shared4(rows + 32 * n + 4 * e));
  }
}

/* hopper_exponentiate with LSE in registers. */
template <class C, bool MASK>
FA_DEVICE void hopper_exponentiate_with(float (&s)[C::BM / 8][4], float scale_log2,
                                        const hopper_row_values<C> &lse, const hopper_row_limits &seen) {
  FA_UNROLL
  for (int n = 0; n < C::BM / 8; ++n) {
    FA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int r = i / 2, e = i % 2, row = 8 * n + e;
      s[n][i] = exp2_approx(fmaf(s[n][i], scale_log2, -lse.x[n][e]));
      if (MASK && (row < seen.lo[r] || row >= seen.hi[r])) s[n][i] = 0.0f;
    }
  }
}

/* s -> P. Fully masked rows and rows past the end have LSE = inf. */
template <class C, bool MASK>
FA_DEVICE void hopper_exponentiate(float (&s)[C::BM / 8][4], float scale_log2, uint32_t rows,
                                    const hopper_row_limits &seen) {
  hopper_update_pairs<C>(s, rows, [&](float &x, float lse, int n, int r, int e) {
    x = exp2_approx(fmaf(x, scale_log2, -lse));
    if (MASK && (8 * n + e < seen.lo[r] || 8 * n + e >= seen.hi[r])) x = 0.0f;
  });
}

/* ALiBi of a thread's pairs, in units of log2: minus the head's slope, and the distance of the first pair
 * from the diagonal, which is exact, as are its sums with constants. */
struct hopper_alibi {
  float minus_slope, distance;
};
template <class C>
FA_DEVICE hopper_alibi hopper_load_alibi(const fa_attention_params &f, const sequence &seq, int batch, int head,
                                         int key, int row) {
  if (!C::ALIBI) return hopper_alibi{0.0f, 0.0f};
  return hopper_alibi{minus_slope(f, batch, head), static_cast<float>(row + seq.len_k - seq.len_q - key)};
}

/* hopper_compute_p with ALiBi, or if CAP with softcap. P of a masked score is set to 0, because its exponential may
 * overflow. */
template <class C, bool MASK, bool CAP>
FA_DEVICE void hopper_compute_modified_p(uint32_t (&p_frag)[C::BM / 16][4], float (&s)[C::BM / 8][4],
                                    const fa_backward_params &p, const hopper_alibi &alibi,
                                    uint32_t rows, const hopper_row_limits &seen) {
  hopper_compute_p_pairs<C>(p_frag, s, rows, [&](float &x, float lse, int n, int r, int e) {
    if (CAP) x = tanh_approx(multiply(x, p.scale) * p.inverse_softcap);
    float exponent = fmaf(x, CAP ? p.softcap_log2 : p.scale_log2, -lse);
    if (C::ALIBI)
      exponent =
          fmaf(alibi.minus_slope, fabsf(alibi.distance + static_cast<float>(8 * n + e - 8 * r)), exponent);
    float prob = exp2_approx(exponent);
    if (MASK && (8 * n + e < seen.lo[r] || 8 * n + e >= seen.hi[r])) prob = 0.0f;
    x = CAP ? prob * fmaf(-x, x, 1.0f) : prob;
    return prob;
  });
}

/* s -> P where the LSE is subtracted before anything is scaled to base 2. scale: of the scores; 1: they are logits. Fully masked
 * rows and rows past the end have LSE = inf. */
template <class C, bool MASK>
FA_DEVICE void hopper_exponentiate_logits(float (&s)[C::BM / 8][4], float scale, uint32_t rows,
                                          const hopper_row_limits &seen) {
  hopper_update_pairs<C>(s, rows, [&](float &x, float lse, int n, int r, int e) {
    x = exp2_approx(multiply(fmaf(x, scale, -lse), LOG2E));
    if (MASK && (8 * n + e < seen.lo[r] || 8 * n + e >= seen.hi[r])) x = 0.0f;
  });
}

/* s -> P or, with softcap, P times the derivative of tanh; p_frag: P in 16 bits. */
template <class C, bool MASK>
FA_DEVICE void hopper_compute_p(uint32_t (&p_frag)[C::BM / 16][4], float (&s)[C::BM / 8][4],
                            const fa_backward_params &p, const hopper_alibi &alibi, uint32_t rows,
                            const hopper_row_limits &seen) {
  if constexpr (C::ALIBI || C::SOFTCAP) {
    hopper_compute_modified_p<C, MASK, C::SOFTCAP>(p_frag, s, p, alibi, rows, seen);
  } else {
    if constexpr (C::BIAS || C::LINEAR)
      hopper_exponentiate_logits<C, MASK>(s, C::BIAS ? 1.0f : p.scale, rows, seen);
    else
      hopper_exponentiate<C, MASK>(s, p.scale_log2, rows, seen);
    hopper_pack<C>(p_frag, s);
  }
}

/* hopper_compute_p of kernels that ask what the call has. Nothing is masked: hopper_hide_p does that afterwards, when
 * there are registers for the limits. */
template <class C>
FA_DEVICE void hopper_compute_several_p(uint32_t (&p_frag)[C::BM / 16][4], float (&s)[C::BM / 8][4],
                                        const fa_backward_params &p, const hopper_alibi &alibi, uint32_t rows) {
  if (p.softcap_log2 > 0.0f)
    hopper_compute_modified_p<C, false, true>(p_frag, s, p, alibi, rows, hopper_row_limits());
  else
    hopper_compute_modified_p<C, false, false>(p_frag, s, p, alibi, rows, hopper_row_limits());
}

/* Masked pairs become 0 in P, whatever they are, and in P in 16 bits. */
template <class C>
FA_DEVICE void hopper_hide_p(uint32_t (&p_frag)[C::BM / 16][4], float (&p)[C::BM / 8][4],
                             const hopper_row_limits &seen) {
  FA_UNROLL
  for (int n = 0; n < C::BM / 8; ++n) {
    FA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int r = i / 2, e = i % 2, row = 8 * n + e;
      if (row >= seen.lo[r] && row < seen.hi[r]) continue;
      p[n][i] = 0.0f;
      p_frag[n / 2][n % 2 * 2 + r] &= e ? 0x0000ffffu : 0xffff0000u;
    }
  }
}

/* dp -> dS. rows: shared address of the block's delta. */
template <class C>
FA_DEVICE void hopper_compute_ds(float (&dp)[C::BM / 8][4], const float (&p)[C::BM / 8][4],
                                      uint32_t rows) {
  hopper_update_pairs<C>(
      dp, rows, [&](float &x, float delta, int n, int r, int e) { x = p[n][2 * r + e] * (x - delta); });
}

/* The same with delta in registers. */
template <class C>
FA_DEVICE void hopper_compute_ds_with(float (&dp)[C::BM / 8][4], const float (&p)[C::BM / 8][4],
                                      const hopper_row_values<C> &delta) {
  FA_UNROLL
  for (int n = 0; n < C::BM / 8; ++n) {
    FA_UNROLL
    for (int i = 0; i < 4; ++i) dp[n][i] = p[n][i] * (dp[n][i] - delta.x[n][i % 2]);
  }
}

} // namespace fa

#endif
