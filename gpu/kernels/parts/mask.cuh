/* Which keys a row sees, and which key blocks a row block visits: causal masks, windows, and the lengths of
 * sequences.
 *
 * Row i of len_q sees keys lo(i) <= j < hi(i). Its diagonal is key i + shift, where shift is len_k - len_q
 * (bottom-right alignment) or 0 (top-left). */
#ifndef FA_GPU_KERNELS_PARTS_MASK_CUH
#define FA_GPU_KERNELS_PARTS_MASK_CUH

#include "gpu/kernels/params/attention.h"
#include "gpu/kernels/parts/bits.cuh"
#include "gpu/kernels/parts/traits.cuh"
#include "gpu/kernels/machine/prim.cuh"

namespace fa {

/* One sequence of the batch: where its rows and keys begin, and how many there are. */
struct sequence {
  int q_row, k_row; /* first row in the packed tensors (0 for fixed length); left padding of keys skipped */
  int len_q, len_k;
  int shift;
};

FA_DEVICE sequence load_sequence(const fa_attention_params &p, int batch) {
  sequence s = {0, 0, p.seqlen_q, p.seqlen_k, 0};
  if (may_have(FA_HAS_LENGTHS) && p.cu_seqlens_q) {
    const int q0 = load_global(p.cu_seqlens_q + batch), k0 = load_global(p.cu_seqlens_k + batch);
    s.q_row = q0;
    s.k_row = k0;
    s.len_q = load_global(p.cu_seqlens_q + batch + 1) - q0;
    s.len_k = load_global(p.cu_seqlens_k + batch + 1) - k0;
  }
  if (may_have(FA_HAS_LENGTHS) && p.seqused_k) s.len_k = load_global(p.seqused_k + batch);
  if (may_have(FA_HAS_LENGTHS) && p.leftpad_k) {
    const int pad = load_global(p.leftpad_k + batch);
    s.k_row += pad;
    s.len_k -= pad;
  }
  s.shift = p.top_left ? 0 : s.len_k - s.len_q;
  return s;
}

struct row_limits {
  int lo, hi;
};

FA_DEVICE int min_int(int a, int b) {
  return a < b ? a : b;
}
FA_DEVICE int max_int(int a, int b) {
  return a > b ? a : b;
}

/* The first key of the chunk that a diagonal is in. Before key 0 there is no key to hide. */
FA_DEVICE int first_of_chunk(int chunk, int diagonal) {
  return diagonal >= chunk ? diagonal - diagonal % chunk : 0;
}

/* CHUNKS: the kernel is one that reads p.chunk: it would cost the others registers. */
template <bool CHUNKS = false>
FA_DEVICE row_limits limits_of_row(const fa_attention_params &p, const sequence &s, int row) {
  const int diagonal = row + s.shift;
  row_limits r = {0, s.len_k};
  if (!may_have(FA_HAS_WINDOW)) return r;
  if (p.window_left >= 0) r.lo = max_int(0, diagonal - p.window_left);
  if (p.window_right >= 0) r.hi = min_int(s.len_k, diagonal + p.window_right + 1);
  if (CHUNKS && p.chunk > 0) r.lo = max_int(r.lo, first_of_chunk(p.chunk, diagonal));
  return r;
}

/* The custom mask of a sequence hides the pair. */
FA_DEVICE bool bits_hide(const uint8_t *bits, const sequence &s, int row, int key) {
  if (row >= s.len_q || key >= s.len_k) return false; /* no such pair, and no bit */
  return bit_hides(bits, static_cast<int64_t>(row) * s.len_k + key);
}

/* Key blocks [begin, end) that some row of [row0, row1) sees; neither lo nor hi decreases with the row. */
struct block_range {
  int begin, end;
};

template <int BN, bool CHUNKS = false>
FA_DEVICE block_range visible_blocks(const fa_attention_params &p, const sequence &s, int row0, int row1) {
  const int lo = limits_of_row<CHUNKS>(p, s, row0).lo, hi = limits_of_row(p, s, row1 - 1).hi;
  block_range r = {lo / BN, hi > 0 ? (hi + BN - 1) / BN : 0};
  return r;
}

/* The order in which a key block visits query blocks: all blocks of one head, then those of the group's next
 * head. */
struct walk {
  int head, m;
};
FA_DEVICE walk next_of(walk at, block_range blocks) {
  if (at.m + 1 < blocks.end) return walk{at.head, at.m + 1};
  return walk{at.head + 1, blocks.begin};
}

/* True if some row of [row0, row1) does not see all of the keys [key0, key1). */
template <bool CHUNKS = false>
FA_DEVICE bool keys_need_mask(const fa_attention_params &p, const sequence &s, int row0, int row1, int key0,
                              int key1) {
  return limits_of_row<CHUNKS>(p, s, row1 - 1).lo > key0 || limits_of_row(p, s, row0).hi < key1;
}

} // namespace fa

#endif
