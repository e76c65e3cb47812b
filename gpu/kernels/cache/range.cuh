/* The work tile of a block in attention over a KV cache: which packed rows, and which keys. */
#ifndef FA_GPU_KERNELS_CACHE_RANGE_CUH
#define FA_GPU_KERNELS_CACHE_RANGE_CUH

#include "gpu/kernels/params/cache.h"
#include "gpu/kernels/machine/prim.cuh"

namespace fa {

FA_DEVICE int cache_min(int a, int b) {
  return a < b ? a : b;
}
FA_DEVICE int cache_max(int a, int b) {
  return a > b ? a : b;
}

/* Slots [pad, len) of a sequence's row of the cache, or of its pages, are its keys. */
struct cache_sequence {
  int pad, len;
  int q_row, len_q; /* its rows: the first one (0 unless packed), and how many */
  int k_row;        /* of packed keys: slot 0 */
  int diagonal;     /* the slot on the mask's diagonal in its first row */
};

FA_DEVICE cache_sequence load_cache_sequence(const fa_cache_params &p, int batch) {
  cache_sequence s = {0, p.seqlen_k, 0, p.seqlen_q, 0, 0};
  if (p.cu_seqlens_q) {
    s.q_row = load_global(p.cu_seqlens_q + batch);
    s.len_q = load_global(p.cu_seqlens_q + batch + 1) - s.q_row;
  }
  if (p.cu_seqlens_k) {
    s.k_row = load_global(p.cu_seqlens_k + batch);
    s.len = load_global(p.cu_seqlens_k + batch + 1) - s.k_row;
  }
  if (p.cache_seqlens) s.len = load_global(p.cache_seqlens + batch);
  s.len += p.n_new;
  s.pad = p.leftpad_k ? load_global(p.leftpad_k + batch) : 0;
  s.diagonal = p.top_left ? s.pad : s.len - s.len_q;
  return s;
}

/* The keys [lo, hi) that a row sees; none if hi <= lo. Neither decreases with the row. */
struct cache_limits {
  int lo, hi;
};

/* CHUNKS: the kernel is one that reads p.chunk. */
template <bool CHUNKS>
FA_DEVICE cache_limits limits_of_cache_row(const fa_cache_params &p, const cache_sequence &s, int row) {
  const int diagonal = row + s.diagonal;
  cache_limits r = {s.pad, s.len};
  if (p.window_left >= 0) r.lo = cache_max(r.lo, diagonal - p.window_left);
  if (CHUNKS && p.chunk > 0 && diagonal - s.pad >= p.chunk)
    r.lo = cache_max(r.lo, diagonal - (diagonal - s.pad) % p.chunk);
  if (p.window_right >= 0) r.hi = cache_min(r.hi, diagonal + p.window_right + 1);
  return r;
}

/* A row of one of the query heads that share a KV head. */
struct packed_row {
  int row, head;
};

FA_DEVICE packed_row unpack_row(const fa_cache_params &p, int kv_head, int packed) {
  const int row = packed / p.heads_per_kv;
  const packed_row r = {row, kv_head * p.heads_per_kv + packed - row * p.heads_per_kv};
  return r;
}

/* What a block works on: packed rows row0.. of a KV head, and keys [lo, hi). lo is the start of the split's
 * first key block or, if that is later, the first key that a row sees. */
struct cache_work_tile {
  cache_sequence seq;
  int batch, kv_head, split;
  int row0, n_rows; /* n_rows <= 0: nothing to do */
  int first_block, lo, hi; /* hi <= lo: no keys */
};

/* The key blocks that some row sees, divided evenly among the splits; the first splits have one more. lo, hi: of all
 * rows of the work tile. */
template <class C> FA_DEVICE void share_key_blocks(cache_work_tile &t, const fa_cache_params &p, int lo, int hi) {
  const int begin = lo / C::BN, n_blocks = hi > lo ? (hi + C::BN - 1) / C::BN - begin : 0;
  const int share = n_blocks / p.n_splits, rest = n_blocks % p.n_splits;
  t.first_block = begin + t.split * share + cache_min(t.split, rest);
  const int end = t.first_block + share + (t.split < rest ? 1 : 0);
  t.lo = cache_max(lo, t.first_block * C::BN);
  t.hi = cache_min(hi, end * C::BN);
}

/* row_block, split: of the block. */
template <class C> FA_DEVICE cache_work_tile find_cache_work_tile(const fa_cache_params &p, int row_block, int split) {
  cache_work_tile t;
  t.split = split;
  t.batch = opaque(static_cast<int>(blockIdx.z));
  t.kv_head = static_cast<int>(blockIdx.y);
  t.seq = load_cache_sequence(p, t.batch);
  t.row0 = row_block * C::BM;
  t.n_rows = cache_min(C::BM, t.seq.len_q * p.heads_per_kv - t.row0);
  const int lo = limits_of_cache_row<C::GENERAL>(p, t.seq, t.row0 / p.heads_per_kv).lo;
  const int hi = limits_of_cache_row<false>(p, t.seq, (t.row0 + t.n_rows - 1) / p.heads_per_kv).hi;
  share_key_blocks<C>(t, p, lo, hi);
  return t;
}

template <class C> FA_DEVICE cache_work_tile load_cache_work_tile(const fa_cache_params &p) {
  const int block = opaque(static_cast<int>(blockIdx.x)), row_block = block / p.n_splits;
  return find_cache_work_tile<C>(p, row_block, block - row_block * p.n_splits);
}

} // namespace fa

#endif
