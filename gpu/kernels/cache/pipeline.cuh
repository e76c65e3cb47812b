/* The pipeline of K and V tiles of a cache through shared memory. Each stage has C::KEYS keys and their
 * values as two tiles (tile.cuh) and is loaded by a team of C::TEAM threads.
 *
 * Eight threads copy 128 bytes of a row (four, where it has only 64). Every row has its own address, through the page
 * table or not, so that pages may have any size. A tile of bytes is, to all that copies and loads it, a tile of half as
 * many elements of 16 bits. */
#ifndef FA_GPU_KERNELS_CACHE_PIPELINE_CUH
#define FA_GPU_KERNELS_CACHE_PIPELINE_CUH

#include "gpu/kernels/cache/range.cuh"
#include "gpu/kernels/parts/tile.cuh"

namespace fa {

/* A thread's share of a tile: rows first_row(), first_row() + ROWS_AT_ONCE, ...; of each row, chunk chunk()
 * of every 128 bytes. */
template <class C> struct cache_tile_copy {
  static constexpr int STORED = 16 / static_cast<int>(sizeof(typename C::stored)), CHUNK = C::FOUR ? 32 : STORED; /* elements */
  static constexpr int WIDTH = C::D * 8 / CHUNK; /* of the tile, in 16 bits */
  static constexpr int CHUNKS = WIDTH < 64 ? WIDTH / 8 : 8, PARTS = WIDTH / 8 / CHUNKS;
  static constexpr int ROWS_AT_ONCE = C::TEAM / CHUNKS, ROWS = C::KEYS / ROWS_AT_ONCE;
  static_assert(C::KEYS % ROWS_AT_ONCE == 0 && ROWS_AT_ONCE % 4 == 0, "whole rows, two swizzles at most");
  FA_DEVICE static int first_row(int thread) { return thread % C::TEAM / CHUNKS; }
  FA_DEVICE static int chunk(int thread) { return thread % CHUNKS; }
  /* The address of row i's chunk, from that of row 0. Four rows further, the swizzle differs in one bit. */
  FA_DEVICE static uint32_t in_tile(uint32_t row0, int i) {
    return (row0 ^ (ROWS_AT_ONCE % 8 != 0 && i % 2 != 0 ? 64u : 0u)) +
           static_cast<uint32_t>(i * ROWS_AT_ONCE * WIDTH * 2);
  }
};

/* The K and V of one KV head, as one thread of a team addresses them. */
template <class C> struct cache_source {
  const typename C::stored *k, *v; /* page 0, slot 0, the thread's chunk */
  const float *k_descale, *v_descale; /* of slots: of the same page and slot, or NULL */
  const int32_t *table;  /* the sequence's page table, or NULL */
  int page;              /* without a table: the row of the cache, for all keys */
  bool whole;            /* every tile lies in one page */
};

template <class C>
FA_DEVICE cache_source<C> find_cache_source(const fa_cache_params &p, const cache_work_tile &work, int chunk) {
  typedef const typename C::stored *pointer;
  const int batch = work.batch, column = chunk * cache_tile_copy<C>::STORED;
  cache_source<C> s;
  s.k = reinterpret_cast<pointer>(p.k) + work.seq.k_row * p.k_stride.row + work.kv_head * p.k_stride.head + column;
  s.v = reinterpret_cast<pointer>(p.v) + work.seq.k_row * p.v_stride.row + work.kv_head * p.v_stride.head + column;
  const int64_t descale_head = work.kv_head * p.descale.stride.head;
  s.k_descale = C::EIGHT && p.descale.of_slots ? p.descale.k + descale_head : nullptr;
  s.v_descale = C::EIGHT && p.descale.of_slots ? p.descale.v + descale_head : nullptr;
  const bool paged = C::PAGED && p.block_table;
  s.table = paged ? p.block_table + batch * p.table_stride : nullptr;
  s.page = !paged && p.cache_batch_idx ? load_global(p.cache_batch_idx + batch) : batch;
  s.whole = !paged || p.page_size % C::KEYS == 0;
  return s;
}

FA_DEVICE int page_of_key(const fa_cache_params &p, int key) {
  return static_cast<int>(static_cast<uint64_t>(key) * p.page.multiplier >> p.page.shift);
}

/* The pages of the rows that a thread will copy of the tile at key0; only that of its first row if the tile
 * lies in one page. Looked up separately from the copies, because the table is read long before its elements
 * are needed. Nothing is read for keys outside [lo, hi). */
template <class C> struct cache_pages { int page[cache_tile_copy<C>::ROWS]; };

template <class C> FA_DEVICE cache_pages<C> no_pages(const cache_source<C> &from) {
  cache_pages<C> r;
  FA_UNROLL
  for (int i = 0; i < cache_tile_copy<C>::ROWS; ++i) r.page[i] = from.page;
  return r;
}

template <class C>
FA_DEVICE void find_pages(cache_pages<C> &to, const fa_cache_params &p, const cache_source<C> &from, int key0, int lo,
                          int hi, int thread) {
  typedef cache_tile_copy<C> copy;
  if (!from.table) return;
  if (C::FEWEST) thread = opaque(thread);
  if (from.whole) {
    if (key0 < hi) to.page[0] = load_global(from.table + page_of_key(p, key0));
    return;
  }
  FA_UNROLL
  for (int i = 0; i < copy::ROWS; ++i) {
    const int key = key0 + copy::first_row(thread) + i * copy::ROWS_AT_ONCE;
    if (key >= lo && key < hi) to.page[i] = load_global(from.table + page_of_key(p, key));
  }
}

/* 16 bytes at any address. */
FA_DEVICE vec4 load_chunk_of(const uint16_t *from) {
  return load_global_8x2(from);
}
FA_DEVICE vec4 load_chunk_of(const uint8_t *from) {
  uint32_t w[4] = {0, 0, 0, 0};
  FA_UNROLL
  for (int i = 0; i < 16; ++i) w[i / 4] |= static_cast<uint32_t>(load_global(from + i)) << i % 4 * 8;
  return vec4{w[0], w[1], w[2], w[3]};
}

/* Where the descales of a stage's keys begin; those of its values are C::KEYS further. */
template <class C> FA_DEVICE uint32_t stage_descales(uint32_t stage) {
  return stage + 2 * C::TILE_BYTES;
}

/* The descales of slots, one key a thread. Those of no keys are 0 and not read: they may be NaN. */
template <class C>
FA_DEVICE void load_descales(uint32_t to, const fa_cache_params &p, const cache_source<C> &from, int key0, int lo,
                             int hi, int thread) {
  const int i = (C::FEWEST ? opaque(thread) : thread) % C::TEAM, key = key0 + i;
  const bool is_key = key >= lo && key < hi;
  if (!from.k_descale || i >= C::KEYS) return;
  const int number = page_of_key(p, key), page = is_key && from.table ? load_global(from.table + number) : from.page;
  const int slot = from.table ? key - number * p.page_size : key;
  const int64_t at = page * p.descale.stride.batch + slot * p.descale.stride.row;
  cp_async4(to + i * 4, from.k_descale + at, is_key);
  cp_async4(to + (C::KEYS + i) * 4, from.v_descale + at, is_key);
}

/* 16 bytes of a row. Of short ones the rest of the line, which has another head's keys, is asked for by another block just
 * then: without them memory would be read in halves of lines. */
template <class C> FA_DEVICE void copy_chunk(uint32_t to, const void *from, bool read) {
  if (C::FEWEST && C::CACHE_ROW_BYTES < 128)
    cp_async16_of_line(to, from, read);
  else
    cp_async16(to, from, read);
}

/* Loads the tiles of keys key0.. and of their values to stage and stage + C::TILE_BYTES. Keys outside [lo,
 * hi) become zeros and are not read: a NaN there would reach O even though its P is 0. */
template <class C>
FA_DEVICE void load_tiles(uint32_t stage, const fa_cache_params &p, const cache_source<C> &from,
                          const cache_pages<C> &pages, int key0, int lo, int hi, int thread) {
  typedef cache_tile_copy<C> copy;
  if (C::FEWEST) thread = opaque(thread); /* what comes of it takes registers, if it is kept */
  const int n_chunks = p.head_dim / copy::CHUNK - copy::chunk(thread);
  const uint32_t row0 = stage + tile_offset<copy::WIDTH>(copy::first_row(thread), copy::chunk(thread));
  const int first = key0 + copy::first_row(thread);
  const typename C::stored *k = nullptr, *v = nullptr;
  FA_UNROLL
  for (int i = 0; i < copy::ROWS; ++i) {
    const int key = first + i * copy::ROWS_AT_ONCE;
    const bool is_key = key >= lo && key < hi;
    if (i == 0 || !from.whole) {
      const int64_t page = pages.page[i];
      const int slot = C::PAGED ? key - page_of_key(p, key) * p.page_size : key;
      k = from.k + page * p.k_stride.batch + slot * p.k_stride.row;
      v = from.v + page * p.v_stride.batch + slot * p.v_stride.row;
    } else {
      k += copy::ROWS_AT_ONCE * p.k_stride.row;
      v += copy::ROWS_AT_ONCE * p.v_stride.row;
    }
    const uint32_t to = copy::in_tile(row0, i);
    FA_UNROLL
    for (int part = 0; part < copy::PARTS; ++part) {
      const bool read = is_key && part * copy::CHUNKS < n_chunks;
      const int column = part * copy::CHUNKS * copy::CHUNK;
      if (!C::GENERAL || p.aligned) {
        copy_chunk<C>(to + part * 128, k + column, read);
        copy_chunk<C>(to + C::TILE_BYTES + part * 128, v + column, read);
      } else {
        const vec4 zeros = {0, 0, 0, 0};
        store_shared16(to + part * 128, read ? load_chunk_of(k + column) : zeros);
        store_shared16(to + C::TILE_BYTES + part * 128, read ? load_chunk_of(v + column) : zeros);
      }
    }
  }
  if (C::EIGHT) load_descales<C>(stage_descales<C>(stage), p, from, key0, lo, hi, thread);
}

/* The same of a cache of 4 bits: four.cuh. */
template <class C>
FA_DEVICE void load_packed(uint32_t stage, const fa_cache_params &p, const cache_source<C> &from,
                           const cache_pages<C> &pages, int key0, int lo, int hi, int thread);

template <class C>
FA_DEVICE void load_stage(uint32_t stage, const fa_cache_params &p, const cache_source<C> &from,
                          const cache_pages<C> &pages, int key0, int lo, int hi, int thread) {
  if constexpr (C::FOUR)
    load_packed<C>(stage, p, from, pages, key0, lo, hi, thread);
  else
    load_tiles<C>(stage, p, from, pages, key0, lo, hi, thread);
}

/* The prologue: fills all stages, one group of copies each, from the tiles at first_key, first_key + C::BN,
 * .... On return pages are those of the tile after them. Pages are looked up first, all of them; or, where registers are few, of
 * a stage at a time: tables lie in a row, so that only the first is waited for. */
template <class C>
FA_DEVICE void fill_stages_in_turn(uint32_t stages, const fa_cache_params &p, const cache_source<C> &from,
                                   cache_pages<C> &pages, int first_key, int lo, int hi, int thread) {
  FA_NO_UNROLL
  for (int i = 0; i < C::STAGES; ++i) {
    find_pages<C>(pages, p, from, first_key + i * C::BN, lo, hi, thread);
    load_stage<C>(stages + i * C::STAGE_BYTES, p, from, pages, first_key + i * C::BN, lo, hi, thread);
    cp_async_commit();
  }
  find_pages<C>(pages, p, from, first_key + C::STAGES * C::BN, lo, hi, thread);
}
template <class C>
FA_DEVICE void fill_stages(uint32_t stages, const fa_cache_params &p, const cache_source<C> &from,
                           cache_pages<C> &pages, int first_key, int lo, int hi, int thread) {
  cache_pages<C> ahead[C::STAGES];
  FA_UNROLL
  for (int i = 0; i < C::STAGES; ++i) {
    ahead[i] = pages;
    find_pages<C>(ahead[i], p, from, first_key + i * C::BN, lo, hi, thread);
  }
  find_pages<C>(pages, p, from, first_key + C::STAGES * C::BN, lo, hi, thread);
  FA_UNROLL
  for (int i = 0; i < C::STAGES; ++i) {
    load_stage<C>(stages + i * C::STAGE_BYTES, p, from, ahead[i], first_key + i * C::BN, lo, hi, thread);
    cp_async_commit();
  }
}
template <class C>
FA_DEVICE void cache_prologue(uint32_t stages, const fa_cache_params &p, const cache_source<C> &from, cache_pages<C> &pages,
                          int first_key, int lo, int hi, int thread) {
  if constexpr (C::FEWEST)
    fill_stages_in_turn<C>(stages, p, from, pages, first_key, lo, hi, thread);
  else
    fill_stages<C>(stages, p, from, pages, first_key, lo, hi, thread);
}

} // namespace fa

#endif
