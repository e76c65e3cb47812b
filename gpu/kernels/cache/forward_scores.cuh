/* What a warp does to its scores in attention over a KV cache: scale, softcap, ALiBi and masks.
 *
 * C::KEYS: the keys of a warp's scores. C::GENERAL as in forward_config.cuh. */
#ifndef FA_GPU_KERNELS_CACHE_FORWARD_SCORES_CUH
#define FA_GPU_KERNELS_CACHE_FORWARD_SCORES_CUH

#include "gpu/kernels/cache/range.cuh"
#include "gpu/kernels/parts/bits.cuh"

namespace fa {

/* A thread's rows: l/4 and, unless there are only 8, l/4 + 8 of its warp's. */
struct cache_row_info {
  int level; /* the slot that ALiBi's distances are counted from, in whatever corner the mask begins */
  cache_limits limits;
  float slope;
};

template <class C, int ROWS>
FA_DEVICE void load_rows(cache_row_info (&rows)[ROWS], const fa_cache_params &p, const cache_work_tile &work, int first,
                         int lane) {
  FA_UNROLL
  for (int r = 0; r < ROWS; ++r) {
    const int last = work.row0 + work.n_rows - 1; /* rows past it are computed like it, and not stored */
    const packed_row at = unpack_row(p, work.kv_head, cache_min(work.row0 + first + lane / 4 + 8 * r, last));
    rows[r].level = at.row + work.seq.len - work.seq.len_q;
    rows[r].limits = limits_of_cache_row<C::GENERAL>(p, work.seq, at.row);
    rows[r].slope = C::GENERAL && p.alibi_slopes
                        ? load_global(p.alibi_slopes + work.batch * p.alibi_batch_stride + at.head)
                        : 0.0f;
  }
}

/* Raw scores to logits: scale, softcap, ALiBi. scale: p.scale, with descales; col: the thread's first key. */
template <class C, int ROWS>
FA_DEVICE void modify_cache_scores(float (&s)[C::KEYS / 8][4], const fa_cache_params &p, float scale,
                                   const cache_row_info (&rows)[ROWS], int col) {
  const float cap = p.softcap, inverse_cap = cap > 0.0f ? 1.0f / cap : 0.0f;
  FA_UNROLL
  for (int n = 0; n < C::KEYS / 8; ++n) {
    FA_UNROLL
    for (int e = 0; e < 2 * ROWS; ++e) {
      float t = multiply(s[n][e], scale);
      if (cap > 0.0f) t = cap * tanh_approx(t * inverse_cap);
      const float distance = static_cast<float>(rows[e / 2].level - col - 8 * n - e % 2);
      s[n][e] = fmaf(-rows[e / 2].slope, fabsf(distance), t);
    }
  }
}

template <class C, int ROWS>
FA_DEVICE void mask_cache_scores(float (&s)[C::KEYS / 8][4], const cache_row_info (&rows)[ROWS], int col) {
  FA_UNROLL
  for (int r = 0; r < ROWS; ++r) {
    const int lo = rows[r].limits.lo - col, hi = rows[r].limits.hi - col; /* relative to the thread's key, to
                                                                             compare with constants */
    FA_UNROLL
    for (int n = 0; n < C::KEYS / 8; ++n) {
      FA_UNROLL
      for (int e = 0; e < 2; ++e)
        if (8 * n + e < lo || 8 * n + e >= hi) s[n][2 * r + e] = -infinity();
    }
  }
}

/* Which of a thread's keys in one row a custom mask hides: bit 2 n + e is key col + 8 n + e. The loop is not unrolled, or
 * its loads would take registers that the kernels of 256 columns do not have. */
template <class C>
FA_DEVICE uint32_t hidden_cache_keys(const fa_cache_params &p, const cache_work_tile &work, const cache_row_info &row,
                                    int col) {
  const uint8_t *bits = p.mask_bits + load_global(p.mask_indptr + work.batch);
  /* The bit of the sequence's slot 0 in this row; slots before pad have none. */
  const int64_t at = row.level - work.seq.len + work.seq.len_q;
  const int64_t first = at * (work.seq.len - work.seq.pad) - work.seq.pad;
  uint32_t hidden = 0;
  FA_NO_UNROLL
  for (int i = 0; i < C::KEYS / 4; ++i) {
    const int key = col + i / 2 * 8 + i % 2;
    if (key >= row.limits.lo && key < row.limits.hi && bit_hides(bits, first + key)) hidden |= 1u << i;
  }
  return hidden;
}

/* Sets the scores of pairs that a custom mask hides to -inf. */
template <class C, int ROWS>
FA_DEVICE void mask_cache_bits(float (&s)[C::KEYS / 8][4], const fa_cache_params &p, const cache_work_tile &work,
                               const cache_row_info (&rows)[ROWS], int col) {
  FA_UNROLL
  for (int r = 0; r < ROWS; ++r) {
    const uint32_t hidden = hidden_cache_keys<C>(p, work, rows[r], col);
    FA_UNROLL
    for (int i = 0; i < C::KEYS / 4; ++i)
      if (hidden >> i & 1) s[i / 2][2 * r + i % 2] = -infinity();
  }
}

} // namespace fa

#endif
