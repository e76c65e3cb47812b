/* Which elements of P dropout keeps, bit for bit as docs/reference/semantics.md ("Dropout", flash) defines it.
 *
 * The random bytes belong to blocks of 16 rows x 32 keys of one head, counted within the sequence. A warp
 * holds such a block as four m16n8 accumulator tiles, and one Philox call gives lane l all of its 16 bytes:
 * byte 2r + e of word n decides on element 2r + e of tile n (r = 0: row l/4, r = 1: row l/4 + 8; keys 8n +
 * l%4*2 + e). So:
 *
 *   const dropout_head head = dropout_of(p, batch, query head, lane);
 *   uint32_t words[4];
 *   dropout_words(words, p, head, row / 16, key / 32);  // the block's first row and key, in the sequence
 *   pair &= dropout_kept(p, words[n], r);               // two 16-bit elements of P in a register: 0 if
 *                                                       dropped
 *
 * A kernel that holds S transposed (rows are keys) finds the same bytes in the lanes that would hold those
 * elements; the mask is a function of position, so any thread can compute it.
 *
 * Kept elements are not scaled here: p.dropout_scale is applied to the sums. */
#ifndef FA_GPU_KERNELS_PARTS_DROPOUT_CUH
#define FA_GPU_KERNELS_PARTS_DROPOUT_CUH

#include "gpu/kernels/parts/dropout_state.cuh"
#include "gpu/kernels/parts/philox.cuh"

namespace fa {

/* The first half of the counter, which depends on head and lane only. */
struct dropout_head {
  uint32_t lo, hi;
};

FA_DEVICE dropout_head dropout_of(const fa_attention_params &p, int batch, int head, int lane) {
  const uint64_t at = dropout_offset_of(p) + (static_cast<uint64_t>(batch) * p.heads_q + head) * 32 + lane;
  return dropout_head{static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32)};
}

FA_DEVICE void dropout_words(uint32_t (&words)[4], const fa_attention_params &p, dropout_head head, int row16,
                             int key32) {
  philox<7>(words, dropout_seed_of(p), head.lo, head.hi, static_cast<uint32_t>(row16),
            static_cast<uint32_t>(key32));
}

/* False: every byte keeps its element. */
FA_DEVICE bool drops_any(const fa_attention_params &p) {
  return (p.dropout_limit & 0xff) != 0xff;
}

/* All bits set in each kept half. */
FA_DEVICE uint32_t dropout_kept(const fa_attention_params &p, uint32_t word, int r) {
  return bytes_at_most(word, r, p.dropout_limit);
}

} // namespace fa

#endif
