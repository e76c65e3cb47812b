/* Work tiles over a KV cache. How many rows a sequence has is known to the device alone, so the producer's warp finds
 * out which sequence a tile belongs to: 32 sequences at a time, one for each lane. */
#ifndef FA_GPU_KERNELS_HOPPER_CACHE_WORK_TILE_CUH
#define FA_GPU_KERNELS_HOPPER_CACHE_WORK_TILE_CUH

#include "gpu/kernels/hopper/cache_config.cuh"

namespace fa {

FA_DEVICE int hopper_shfl_xor(int x, int lane_mask) {
  return static_cast<int>(float_bits(shfl_xor(as_float(static_cast<uint32_t>(x)), lane_mask)));
}

/* Sums over the lanes before this one, and over all. */
struct lane_sums {
  int before, all;
};
FA_DEVICE lane_sums hopper_sum_lanes(int x, int lane) {
  lane_sums s = {0, x};
  FA_UNROLL
  for (int bit = 1; bit < 32; bit *= 2) {
    const int other = hopper_shfl_xor(s.all, bit);
    if (lane & bit) s.before += other;
    s.all += other;
  }
  s.all = uniform(s.all);
  return s;
}

/* The x of the one lane that is asked for it, for all. */
FA_DEVICE int hopper_from_lane(bool is_asked, int x) {
  x = is_asked ? x : 0;
  FA_UNROLL
  for (int bit = 1; bit < 32; bit *= 2) x += hopper_shfl_xor(x, bit);
  return uniform(x);
}

/* Work tiles of a sequence. */
template <class C> FA_DEVICE int tiles_of_sequence(const fa_hopper_cache_params &p, int batch) {
  if (batch >= p.batch) return 0;
  int rows = p.f.seqlen_q;
  if (p.f.cu_seqlens_q)
    rows = load_global(p.f.cu_seqlens_q + batch + 1) - load_global(p.f.cu_seqlens_q + batch);
  return ((rows << p.pack) + C::BM - 1) / C::BM * p.tiles.heads;
}

/* 32 sequences from `first` on, and the tiles of all before them. */
struct tile_window {
  int first = 0, before = 0;
};
/* A tile's sequence, and its number there. batch < 0: there is no such tile, and `tile` is how many there are. */
struct tile_place {
  int batch, tile;
};

/* All lanes call it. The window is where the last search ended: tiles are asked for in ascending or descending order. */
template <class C>
FA_DEVICE tile_place find_tile(const fa_hopper_cache_params &p, tile_window &window, int tile, int lane) {
  int own = tiles_of_sequence<C>(p, window.first + lane);
  lane_sums sums = hopper_sum_lanes(own, lane);
  FA_NO_UNROLL
  while (tile < window.before || tile >= window.before + sums.all) {
    const bool down = tile < window.before;
    if (!down && window.first + 32 >= p.batch) return tile_place{-1, window.before + sums.all};
    if (!down) window.before += sums.all;
    window.first += down ? -32 : 32;
    own = tiles_of_sequence<C>(p, window.first + lane);
    sums = hopper_sum_lanes(own, lane);
    if (down) window.before -= sums.all;
  }
  const int at = tile - window.before - sums.before;
  const bool is_own = at >= 0 && at < own;
  return tile_place{window.first + hopper_from_lane(is_own, lane), hopper_from_lane(is_own, at)};
}

/* All work tiles of the launch in the order in which they are worked on. */
struct tile_order {
  tile_window front, back;
  int n; /* how many there are; only known to orders from both ends */
};

template <class C> FA_DEVICE tile_order order_of_tiles(const fa_hopper_cache_params &p, int lane) {
  tile_order order = {{}, {}, 0};
  if (p.both_ends) order.n = find_tile<C>(p, order.back, 0x7fffffff, lane).tile;
  return order;
}

template <class C>
FA_DEVICE tile_place next_place(const fa_hopper_cache_params &p, tile_order &order, int i, int lane) {
  if (!p.both_ends) return find_tile<C>(p, order.front, i, lane);
  if (i >= order.n) return tile_place{-1, order.n};
  return i % 2 ? find_tile<C>(p, order.back, order.n - 1 - i / 2, lane) : find_tile<C>(p, order.front, i / 2, lane);
}

/* As load_sequence. Keys are counted from the first one that is not masked. */
FA_DEVICE sequence load_cached_sequence(const fa_hopper_cache_params &p, int batch) {
  sequence s = {0, 0, p.f.seqlen_q, p.f.seqlen_k, 0};
  if (p.f.cu_seqlens_q) {
    s.q_row = load_global(p.f.cu_seqlens_q + batch);
    s.len_q = load_global(p.f.cu_seqlens_q + batch + 1) - s.q_row;
  }
  if (p.cache_seqlens) s.len_k = load_global(p.cache_seqlens + batch);
  if (p.f.leftpad_k) s.k_row = load_global(p.f.leftpad_k + batch);
  s.len_k += p.n_new - s.k_row;
  s.shift = p.f.top_left ? 0 : s.len_k - s.len_q;
  return s;
}

template <class C> FA_DEVICE work_tile load_cached_work_tile(const fa_hopper_cache_params &p, tile_place at) {
  const fa_tile_scheduler_params &t = p.tiles;
  work_tile work;
  work.pack = p.pack;
  work.batch = at.batch;
  work.seq = load_cached_sequence(p, at.batch);
  const int rows = hopper_n_rows<C>(work), row_blocks = (rows + C::BM - 1) / C::BM;
  const int per_section = t.section * row_blocks, section = at.tile / per_section,
            in_section = at.tile - section * per_section;
  const int first = section * t.section, heads = min_int(t.section, t.heads - first);
  int row_block = in_section / heads;
  work.head = (first + in_section - row_block * heads) << p.pack;
  if (t.last_first) row_block = row_blocks - 1 - row_block;
  work.row0 = row_block * C::BM;
  work.blocks = visible_blocks<C::BN>(p.f, work.seq, work.row0 >> p.pack,
                                      ((min_int(work.row0 + C::BM, rows) - 1) >> p.pack) + 1);
  return work;
}

} // namespace fa

#endif
