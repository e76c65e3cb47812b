/* Dropout of the memeff kernels (docs/reference/semantics.md, "Dropout", memeff): each pair (row, key) has a uniform
 * number that belongs to its linear index; four indices share a Philox call of ten rounds. */
#ifndef FA_GPU_KERNELS_PARTS_DROPOUT_LINEAR_CUH
#define FA_GPU_KERNELS_PARTS_DROPOUT_LINEAR_CUH

#include "gpu/kernels/parts/dropout_state.cuh"
#include "gpu/kernels/parts/mask.cuh"
#include "gpu/kernels/parts/philox.cuh"

namespace fa {

/* The index of row 0, key 0 of a head. Heads are spaced by the launch's longest lengths, rows by the
 * sequence's own number of keys. */
FA_DEVICE uint64_t linear_head(const fa_attention_params &p, int batch, int head) {
  return dropout_offset_of(p) + (static_cast<uint64_t>(batch) * p.heads_q + head) *
                                    static_cast<uint64_t>(p.seqlen_q) * static_cast<uint64_t>(p.seqlen_k);
}
FA_DEVICE uint64_t linear_row(uint64_t head, const sequence &seq, int row) {
  return head + static_cast<uint64_t>(row) * static_cast<uint64_t>(seq.len_k);
}

/* Adding half a unit makes the number never 0; it may be 1. */
FA_DEVICE bool linear_kept(const fa_attention_params &p, const uint32_t (&words)[4], uint32_t component) {
  const uint32_t word =
      component < 2 ? (component == 0 ? words[0] : words[1]) : (component == 2 ? words[2] : words[3]);
  return fmaf(static_cast<float>(word), 0x1p-32f, 0x1p-33f) > p.dropout_p;
}

/* UNROLLED: of the rounds. */
template <int UNROLLED = 10>
FA_DEVICE void linear_words(uint32_t (&words)[4], const fa_attention_params &p, uint64_t index) {
  const uint64_t block = index >> 2;
  philox<10, UNROLLED>(words, dropout_seed_of(p), static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0);
}

/* A bit for each of the four numbers that index shares a call with: whether they are kept. */
FA_DEVICE uint32_t linear_kept_four(const fa_attention_params &p, uint64_t index) {
  uint32_t words[4], kept = 0;
  linear_words(words, p, index);
  FA_UNROLL
  for (uint32_t i = 0; i < 4; ++i) kept |= linear_kept(p, words, i) ? 1u << i : 0;
  return kept;
}

/* Of one key in each tile of 8 of a row whether it is kept: bit 4 n of the result. even, odd: fours 2 n and 2 n + 1 of the
 * row, at bits 4 n to 4 n + 3. at: the key's place, from the first number of the first four. */
FA_DEVICE uint32_t linear_kept_of(uint64_t even, uint32_t odd, uint32_t at) {
  const uint32_t low = static_cast<uint32_t>(even);
  const uint32_t word = at < 4 ? low : at < 8 ? odd : static_cast<uint32_t>(even >> 4);
  return word >> (at & 3) & 0x11111111u;
}

FA_DEVICE uint32_t word_of_lane(uint32_t word, int lane) {
  return float_bits(of_lane(as_float(word), lane));
}

/* Which pairs of a warp's 16 rows x 8 N8 keys are kept, in the layout of a tile's accumulators: bit 4 n + e of kept[r] is
 * that of row l/4 + 8 r and key 8 n + l%4 * 2 + e. row: the lane's first; key0: the tile's first.
 *
 * Four lanes that have the same two rows share their calls: each makes the even or the odd fours of one row. A row may begin
 * within a four, and then ends in one more. All lanes of a warp come here together. */
template <int N8>
FA_DEVICE void linear_kept_tile(uint32_t (&kept)[2], const fa_attention_params &p, const sequence &seq, int batch,
                                int head, int row, int key0, int lane) {
  static_assert(N8 <= 8, "a word for a row");
  const uint64_t start = linear_head(p, batch, head) + static_cast<uint64_t>(key0);
  const uint64_t first[2] = {linear_row(start, seq, row), linear_row(start, seq, row + 8)};
  const uint64_t own = (lane & 2 ? first[1] : first[0]) + static_cast<uint64_t>(lane % 2 * 4);
  uint64_t fours = 0;
  FA_UNROLL_BY((N8 + 1) % 3 == 0 ? 3 : 1)
  for (int n = 0; n <= N8; ++n) fours |= static_cast<uint64_t>(linear_kept_four(p, own + 8 * n)) << 4 * n;
  const uint32_t low = static_cast<uint32_t>(fours), high = static_cast<uint32_t>(fours >> 32);
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int from = (lane & ~3) + 2 * r;
    const uint64_t even = word_of_lane(low, from) | static_cast<uint64_t>(word_of_lane(high, from)) << 32;
    const uint32_t odd = word_of_lane(low, from + 1);
    const uint32_t at = (static_cast<uint32_t>(first[r]) & 3) + static_cast<uint32_t>(lane % 4 * 2);
    kept[r] = linear_kept_of(even, odd, at) | linear_kept_of(even, odd, at + 1) << 1;
  }
}

/* All bits of a half that is kept, of those of a tile. */
FA_DEVICE uint32_t linear_kept_halves(uint32_t kept, int n) {
  return (kept >> 4 * n & 1 ? 0xffffu : 0) | (kept >> 4 * n & 2 ? 0xffff0000u : 0);
}

} // namespace fa

#endif
