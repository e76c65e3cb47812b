/* Block lists and tile lists: the kernels between the lists of a call and the tiles that its attention
 * kernels visit.
 *
 *   map      from the lists of a call to the map of its blocks
 *   tiles    from the map to the lists of one kernel's tiles, along either axis
 *   blocks   from the map back to lists of blocks, for callers
 *   mask     from mask_mod to the map
 *
 * Lists are written in ascending order by one warp each, so that they are the same in every run. */
#ifndef FA_GPU_KERNELS_FLEX_LISTS_CUH
#define FA_GPU_KERNELS_FLEX_LISTS_CUH

#include "gpu/kernels/mods/blocks.cuh"
#include "gpu/kernels/params/flex_lists.h"

namespace fa {

FA_DEVICE uint32_t or_of_warp(uint32_t x) {
  FA_UNROLL
  for (int mask = 16; mask > 0; mask >>= 1) x |= float_bits(shfl_xor(as_float(x), mask));
  return x;
}

/* Of the lanes that have an element to list: how many come before this lane, and how many there are. */
struct warp_place {
  int before, all;
};
FA_DEVICE warp_place place_in_warp(bool listed, int lane) {
  const uint32_t lanes = or_of_warp(listed ? 1u << lane : 0);
  warp_place p = {0, 0};
  FA_UNROLL
  for (int l = 0; l < 32; ++l) {
    const int one = lanes >> l & 1;
    p.all += one;
    p.before += l < lane ? one : 0;
  }
  return p;
}

/* What a warp works on: the index of its row or block, its head and sequence. */
struct lists_coord {
  int at, head, batch, lane;
};
FA_DEVICE lists_coord load_lists_coord() {
  const int thread = static_cast<int>(threadIdx.x);
  return lists_coord{static_cast<int>(blockIdx.x) * FA_FLEX_LISTS_WARPS + thread / 32,
                     static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.z), thread % 32};
}

FA_DEVICE int64_t map_at(const fa_flex_args &x, const lists_coord &t) {
  return t.batch * x.map_batch_stride + t.head * x.map_head_stride;
}
/* The index of the row, one of n of this head, over all heads. */
FA_DEVICE int64_t dense_row(const lists_coord &t, int n) {
  return (t.batch * static_cast<int64_t>(gridDim.y) + t.head) * n + t.at;
}

/* The index of the row in a call's lists, which may be fewer than the maps. */
FA_DEVICE int64_t listed_row(const fa_flex_lists_params &p, const lists_coord &t) {
  const int64_t head = t.batch % p.list_batch * static_cast<int64_t>(p.list_heads) + t.head % p.list_heads;
  return head * p.call.flex.n_q_blocks + t.at;
}

/* Whatever the lists contain, nothing is written outside the row. */
FA_DEVICE void map_list(const fa_flex_args &x, const fa_flex_block_list &list, uint8_t kind,
                        const lists_coord &t, int64_t at, uint8_t *row) {
  if (!list.count) return;
  const int n = min_int(load_global(list.count + at), x.n_kv_blocks);
  for (int i = t.lane; i < n; i += 32) {
    const int block = load_global(list.index + at * x.n_kv_blocks + i);
    if (block >= 0 && block < x.n_kv_blocks) store_global(row + block, kind);
  }
}

FA_DEVICE void flex_lists_map(const fa_flex_lists_params &p) {
  const fa_flex_args &x = p.call.flex;
  const lists_coord t = load_lists_coord();
  if (t.at >= x.n_q_blocks) return;
  uint8_t *row = p.map + map_at(x, t) + static_cast<int64_t>(t.at) * x.n_kv_blocks;
  for (int k = t.lane; k < x.n_kv_blocks; k += 32)
    store_global(row + k, static_cast<uint8_t>(FA_FLEX_FULLY_MASKED));
  sync_warp(); /* the kinds from the lists are written after this */
  const int64_t at = listed_row(p, t);
  map_list(x, p.partial, FA_FLEX_PARTIAL, t, at, row);
  map_list(x, p.full, FA_FLEX_FULL, t, at, row);
}

/* The rows and keys that have tiles: a packed sequence's own, and otherwise all, since sequences may share lists. */
FA_DEVICE sequence load_tiled_sequence(const fa_attention_params &p, int batch) {
  if (p.cu_seqlens_q) return load_sequence(p, batch);
  return sequence{0, 0, p.seqlen_q, p.seqlen_k, 0};
}

/* The kind of rows [row0, row0 + tile_m) and keys [key0, key0 + tile_n), as far as there are such. */
FA_DEVICE int kind_of_tile(const fa_flex_lists_params &p, const uint8_t *map, const sequence &s, int row0,
                           int key0) {
  const fa_flex_args &x = p.call.flex;
  if (row0 >= s.len_q || key0 >= s.len_k) return FA_FLEX_FULLY_MASKED;
  const int last_row = min_int(row0 + p.tile_m, s.len_q) - 1;
  const int last_key = min_int(key0 + p.tile_n, s.len_k) - 1;
  const int q0 = row0 / x.q_block, q1 = last_row / x.q_block;
  const int k0 = key0 / x.kv_block, k1 = last_key / x.kv_block;
  const int first = load_global(map + static_cast<int64_t>(q0) * x.n_kv_blocks + k0);
  for (int q = q0; q <= q1; ++q)
    for (int k = k0; k <= k1; ++k)
      if (load_global(map + static_cast<int64_t>(q) * x.n_kv_blocks + k) != first) return FA_FLEX_MIXED;
  return first;
}

FA_DEVICE void flex_lists_tiles(const fa_flex_lists_params &p) {
  const lists_coord t = load_lists_coord();
  if (t.at >= p.n_tiles) return;
  const uint8_t *map = p.map + map_at(p.call.flex, t);
  const sequence s = load_tiled_sequence(p.call, t.batch);
  const int64_t at = dense_row(t, p.n_tiles);
  int32_t *entry = p.tile_entry + at * p.capacity;
  int n = 0;
  for (int tile0 = 0; tile0 < p.capacity; tile0 += 32) {
    const int tile = tile0 + t.lane;
    int kind = FA_FLEX_FULLY_MASKED;
    if (tile < p.capacity)
      kind = p.by_rows ? kind_of_tile(p, map, s, tile * p.tile_m, t.at * p.tile_n)
                       : kind_of_tile(p, map, s, t.at * p.tile_m, tile * p.tile_n);
    const warp_place place = place_in_warp(kind != FA_FLEX_FULLY_MASKED, t.lane);
    if (kind != FA_FLEX_FULLY_MASKED) store_global(entry + n + place.before, tile << 2 | kind);
    n += place.all;
  }
  if (t.lane == 0) store_global(p.tile_count + at, n);
}

FA_DEVICE void list_blocks(const fa_flex_args &x, const uint8_t *row, int kind,
                           const fa_flex_block_list &list, const lists_coord &t) {
  const int64_t at = dense_row(t, x.n_q_blocks);
  int32_t *index = list.index + at * x.n_kv_blocks;
  int n = 0;
  for (int k0 = 0; k0 < x.n_kv_blocks; k0 += 32) {
    const int k = k0 + t.lane;
    const bool listed = k < x.n_kv_blocks && load_global(row + k) == kind;
    const warp_place place = place_in_warp(listed, t.lane);
    if (listed) store_global(index + n + place.before, k);
    n += place.all;
  }
  for (int i = n + t.lane; i < x.n_kv_blocks; i += 32) store_global(index + i, 0);
  if (t.lane == 0) store_global(list.count + at, n);
}

FA_DEVICE void flex_lists_blocks(const fa_flex_lists_params &p) {
  const fa_flex_args &x = p.call.flex;
  const lists_coord t = load_lists_coord();
  if (t.at >= x.n_q_blocks) return;
  const uint8_t *row = p.map + map_at(x, t) + static_cast<int64_t>(t.at) * x.n_kv_blocks;
  list_blocks(x, row, FA_FLEX_PARTIAL, p.partial, t);
  list_blocks(x, row, FA_FLEX_FULL, p.full, t);
}

/* Bit 0: mask_mod leaves some pair of the block visible; bit 1: it masks some pair. Only pairs within the
 * sequence count. After every ROWS rows the lanes share their results, and stop when both bits are set. */
template <class MODS>
FA_DEVICE uint32_t scan_block(const fa_flex_args &x, flex_pair at, int row0, int key0, int lane) {
  constexpr int ROWS = 16;
  const int row1 = min_int(row0 + min_int(x.q_block, at.len_q), at.len_q);
  const int key1 = min_int(key0 + min_int(x.kv_block, at.len_k), at.len_k);
  uint32_t seen = 0;
  for (int i0 = row0; i0 < row1 && seen != 3; i0 += ROWS) {
    const int i1 = min_int(i0 + ROWS, row1);
    for (at.i = i0; at.i < i1; ++at.i)
      for (at.j = key0 + lane; at.j < key1; at.j += 32) seen |= MODS::mask(x, at) ? 1 : 2;
    seen = or_of_warp(seen);
  }
  return seen;
}

template <class MODS> FA_DEVICE void flex_mask_map(const fa_flex_lists_params &p) {
  const fa_flex_args &x = p.call.flex;
  const lists_coord t = load_lists_coord();
  if (t.at >= x.n_q_blocks * static_cast<int64_t>(x.n_kv_blocks)) return;
  const sequence s = load_sequence(p.call, t.batch);
  const int q = t.at / x.n_kv_blocks, k = t.at % x.n_kv_blocks;
  const flex_pair at = {t.batch, t.head, 0, 0, s.len_q, s.len_k};
  const uint32_t seen = scan_block<MODS>(x, at, q * x.q_block, k * x.kv_block, t.lane);
  const int kind = seen == 1 ? FA_FLEX_FULL : seen == 3 ? FA_FLEX_PARTIAL : FA_FLEX_FULLY_MASKED;
  if (t.lane == 0) store_global(p.map + map_at(x, t) + t.at, static_cast<uint8_t>(kind));
}

} // namespace fa

#endif
