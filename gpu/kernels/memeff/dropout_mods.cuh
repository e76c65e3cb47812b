/* Dropout in kernels with score_mod and mask_mod, which have tiles of different sizes, with the rows or the keys along
 * their columns, and either scheme (docs/reference/semantics.md, "Dropout").
 *
 * What is dropped of a warp's tile comes as a bit for each pair, made in loops, so that the code of Philox exists once or
 * twice only, and before the scores, beside which it would find too few registers. */
#ifndef FA_GPU_KERNELS_MEMEFF_DROPOUT_MODS_CUH
#define FA_GPU_KERNELS_MEMEFF_DROPOUT_MODS_CUH

#include "gpu/kernels/memeff/score.cuh"
#include "gpu/kernels/parts/dropout.cuh"

namespace fa {

/* Whether the call drops pairs. */
FA_DEVICE bool flex_drops(const fa_attention_params &f) {
  return f.dropout_linear || (f.dropout_limit & 0xff) != 0xff;
}

FA_DEVICE uint32_t byte_is_dropped(const fa_attention_params &f, uint32_t word, int byte) {
  return (word >> 8 * byte & 0xff) > (f.dropout_limit & 0xff) ? 1 : 0;
}

/* The word of a block of 16 rows x 32 keys that has columns 8 n .. 8 n + 7. */
FA_DEVICE uint32_t word_of(const uint32_t (&words)[4], int n) {
  return n < 2 ? (n == 0 ? words[0] : words[1]) : (n == 2 ? words[2] : words[3]);
}

/* Tiled, 16 rows by 8 N8 keys. A Philox call is all that a lane needs of a block. */
template <int N8>
FA_DEVICE uint32_t tiled_dropped_by_rows(const fa_attention_params &f, const memeff_coord &t, int row0, int key0,
                                         int lane) {
  constexpr int TILES = N8 < 4 ? N8 : 4; /* of 8 keys, in a block */
  const dropout_head head = dropout_of(f, t.batch, t.head, lane);
  uint32_t dropped = 0;
  FA_NO_UNROLL
  for (int n0 = 0; n0 < N8; n0 += TILES) {
    const int key = key0 + 8 * n0;
    uint32_t words[4];
    dropout_words(words, f, head, row0 / 16, key / 32);
    FA_UNROLL
    for (int n = 0; n < TILES; ++n) {
      const uint32_t word = word_of(words, key % 32 / 8 + n);
      FA_UNROLL
      for (int i = 0; i < 4; ++i) dropped |= byte_is_dropped(f, word, i) << (4 * (n0 + n) + i);
    }
  }
  return dropped;
}

/* Tiled, 16 keys by 8 N8 rows: a lane's pairs are those of other lanes in the layout by rows. row, key: of its element
 * 0. */
template <int N8>
FA_DEVICE uint32_t tiled_dropped_by_keys(const fa_attention_params &f, const memeff_coord &t, int row, int key) {
  uint32_t dropped = 0;
  FA_NO_UNROLL
  for (int at = 0; at < N8; ++at) { /* at / 2: of 16 rows; at % 2: the first or the second of the lane's two */
    const int i = row + at / 2 * 16 + at % 2;
    uint32_t words[4];
    dropout_words(words, f, dropout_of(f, t.batch, t.head, i % 8 * 4 + key % 8 / 2), i / 16, key / 32);
    FA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const uint32_t word = word_of(words, key % 32 / 8 + r);
      FA_UNROLL
      for (int n = 0; n < 2; ++n)
        dropped |= byte_is_dropped(f, word, 2 * n + key % 2) << (4 * (at / 2 * 2 + n) + 2 * r + at % 2);
    }
  }
  return dropped;
}

template <int N8, bool BY_KEYS>
FA_DEVICE uint32_t linear_dropped(const fa_attention_params &f, const memeff_coord &t, int row, int key) {
  const uint64_t head = linear_head(f, t.batch, t.head);
  uint32_t dropped = 0;
  FA_NO_UNROLL
  for (int x = 0; x < 4 * N8; ++x) {
    const int across = x / 2 % 2 * 8, along = x / 4 * 8 + x % 2;
    const uint64_t index = linear_row(head, t.seq, row + (BY_KEYS ? along : across)) +
                           static_cast<uint64_t>(key + (BY_KEYS ? across : along));
    uint32_t words[4];
    linear_words<5>(words, f, index);
    if (!linear_kept(f, words, static_cast<uint32_t>(index) & 3)) dropped |= 1u << x;
  }
  return dropped;
}

/* Only for MODS that may drop: who calls it asks with `if constexpr`, because even arguments that are then not used change
 * which registers a kernel takes.
 *
 * Which pairs of a warp's tile are dropped: bit 4 n + i for element [n][i]. The tile has 16 keys by 8 N8 rows (BY_KEYS),
 * or 16 rows by 8 N8 keys, both multiples of what they are; row, key: of the lane's element 0. */
template <int N8, bool BY_KEYS>
FA_DEVICE uint32_t flex_dropped(const fa_attention_params &f, const memeff_coord &t, int row, int key, int lane) {
  static_assert(4 * N8 <= 32 && N8 % 2 == 0, "a bit for each pair, of whole tiles of 16");
  if (!flex_drops(f)) return 0;
  if (f.dropout_linear) return linear_dropped<N8, BY_KEYS>(f, t, row, key);
  if constexpr (BY_KEYS)
    return tiled_dropped_by_keys<N8>(f, t, row, key);
  else
    return tiled_dropped_by_rows<N8>(f, t, row - lane / 4, key - lane % 4 * 2, lane);
}

/* Sets what is dropped of a warp's P to 0. */
template <int N8> FA_DEVICE void drop_flex(float (&s)[N8][4], uint32_t dropped) {
  FA_UNROLL
  for (int i = 0; i < 4 * N8; ++i)
    if (dropped >> i & 1) s[i / 4][i % 4] = 0.0f;
}

} // namespace fa

#endif
