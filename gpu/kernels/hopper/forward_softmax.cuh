/* The online softmax of the forward kernels for sm_90a: from S to P in the accumulators of a warpgroup, with
 * masks and score modifications. */
#ifndef FA_GPU_KERNELS_HOPPER_FORWARD_SOFTMAX_CUH
#define FA_GPU_KERNELS_HOPPER_FORWARD_SOFTMAX_CUH

#include "gpu/kernels/flash/forward.cuh"
#include "gpu/kernels/hopper/forward_work_tile.cuh"
#include "gpu/kernels/hopper/linear.cuh"

namespace fa {

/* A row's new maximum: the first half of softmax_row (softmax.cuh), equal value for value. */
template <int TILES, int LAZY>
FA_DEVICE float hopper_row_max(const float (&s)[TILES][4], int r, float scale_log2, const row_state &row) {
  float m = row.max;
  FA_UNROLL
  for (int n = 0; n < TILES; ++n) m = greater(m, greater(s[n][2 * r], s[n][2 * r + 1]));
  m = greater(m, shfl_xor(m, 1));
  m = greater(m, shfl_xor(m, 2));
  return LAZY == 2 && multiply(m - row.max, scale_log2) <= 8.0f ? row.max : m;
}

/* What a row's new maximum m makes of it: returns what the exponentials subtract; rescale: the factor for what was summed
 * so far. FAR: logits may be as low as -FLT_MAX, which has no finite value in units of log2; if a warp has such a maximum,
 * it is subtracted first. */
template <int TILES, bool FAR>
FA_DEVICE float hopper_row_shift(float (&s)[TILES][4], int r, float scale_log2, float m, row_state &row,
                                 float &rescale) {
  float shift = m == -infinity() ? 0.0f : multiply(m, scale_log2), before = row.max;
  if (FAR && any_lane(fabsf(shift) == infinity())) {
    const float base = m == -infinity() ? 0.0f : m;
    FA_UNROLL
    for (int n = 0; n < TILES; ++n) {
      s[n][2 * r] -= base;
      s[n][2 * r + 1] -= base;
    }
    before -= base;
    shift = 0.0f;
  }
  rescale = exp2_approx(multiply(before, scale_log2) - shift); /* exactly 1 if m is unchanged */
  row.max = m;
  return shift;
}

/* True if the softmax is over logits; else over raw scores, which the softmax scales. */
template <class C> FA_DEVICE bool hopper_has_logits(const fa_attention_params &p) {
  if constexpr (C::FLEX) return C::MODS::has_score(p.flex);
  return C::ALIBI || C::SOFTCAP || C::BIAS;
}

FA_DEVICE flex_pair hopper_flex_pair(const work_tile &work, int row, int key) {
  return flex_pair{work.batch, work.head, row, key, work.seq.len_q, work.seq.len_k};
}

/* score_mod. row, key: of the thread's first pair. The loop has rows innermost, so that what depends on the
 * key alone is computed once for both. */
template <class C>
FA_DEVICE void hopper_apply_score_mod(float (&s)[C::BN / 8][4], const fa_attention_params &p,
                                      const work_tile &work, int row, int key) {
  FA_UNROLL
  for (int n = 0; n < C::BN / 8; ++n) {
    FA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int e = i / 2 + i % 2 * 2;
      s[n][e] = C::MODS::score(p.flex, multiply(s[n][e], p.scale),
                               hopper_flex_pair(work, row + e / 2 * 8, key + 8 * n + e % 2));
    }
  }
}

/* What mask_mod and block lists mask of a thread's pairs in N times two columns: bits 4 n + e. Nothing branches but in tiles of
 * several kinds, and rows are innermost: so what depends on the key alone is computed once for both, what depends on the row
 * alone once for all, and loads are under way together. For pairs outside the sequence a neighbour is tested, since the map
 * has nothing there. */
template <class C, int KIND, int N>
FA_DEVICE uint32_t hopper_masked(const fa_attention_params &p, const work_tile &work, int row, int key) {
  const int last_row = work.seq.len_q - 1, last_key = work.seq.len_k - 1;
  uint32_t masked = 0;
  FA_UNROLL
  for (int i = 0; i < 4 * N; ++i) {
    const int e = i / 2 % 2 + i % 2 * 2;
    const flex_pair at = hopper_flex_pair(work, min_int(row + e / 2 * 8, last_row),
                                          min_int(key + i / 4 * 8 + e % 2, last_key));
    if (!flex_visible<typename C::MODS>(p.flex, KIND, at)) masked |= 1u << (i / 4 * 4 + e);
  }
  return masked;
}

/* Sets to -inf what block lists and mask_mod mask. KIND: of the tile. Expressions may be long, so the code exists for some of
 * the pairs only, in a loop. */
template <class C, int KIND>
FA_DEVICE void hopper_apply_mask_mod(float (&s)[C::BN / 8][4], const fa_attention_params &p,
                                     const work_tile &work, int row, int key) {
  constexpr int HALF = C::BN / 16, MOST = C::MODS::MASKS_AT_ONCE < HALF ? C::MODS::MASKS_AT_ONCE : HALF,
                N = KIND == FA_FLEX_MIXED ? 1 : MOST;
  static_assert(HALF % N == 0, "whole steps");
  FA_UNROLL
  for (int half = 0; half < 2; ++half) {
    uint32_t masked = 0;
    FA_NO_UNROLL
    for (int n = 0; n < HALF; n += N)
      masked |= hopper_masked<C, KIND, N>(p, work, row, key + 8 * (half * HALF + n)) << 4 * n;
    FA_UNROLL
    for (int i = 0; i < 4 * HALF; ++i)
      if (masked >> i & 1) s[half * HALF + i / 4][i % 4] = -infinity();
  }
}

/* Which of a thread's columns 8 n + e, e = 0 and 1, n < 16, are below limit: bits 2 n + e. */
FA_DEVICE uint32_t hopper_columns(int limit) {
  const int n = min_int(max_int((limit >> 3) * 2 + min_int(limit & 7, 2), 0), 32);
  return n == 0 ? 0 : 0xffffffffu >> (32 - n);
}

/* mask_scores with one bit per pair, which takes less work than two comparisons. */
template <class C>
FA_DEVICE void hopper_mask(float (&s)[C::BN / 8][4], const fa_attention_params &p, const work_tile &work,
                           int row, int col) {
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    int at = row + 8 * r;
    if constexpr (C::CACHE) at >>= work.pack;
    const row_limits limits = limits_of_row(p, work.seq, at);
    FA_UNROLL
    for (int n0 = 0; n0 < C::BN / 8; n0 += 16) {
      const uint32_t visible =
          hopper_columns(limits.hi - col - 8 * n0) & ~hopper_columns(limits.lo - col - 8 * n0);
      FA_UNROLL
      for (int i = 0; i < 32 && n0 + i / 2 < C::BN / 8; ++i)
        if (!(visible & 1u << i)) s[n0 + i / 2][2 * r + i % 2] = -infinity();
    }
  }
}

/* Key blocks of which all of the group's rows see all keys. row0: the group's first. */
template <class C>
FA_DEVICE block_range hopper_unmasked_blocks(const fa_attention_params &p, const work_tile &work, int row0) {
  int last = row0 + 63;
  if constexpr (C::CACHE) {
    row0 >>= work.pack;
    last >>= work.pack;
  }
  const int lo = limits_of_row(p, work.seq, last).lo, hi = limits_of_row(p, work.seq, row0).hi;
  return {uniform((lo + C::BN - 1) / C::BN), uniform(max_int(hi, 0) / C::BN)};
}

/* What a work tile's scores, and its values, are multiplied by. */
struct hopper_descales {
  float scores = 1.0f, values = 1.0f;
};
template <class C>
FA_DEVICE hopper_descales hopper_load_descales(const fa_attention_params &p, const work_tile &work) {
  hopper_descales d;
  if constexpr (C::EIGHT) {
    const int64_t at = work.batch * p.descale.batch + work.head / p.heads_per_kv * p.descale.head;
    if (p.descale.q) d.scores = load_global(p.descale.q + at);
    if (p.descale.k) d.scores *= load_global(p.descale.k + at);
    if (p.descale.v) d.values = load_global(p.descale.v + at);
  }
  return d;
}

/* Scores become logits, if the kernel has logits, and what is masked becomes -inf. */
template <class C>
FA_DEVICE void hopper_logits(float (&s)[1][C::BN / 8][4], const fa_attention_params &p,
                             const hopper_descales &descale, const work_tile &work, float slope, int row0,
                             flex_tile block, block_range unmasked, int thread) {
  /* opaque: what the rare branch needs is computed inside it, not kept in registers across the loop */
  const int first = opaque(row0), key0 = block.tile * C::BN;
  if constexpr (C::FLEX) {
    const int row = first + score_row<C>(opaque(thread), 0), key = key0 + score_col(opaque(thread));
    if (C::MODS::has_score(p.flex)) hopper_apply_score_mod<C>(s[0], p, work, row, key);
    if (block.kind == FA_FLEX_PARTIAL)
      hopper_apply_mask_mod<C, FA_FLEX_PARTIAL>(s[0], p, work, row, key);
    else if (may_have(FA_HAS_BLOCKS) && block.kind == FA_FLEX_MIXED)
      hopper_apply_mask_mod<C, FA_FLEX_MIXED>(s[0], p, work, row, key);
  } else if constexpr (C::SOFTCAP && !C::SEVERAL) {
    cap_scores<C>(s, p.scale * descale.scores, p.softcap);
  } else if constexpr (C::ALIBI) { /* the distance from shift: masks are bottom-right here, and len_q would
                                      take a register */
    const int distance =
        first + score_row<C>(opaque(thread), 0) + work.seq.shift - key0 - score_col(opaque(thread));
    const bool capped = C::SEVERAL && p.softcap > 0.0f; /* and without ALiBi the slope is 0 */
    if (capped) cap_scores<C>(s, p.scale * descale.scores, p.softcap);
    add_alibi<C>(s, capped ? 1.0f : p.scale * descale.scores, slope, static_cast<float>(distance));
  }
  if (block.tile < unmasked.begin || block.tile >= unmasked.end)
    hopper_mask<C>(s[0], p, work, first + score_row<C>(opaque(thread), 0), key0 + score_col(opaque(thread)));
}

template <class C>
FA_DEVICE float hopper_scale_log2(const fa_attention_params &p, const hopper_descales &descale) {
  return hopper_has_logits<C>(p) ? LOG2E : p.scale_log2 * descale.scores;
}

/* Both rows' new maxima first, so that neither waits for the other's shuffles; then what follows from them. */
template <class C>
FA_DEVICE void hopper_shifts(float (&s)[C::BN / 8][4], float (&shift)[2], float (&rescale)[2],
                             row_state (&rows)[2], const fa_attention_params &p,
                             const hopper_descales &descale) {
  const float scale_log2 = hopper_scale_log2<C>(p, descale);
  float m[2];
  FA_UNROLL
  for (int r = 0; r < 2; ++r) m[r] = hopper_row_max<C::BN / 8, C::LAZY>(s, r, scale_log2, rows[r]);
  FA_UNROLL
  for (int r = 0; r < 2; ++r)
    shift[r] = hopper_row_shift<C::BN / 8, C::FLEX || C::BIAS>(s, r, scale_log2, m[r], rows[r], rescale[r]) - C::P_LOG2;
}

/* A row's logits become exponentials. */
template <class C>
FA_DEVICE void hopper_row_exp(float (&s)[C::BN / 8][4], int r, const float (&shift)[2],
                              const float (&rescale)[2], row_state (&rows)[2], const fa_attention_params &p,
                              const hopper_descales &descale) {
  const float scale_log2 = hopper_scale_log2<C>(p, descale);
  float sum = 0.0f;
  FA_UNROLL
  for (int n = 0; n < C::BN / 8; ++n) {
    FA_UNROLL
    for (int e = 2 * r; e < 2 * r + 2; ++e) {
      s[n][e] = exp2_approx(fmaf(s[n][e], scale_log2, -shift[r]));
      sum += s[n][e];
    }
  }
  rows[r].sum = rows[r].sum * rescale[r] + sum;
}

template <class C> FA_DEVICE void hopper_rescale(float (&o)[C::D / 8][4], const float (&rescale)[2]) {
  if (C::LAZY && !any_lane(rescale[0] != 1.0f || rescale[1] != 1.0f)) return;
  FA_UNROLL
  for (int n = 0; n < C::D / 8; ++n) {
    FA_UNROLL
    for (int e = 0; e < 4; ++e) o[n][e] *= rescale[e / 2];
  }
}

/* Converts an accumulator to A fragments of P in place. row0: of the group's rows. */
template <class C, bool DROPS>
FA_DEVICE void hopper_pack_p(uint32_t (&p_frag)[C::BN / 16][4], const float (&s)[C::BN / 8][4],
                                const fa_attention_params &p, const work_tile &work, int row0, int key0,
                                int thread, const uint32_t (&kept)[2]) {
  uint32_t words[4];
  FA_UNROLL
  for (int i = 0; i < C::BN / 16; ++i) {
    if (DROPS && i % 2 == 0)
      drop_words<C>(words, p, dropout_of(p, work.batch, work.head, thread % 32),
                    row0 + score_row<C>(thread, 0), key0 + 16 * i);
    FA_UNROLL
    for (int j = 0; j < 4; ++j) {
      p_frag[i][j] = pack2(s[2 * i + j / 2][j % 2 * 2], s[2 * i + j / 2][j % 2 * 2 + 1], typename C::T());
      if (DROPS) p_frag[i][j] &= dropout_kept(p, words[i % 2 * 2 + j / 2], j % 2);
      if (C::LINEAR) p_frag[i][j] &= hopper_linear_halves(kept[j % 2], 2 * i + j / 2);
    }
  }
}

/* The same with the call's dropout. kept: of linear dropout. */
template <class C>
FA_DEVICE void hopper_convert_p(uint32_t (&p_frag)[C::BN / 16][4], const float (&s)[C::BN / 8][4],
                                const fa_attention_params &p, const work_tile &work, int row0, int key0,
                                int thread, const uint32_t (&kept)[2]) {
  if (C::SEVERAL && !drops_any(p))
    hopper_pack_p<C, false>(p_frag, s, p, work, row0, key0, thread, kept);
  else
    hopper_pack_p<C, C::DROPOUT>(p_frag, s, p, work, row0, key0, thread, kept);
}

} // namespace fa

#endif
