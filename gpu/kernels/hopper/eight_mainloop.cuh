/* The mainloop of the forward kernels for sm_90a with Q, K and V of e4m3 (forward.cuh, forward_mainloop.cuh).
 *
 * Tensor cores add products of 8 bits with 13 fraction bits, cut toward zero: a sum over thousands of keys in one accumulator
 * comes out far too small. So every key block has a sum of its own, `part`, which O takes up in float32: O = O keep + part.
 * That costs no more than the rescaling of O, but registers:
 *   C::OVERLAPS  part is as wide as O, and P V overlaps the next Q K^T and its softmax, as in the mainloop of 16 bits
 *   else         part has 64 columns, twice: while one is added to O the next is multiplied. Nothing else overlaps within a
 *                warpgroup; the other one has the tensor cores meanwhile */
#ifndef FA_GPU_KERNELS_HOPPER_EIGHT_MAINLOOP_CUH
#define FA_GPU_KERNELS_HOPPER_EIGHT_MAINLOOP_CUH

#include "gpu/kernels/hopper/eight_transpose.cuh"

namespace fa {

/* P in A fragments: of 32 keys four words, each with a lane's two of the first eight and of the next, in one row. */
template <class C>
FA_DEVICE void hopper_eight_convert_p(uint32_t (&p_frag)[C::BN / 32][4], const float (&s)[C::BN / 8][4]) {
  FA_UNROLL
  for (int i = 0; i < C::BN / 32; ++i) {
    FA_UNROLL
    for (int j = 0; j < 4; ++j) {
      const int n = 4 * i + j / 2 * 2, e = j % 2 * 2;
      p_frag[i][j] = pack4(s[n][e], s[n][e + 1], s[n + 1][e], s[n + 1][e + 1], e4m3());
    }
  }
}

/* Issues part = P V for the columns of V from `column` on. */
template <class C, int TILES>
FA_DEVICE void hopper_eight_gemm_pv(float (&part)[TILES][4], const uint32_t (&p_frag)[C::BN / 32][4],
                                    const hopper_descriptors &d, int stage, int column) {
  const uint32_t v = d.v + stage * (C::V_BYTES >> 4) + (column * 128 >> 4);
  FA_UNROLL
  for (int i = 0; i < C::BN / 32; ++i)
    wgmma_rs<0>(part, p_frag[i], hopper_with_low_word(hopper_rows_descriptor(0), v + (i * 32 >> 4)), i > 0,
                e4m3());
  wgmma_commit();
}

/* O takes up a part, whose columns begin with its tile `first`. keep: what becomes of what was there. */
template <class C, int TILES>
FA_DEVICE void hopper_eight_add(float (&o)[C::D / 8][4], const float (&part)[TILES][4], int first,
                                const float (&keep)[2]) {
  FA_UNROLL
  for (int n = 0; n < TILES; ++n) {
    FA_UNROLL
    for (int e = 0; e < 4; ++e) o[first + n][e] = fmaf(o[first + n][e], keep[e / 2], part[n][e]);
  }
}

/* What is the same for all key blocks of a work tile. */
template <class C> struct hopper_eight_tile {
  hopper_descriptors d;
  hopper_descales descale;
  block_range unmasked;
  int row0, begin;
  float slope;
};

/* From a block's scores to the rows' new maxima. keep: what these make of O. */
template <class C>
FA_DEVICE void hopper_eight_maxima(float (&s)[1][C::BN / 8][4], float (&shift)[2], float (&keep)[2],
                                   row_state (&rows)[2], const hopper_eight_tile<C> &t,
                                   const fa_attention_params &p, const work_tile &work, int i, int thread) {
  hopper_logits<C>(s, p, t.descale, work, t.slope, t.row0, flex_tile{i, FA_FLEX_FULL}, t.unmasked, thread);
  hopper_shifts<C>(s[0], shift, keep, rows, p, t.descale);
}

/* Waits for a block's Q K^T, the only group in flight or behind `BEHIND` others, and releases what it read. */
template <class C, int BEHIND>
FA_DEVICE void hopper_eight_take_scores(hopper_consumer<C> &c, float (&s)[1][C::BN / 8][4],
                                        pipeline_state<C::STAGES> k, bool last) {
  typedef hopper_barriers<C> bar;
  wgmma_wait<BEHIND>(s[0]);
  hopper_release(bar::k_empty(k.stage()), c.thread);
  if (last) hopper_release(bar::q_empty(c.group), c.thread);
}

/* C::OVERLAPS. The first K must have arrived, and Q. */
template <class C>
FA_DEVICE void hopper_eight_overlapped(hopper_consumer<C> &c, float (&o)[C::D / 8][4], row_state (&rows)[2],
                                       const hopper_eight_tile<C> &t, const fa_attention_params &p,
                                       const work_tile &work, int i, pipeline_state<C::STAGES> &k) {
  typedef hopper_barriers<C> bar;
  float s[1][C::BN / 8][4], part[C::D / 8][4], shift[2], keep[2], rescale[2];
  uint32_t p_frag[C::BN / 32][4];
  wgmma_fence();
  hopper_gemm_qk<C>(s[0], t.d, k.stage());
  hopper_eight_take_scores<C, 0>(c, s, k, i == t.begin);
  hopper_eight_maxima<C>(s, shift, keep, rows, t, p, work, i, c.thread);
  FA_UNROLL
  for (int r = 0; r < 2; ++r) hopper_row_exp<C>(s[0], r, shift, keep, rows, p, t.descale);
  hopper_eight_convert_p<C>(p_frag, s[0]);
  k.next();
  if (i > t.begin) mbarrier_wait(bar::k_full(k.stage()), k.phase());
  FA_NO_UNROLL
  while (--i >= t.begin) {
    const pipeline_state<C::STAGES> v = k.before();
    hopper_take_turn<C>(c.group);
    wgmma_fence();
    hopper_gemm_qk<C>(s[0], t.d, k.stage());
    mbarrier_wait(bar::v_full(v.stage()), v.phase());
    wgmma_fence();
    hopper_eight_gemm_pv<C>(part, p_frag, t.d, v.stage(), 0);
    hopper_give_turn<C>(c.group);
    hopper_eight_take_scores<C, 1>(c, s, k, i == t.begin);
    hopper_eight_maxima<C>(s, shift, rescale, rows, t, p, work, i, c.thread);
    k.next();
    hopper_row_exp<C>(s[0], 0, shift, rescale, rows, p, t.descale);
    if (i > t.begin) mbarrier_wait(bar::k_full(k.stage()), k.phase());
    wgmma_wait<0>(part);
    hopper_release(bar::v_empty(v.stage()), c.thread);
    hopper_eight_add<C>(o, part, 0, keep);
    hopper_row_exp<C>(s[0], 1, shift, rescale, rows, p, t.descale);
    hopper_eight_convert_p<C>(p_frag, s[0]);
    keep[0] = rescale[0];
    keep[1] = rescale[1];
  }
  const pipeline_state<C::STAGES> v = k.before();
  mbarrier_wait(bar::v_full(v.stage()), v.phase());
  wgmma_fence();
  hopper_eight_gemm_pv<C>(part, p_frag, t.d, v.stage(), 0);
  wgmma_wait<0>(part);
  hopper_release(bar::v_empty(v.stage()), c.thread);
  hopper_eight_add<C>(o, part, 0, keep);
}

/* O = O keep + P V, 64 columns at a time. */
template <class C>
FA_DEVICE void hopper_eight_add_values(float (&o)[C::D / 8][4], const uint32_t (&p_frag)[C::BN / 32][4],
                                       const hopper_descriptors &d, int stage, const float (&keep)[2]) {
  constexpr int PARTS = C::D / 64;
  float part[2][8][4];
  wgmma_fence();
  hopper_eight_gemm_pv<C>(part[0], p_frag, d, stage, 0);
  FA_UNROLL
  for (int n = 0; n < PARTS; ++n) {
    if (n + 1 < PARTS) {
      wgmma_fence();
      hopper_eight_gemm_pv<C>(part[(n + 1) % 2], p_frag, d, stage, 64 * (n + 1));
      wgmma_wait<1>(part[n % 2]);
    } else {
      wgmma_wait<0>(part[n % 2]);
    }
    hopper_eight_add<C>(o, part[n % 2], 8 * n, keep);
  }
}

/* One product after the other. */
template <class C>
FA_DEVICE void hopper_eight_in_turn(hopper_consumer<C> &c, float (&o)[C::D / 8][4], row_state (&rows)[2],
                                    const hopper_eight_tile<C> &t, const fa_attention_params &p,
                                    const work_tile &work, int i, pipeline_state<C::STAGES> &k) {
  typedef hopper_barriers<C> bar;
  FA_NO_UNROLL
  for (; i >= t.begin; --i) {
    float s[1][C::BN / 8][4], shift[2], keep[2];
    uint32_t p_frag[C::BN / 32][4];
    mbarrier_wait(bar::k_full(k.stage()), k.phase());
    wgmma_fence();
    hopper_gemm_qk<C>(s[0], t.d, k.stage());
    hopper_eight_take_scores<C, 0>(c, s, k, i == t.begin);
    hopper_eight_maxima<C>(s, shift, keep, rows, t, p, work, i, c.thread);
    FA_UNROLL
    for (int r = 0; r < 2; ++r) hopper_row_exp<C>(s[0], r, shift, keep, rows, p, t.descale);
    hopper_eight_convert_p<C>(p_frag, s[0]);
    mbarrier_wait(bar::v_full(k.stage()), k.phase());
    hopper_eight_add_values<C>(o, p_frag, t.d, k.stage(), keep);
    hopper_release(bar::v_empty(k.stage()), c.thread);
    k.next();
  }
}

/* All key blocks of the work tile that the group sees. */
template <class C>
FA_DEVICE void hopper_eight_mainloop(hopper_consumer<C> &c, float (&o)[C::D / 8][4], row_state (&rows)[2],
                                     const fa_attention_params &p, const work_tile &work, block_range own) {
  typedef hopper_barriers<C> bar;
  static_assert(!C::SKIPS && !C::DROPOUT && !C::FLEX && C::BY_ROW, "what this loop does not have");
  const int row0 = work.row0 + 64 * c.group;
  const hopper_eight_tile<C> t = {hopper_make_descriptors<C>(c.group),
                                  hopper_load_descales<C>(p, work),
                                  hopper_unmasked_blocks<C>(p, work, row0),
                                  row0,
                                  uniform(own.begin),
                                  C::ALIBI ? alibi_slope(p, work.batch, work.head) : 0.0f};
  pipeline_state<C::STAGES> k = {static_cast<unsigned>(uniform(static_cast<int>(c.k.n)))};
  const int i = uniform(own.end) - 1;
  mbarrier_wait(bar::q_full(c.group), c.q.phase());
  mbarrier_wait(bar::k_full(k.stage()), k.phase());
  if constexpr (C::OVERLAPS)
    hopper_eight_overlapped<C>(c, o, rows, t, p, work, i, k);
  else
    hopper_eight_in_turn<C>(c, o, rows, t, p, work, i, k);
  c.k = k;
  c.q.next();
}

} // namespace fa

#endif
