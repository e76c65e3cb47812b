/* Lists of keys: each query row sees the keys that its list names (docs/reference/semantics.md, "Lists of keys").
 * The keys of a work tile are then entries of a list, and its rows the heads of one query. */
#ifndef FA_GPU_KERNELS_CACHE_LARGE_LISTS_CUH
#define FA_GPU_KERNELS_CACHE_LARGE_LISTS_CUH

#include "gpu/kernels/cache/large_config.cuh"
#include "gpu/kernels/cache/range.cuh"

namespace fa {

/* A work tile, and the list of its rows. Its limits are then those of the list: all of its entries. */
struct large_work_tile {
  cache_work_tile at;
  const int32_t *list; /* NULL: there are no lists */
  int n_keys;          /* of the sequence; with pages entries have no such limit */
};

template <class C> FA_DEVICE large_work_tile load_large_work_tile(const fa_cache_params &p) {
  large_work_tile w;
  w.list = nullptr;
  w.n_keys = 0;
  if (!p.topk_indices) {
    w.at = load_cache_work_tile<C>(p);
    return w;
  }
  cache_work_tile &t = w.at;
  const int block = opaque(static_cast<int>(blockIdx.x)), tile = block / p.n_splits;
  const int tiles_of_query = (p.heads_per_kv + C::BM - 1) / C::BM, query = tile / tiles_of_query;
  const int head0 = (tile - query * tiles_of_query) * C::BM;
  t.split = block - tile * p.n_splits;
  t.batch = opaque(static_cast<int>(blockIdx.z));
  t.kv_head = static_cast<int>(blockIdx.y);
  t.seq = load_cache_sequence(p, t.batch);
  t.row0 = query * p.heads_per_kv + head0;
  t.n_rows = query < t.seq.len_q ? cache_min(C::BM, p.heads_per_kv - head0) : 0;
  w.n_keys = t.seq.len;
  t.seq.len = p.topk_length ? cache_min(p.topk, load_global(p.topk_length + t.batch)) : p.topk;
  w.list = p.topk_indices + t.batch * p.topk_batch_stride + (t.seq.q_row + static_cast<int64_t>(query)) * p.topk;
  share_key_blocks<C>(t, p, 0, t.seq.len);
  return w;
}

/* The slot that entry i of the list names, as the list has it; negative: it names none. */
FA_DEVICE int listed_slot(const fa_cache_params &p, const large_work_tile &w, int i) {
  const int slot = load_global(w.list + i);
  return !p.block_table && slot >= w.n_keys ? -1 : slot;
}

/* Sets the scores of entries that name no key to -inf. col: the thread's first entry. */
template <class C>
FA_DEVICE void mask_unlisted(float (&s)[C::scores::KEYS / 8][4], const fa_cache_params &p, const large_work_tile &w,
                             int col) {
  FA_UNROLL
  for (int n = 0; n < C::scores::KEYS / 8; ++n) {
    FA_UNROLL
    for (int e = 0; e < 2; ++e) {
      const int i = col + 8 * n + e;
      if (i < w.at.hi && listed_slot(p, w, i) < 0) s[n][e] = s[n][2 + e] = -infinity();
    }
  }
}

} // namespace fa

#endif
