/* Linear dropout (parts/dropout_linear.cuh) in the kernels for sm_90a. The host lends them calls whose rows have keys in
 * fours, so that all rows begin at the same place of a four, which is the first unless the offset says otherwise; and in
 * p.dropout_limit the least random word that keeps its pair, since a comparison of words takes less work than one of floats. */
#ifndef FA_GPU_KERNELS_HOPPER_LINEAR_CUH
#define FA_GPU_KERNELS_HOPPER_LINEAR_CUH

#include "gpu/kernels/machine/prim_sm90.cuh"
#include "gpu/kernels/parts/dropout_linear.cuh"

namespace fa {

/* The random words of N fours of indices that lie `step` apart; index: the first one. Their rounds are interleaved, and share
 * the keys. */
template <int N>
FA_DEVICE void hopper_linear_calls(uint32_t (&words)[N][4], uint64_t seed, uint64_t index, uint64_t step) {
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  FA_UNROLL
  for (int i = 0; i < N; ++i) {
    const uint64_t four = (index + i * step) >> 2;
    words[i][0] = static_cast<uint32_t>(four);
    words[i][1] = static_cast<uint32_t>(four >> 32);
    words[i][2] = words[i][3] = 0;
  }
  FA_UNROLL
  for (int round = 0; round < 10; ++round) {
    FA_UNROLL
    for (int i = 0; i < N; ++i) {
      uint32_t(&x)[4] = words[i];
      philox_mix(x[0], x[1], x[2], x[3], multiply_wide(x[0], PHILOX_FACTOR_X), multiply_wide(x[2], PHILOX_FACTOR_Z), k0, k1);
    }
    k0 += PHILOX_STEP_0;
    k1 += PHILOX_STEP_1;
  }
}

/* The random words of N times four indices that lie `step` apart. WHOLE: index is a multiple of four, and step is. */
template <int N, bool WHOLE>
FA_DEVICE void hopper_linear_words(uint32_t (&words)[N][4], uint64_t seed, uint64_t index, uint64_t step) {
  hopper_linear_calls<N>(words, seed, index, step);
  if (WHOLE) return;
  uint32_t next[N][4];
  hopper_linear_calls<N>(next, seed, index + 4, step);
  FA_NO_UNROLL
  for (int n = static_cast<int>(index & 3); n > 0; --n) {
    FA_UNROLL
    for (int i = 0; i < N; ++i) {
      FA_UNROLL
      for (int k = 0; k < 3; ++k) words[i][k] = words[i][k + 1];
      words[i][3] = next[i][0];
      FA_UNROLL
      for (int k = 0; k < 3; ++k) next[i][k] = next[i][k + 1];
    }
  }
}

/* Of N fours, each eight keys behind the one before, what is kept: bit n + 16 e of pairs[i] is that of key 8 n + 2 i + e. */
template <int N, bool WHOLE>
FA_DEVICE void hopper_linear_pairs(uint32_t (&pairs)[2], const fa_attention_params &p, uint64_t index) {
  constexpr int AT_ONCE = WHOLE ? 2 : 1;
  const uint64_t seed = dropout_seed_of(p);
  pairs[0] = pairs[1] = 0;
  FA_NO_UNROLL
  for (int n = 0; n < N; n += AT_ONCE) {
    uint32_t words[AT_ONCE][4];
    hopper_linear_words<AT_ONCE, WHOLE>(words, seed, index + 8 * n, 8);
    FA_UNROLL
    for (int i = 0; i < 4 * AT_ONCE; ++i)
      if (words[i / 4][i % 4] >= p.dropout_limit) pairs[i % 4 / 2] |= 1u << (n + i / 4 + 16 * (i % 2));
  }
}

/* Which pairs of a warp's 16 rows x 8 N8 keys are kept, in the layout of a tile's accumulators: bit n + 16 e of kept[r] is that
 * of row l/4 + 8 r and key 8 n + l%4 * 2 + e. row: the lane's first; key0: the tile's first. Four lanes that have the same
 * two rows share their calls: each makes the even or the odd fours of one row. */
template <int N8>
FA_DEVICE void hopper_linear_kept(uint32_t (&kept)[2], const fa_attention_params &p, int batch, int head, int row,
                                  int key0, int lane) {
  const uint64_t keys = static_cast<uint64_t>(p.seqlen_k);
  const uint64_t own = linear_head(p, batch, head) + static_cast<uint64_t>(row + (lane & 2) * 4) * keys +
                       static_cast<uint64_t>(key0 + lane % 2 * 4);
  uint32_t pairs[2];
  if ((own & 3) == 0)
    hopper_linear_pairs<N8, true>(pairs, p, own);
  else
    hopper_linear_pairs<N8, false>(pairs, p, own);
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int from = (lane & ~3) + 2 * r + lane % 4 / 2;
    const uint32_t even = word_of_lane(pairs[0], from), odd = word_of_lane(pairs[1], from);
    kept[r] = lane & 1 ? odd : even;
  }
}

/* All bits of a half that is kept, of tile n of a row. */
FA_DEVICE uint32_t hopper_linear_halves(uint32_t kept, int n) {
  return n < 8 ? spread_tops(kept << (7 - n % 8), 0, 2) : spread_tops(kept << (7 - n % 8), 1, 3);
}

} // namespace fa

#endif
