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

/* Whether dropout keeps index and index + 1. */
struct kept_pair {
  bool first, second;
};
FA_DEVICE kept_pair linear_kept_pair(const fa_attention_params &p, uint64_t index) {
  uint32_t words[4];
  linear_words(words, p, index);
  const uint32_t component = static_cast<uint32_t>(index) & 3;
  kept_pair kept;
  kept.first = linear_kept(p, words, component);
  if (component == 3) linear_words(words, p, index + 1);
  kept.second = linear_kept(p, words, (component + 1) & 3);
  return kept;
}

/* The same, with all bits set in each kept half. */
FA_DEVICE uint32_t linear_kept_bits(const fa_attention_params &p, uint64_t index) {
  const kept_pair kept = linear_kept_pair(p, index);
  return (kept.first ? 0xffffu : 0) | (kept.second ? 0xffff0000u : 0);
}

} // namespace fa

#endif
