/* Scores to weights, in the accumulators of a warpgroup. */
#ifndef FA_GPU_KERNELS_HOPPER_FORWARD_SOFTMAX_CUH
#define FA_GPU_KERNELS_HOPPER_FORWARD_SOFTMAX_CUH

#include "gpu/kernels/flash_forward.cuh"
#include "gpu/kernels/hopper_forward_task.cuh"

namespace fa {

/* As softmax_row (softmax.cuh), value for value. */
template <int TILES, int LAZY>
FA_DEVICE float hopper_softmax_row(float (&s)[TILES][4], int r, float scale_log2, row_state &row) {
  float m = row.max;
  FA_UNROLL
  for (int n = 0; n < TILES; ++n) m = greater(m, greater(s[n][2 * r], s[n][2 * r + 1]));
  m = greater(m, shfl_xor(m, 1));
  m = greater(m, shfl_xor(m, 2));
  if (LAZY == 2 && multiply(m - row.max, scale_log2) <= 8.0f) m = row.max;
  const float shift = m == -infinity() ? 0.0f : multiply(m, scale_log2);
  const float shrink = exp2_approx(multiply(row.max, scale_log2) - shift); /* exactly 1 while m stays */
  float sum = 0.0f;
  FA_UNROLL
  for (int n = 0; n < TILES; ++n) {
    FA_UNROLL
    for (int e = 2 * r; e < 2 * r + 2; ++e) {
      s[n][e] = exp2_approx(fmaf(s[n][e], scale_log2, -shift));
      sum += s[n][e];
    }
  }
  row.sum = row.sum * shrink + sum;
  row.max = m;
  return shrink;
}

/* Scores become exponentials; shrink: by how much what was accumulated so far shrinks. */
template <class C>
FA_DEVICE void hopper_softmax(float (&s)[1][C::BN / 8][4], row_state (&rows)[2], float (&shrink)[2],
                              const fa_flash_params &p, const hopper_task &task, float slope, int row0,
                              int key0, int thread) {
  /* opaque: what the rare branch needs is worked out in it, not kept from before the loop */
  const int first = opaque(row0);
  if constexpr (C::KIND != plain) modify_scores<C>(s, p, task.seq, slope, first, key0, opaque(thread));
  if (keys_need_mask(p, task.seq, first, first + 64, key0, key0 + C::BN))
    mask_scores<C>(s, p, task.seq, first, key0, opaque(thread));
  const float scale_log2 = C::ALIBI || C::SOFTCAP ? LOG2E : p.scale_log2;
  FA_UNROLL
  for (int r = 0; r < 2; ++r)
    shrink[r] = hopper_softmax_row<C::BN / 8, C::LAZY>(s[0], r, scale_log2, rows[r]);
}

template <class C> FA_DEVICE void hopper_shrink(float (&o)[C::D / 8][4], const float (&shrink)[2]) {
  if (C::LAZY && !any_lane(shrink[0] != 1.0f || shrink[1] != 1.0f)) return;
  FA_UNROLL
  for (int n = 0; n < C::D / 8; ++n) {
    FA_UNROLL
    for (int e = 0; e < 4; ++e) o[n][e] *= shrink[e / 2];
  }
}

/* An accumulator becomes A's fragments in place. row0: of the group's rows. */
template <class C>
FA_DEVICE void hopper_weights(uint32_t (&weights)[C::BN / 16][4], const float (&s)[C::BN / 8][4],
                              const fa_flash_params &p, const hopper_task &task, int row0, int key0,
                              int thread) {
  uint32_t words[4];
  FA_UNROLL
  for (int i = 0; i < C::BN / 16; ++i) {
    if (C::DROPOUT && i % 2 == 0)
      drop_words<C>(words, p, dropout_of(p, task.batch, task.head, thread % 32),
                    row0 + score_row<C>(thread, 0), key0 + 16 * i);
    FA_UNROLL
    for (int j = 0; j < 4; ++j) {
      weights[i][j] = pack2(s[2 * i + j / 2][j % 2 * 2], s[2 * i + j / 2][j % 2 * 2 + 1], typename C::T());
      if (C::DROPOUT) weights[i][j] &= dropout_kept(p, words[i % 2 * 2 + j / 2], j % 2);
    }
  }
}

} // namespace fa

#endif
