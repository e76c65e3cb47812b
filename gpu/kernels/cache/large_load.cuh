/* Tiles of Q, K and V of a cache with large head dims: where their rows lie, and the copies into shared memory.
 *
 * Columns from head_dim on are zeros up to a multiple of 32, which is as far as they are read, and those of V
 * from head_dim_v on up to a multiple of 16. */
#ifndef FA_GPU_KERNELS_CACHE_LARGE_LOAD_CUH
#define FA_GPU_KERNELS_CACHE_LARGE_LOAD_CUH

#include "gpu/kernels/cache/large_lists.cuh"
#include "gpu/kernels/cache/large_mixed.cuh"

namespace fa {

/* Chunks of 8 columns that tiles have of head_dim columns. */
FA_DEVICE int large_chunks(int head_dim, int multiple) {
  return (head_dim + multiple - 1) / multiple * (multiple / 8);
}

/* Loads all rows of Q, times the sign of the scale. Rows that do not exist become zeros. */
template <class C>
FA_DEVICE void load_large_q(const fa_cache_params &p, const cache_work_tile &work, int thread) {
  const uint32_t keep = p.score_sign == 0.0f ? 0 : 0xffffffffu, flip = p.score_sign < 0.0f ? 0x80008000u : 0;
  const int n_chunks = large_chunks(p.head_dim, 32);
  FA_NO_UNROLL
  for (int i = thread; i < C::BM * n_chunks; i += C::THREADS) {
    const int row = i / n_chunks, chunk = i - row * n_chunks;
    vec4 v = {0, 0, 0, 0};
    if (row < work.n_rows && chunk * 8 < p.head_dim) {
      const packed_row at = unpack_row(p, work.kv_head, work.row0 + row);
      const uint16_t *from = p.q + work.batch * p.q_stride.batch + at.head * p.q_stride.head +
                             (work.seq.q_row + at.row) * p.q_stride.row + chunk * 8;
      v = p.aligned ? load_chunk<true>(from) : load_chunk<false>(from);
    }
    store_shared16(shared_base() + tile_offset<C::D>(row, chunk),
                   vec4{(v.x & keep) ^ flip, (v.y & keep) ^ flip, (v.z & keep) ^ flip, (v.w & keep) ^ flip});
  }
}

/* A key's slot is where a list says, or its number; with pages the rest is its place in one. */
template <class C>
FA_DEVICE large_rows<C> find_large_rows(const fa_cache_params &p, const large_work_tile &work,
                                        const cache_source<C> &from, int key0, int thread) {
  typedef cache_tile_copy<C> copy;
  large_rows<C> r;
  FA_UNROLL
  for (int i = 0; i < copy::ROWS; ++i) {
    const int key = key0 + copy::first_row(thread) + i * copy::ROWS_AT_ONCE;
    const bool is_key = key >= work.at.lo && key < work.at.hi;
    r.page[i] = from.page;
    r.slot[i] = !is_key ? -1 : work.list ? listed_slot(p, work, key) : key;
    if (!from.table || r.slot[i] < 0) continue;
    const int page = page_of_key(p, r.slot[i]);
    r.page[i] = work.list ? page : load_global(from.table + page);
    r.slot[i] -= page * p.page_size;
  }
  return r;
}

/* Loads a tile of WIDTH columns at most. first: the thread's chunk of page 0, slot 0; columns: of head_dim or
 * head_dim_v; n_chunks: that the tile has of them, with zeros behind them. Rows that do not exist become zeros: a
 * NaN there would reach O even though its P is 0. */
template <class C, int WIDTH>
FA_DEVICE void load_large_tile(uint32_t tile, const fa_cache_params &p, const uint16_t *first,
                               const fa_kernel_strides &stride, const large_rows<C> &rows, int columns, int n_chunks,
                               int thread) {
  typedef cache_tile_copy<C> copy;
  const int chunk = copy::chunk(thread);
  FA_UNROLL
  for (int i = 0; i < copy::ROWS; ++i) {
    const bool is_key = rows.slot[i] >= 0;
    const uint16_t *row = first + rows.page[i] * stride.batch + (is_key ? rows.slot[i] : 0) * stride.row;
    const uint32_t to = tile + tile_offset<WIDTH>(copy::first_row(thread) + i * copy::ROWS_AT_ONCE, chunk);
    FA_NO_UNROLL
    for (int c = 0; c + chunk < n_chunks; c += 8) {
      const bool read = is_key && (c + chunk) * 8 < columns;
      if (p.aligned)
        cp_async16(to + c * 16, row + c * 8, read);
      else
        store_shared16(to + c * 16, read ? load_global_8x2(row + c * 8) : vec4{0, 0, 0, 0});
    }
  }
}

template <class C>
FA_DEVICE void load_large_k(uint32_t tile, const fa_cache_params &p, const cache_source<C> &from,
                            const large_rows<C> &rows, int thread) {
  if constexpr (C::MIXED)
    load_mixed_tile<C>(tile, p, from, rows, large_chunks(p.head_dim, 32), thread);
  else
    load_large_tile<C, C::D>(tile, p, from.k, p.k_stride, rows, p.head_dim, large_chunks(p.head_dim, 32), thread);
}
template <class C>
FA_DEVICE void load_large_v(uint32_t tile, const fa_cache_params &p, const cache_source<C> &from,
                            const large_rows<C> &rows, int thread) {
  load_large_tile<C, C::DV>(tile, p, from.v, p.v_stride, rows, p.head_dim_v, large_chunks(p.head_dim_v, 16),
                            thread);
}

} // namespace fa

#endif
