/* The producer over a KV cache, three warps of it: one finds work tiles and publishes them, one loads Q and K, one V.
 * A load follows at once on the release of its stage: page tables are read a block ahead, and nothing is divided in
 * between. */
#ifndef FA_GPU_KERNELS_HOPPER_CACHE_PRODUCE_CUH
#define FA_GPU_KERNELS_HOPPER_CACHE_PRODUCE_CUH

#include "gpu/kernels/hopper/cache_work_tile.cuh"

namespace fa {

enum hopper_cache_role { HOPPER_CACHE_SCHEDULER, HOPPER_CACHE_LOADS_K, HOPPER_CACHE_LOADS_V };

/* ---- loading ---- */

/* Where a work tile's keys are. */
struct cached_keys {
  const int32_t *table; /* the sequence's page table; NULL: no pages */
  int row, slot;        /* without pages: its row of the cache, and the first key there */
  int lo, hi;           /* keys that some row sees */
};

FA_DEVICE cached_keys find_cached_keys(const fa_hopper_cache_params &p, const work_tile &work) {
  cached_keys keys = {nullptr, work.batch, 0, 0, work.seq.len_k};
  if (p.block_table) keys.table = p.block_table + work.batch * p.table_stride;
  if (p.cache_batch_idx) keys.row = load_global(p.cache_batch_idx + work.batch);
  if (p.f.leftpad_k) keys.slot = load_global(p.f.leftpad_k + work.batch);
  keys.lo = limits_of_row(p.f, work.seq, work.row0 >> p.pack).lo;
  return keys;
}

/* The coordinates of a box: its row of the cache or page, and its first slot. A box without keys has a row outside the
 * tensor, where there are zeros: its page may not exist. */
struct key_box {
  int row, slot;
};

/* The lane's box of a key block. */
template <class C>
FA_DEVICE key_box find_key_box(const fa_hopper_cache_params &p, const cached_keys &keys, int block, int lane) {
  const int key = block * C::BN + lane * p.piece;
  if (!keys.table) return key_box{keys.row, keys.slot + key};
  if (lane * p.piece >= C::BN || key >= keys.hi || key + p.piece <= keys.lo) return key_box{-1, 0};
  const int page = key / p.page_size;
  return key_box{load_global(keys.table + page), key - page * p.page_size};
}

/* What loads K, or V: a warp, all lanes of which call everything. */
template <class C> struct hopper_cache_loader {
  typedef hopper_barriers<C> bar;
  const fa_tensor_map *map;
  uint32_t tiles, full, empty; /* of the first stage */
  pipeline_state<C::STAGES> stages;

  /* boxes: each lane has its own. */
  FA_DEVICE void load_block(const fa_hopper_cache_params &p, int head, key_box boxes) {
    const int stage = stages.stage();
    const uint32_t to = tiles + stage * C::KV_BYTES, at = full + 8 * stage;
    mbarrier_wait(empty + 8 * stage, stages.phase() ^ 1);
    if (elected()) mbarrier_arrive_expect(at, C::KV_BYTES);
    FA_NO_UNROLL
    for (int n = 0; n * p.piece < C::BN; ++n) {
      const int row = from_lane(boxes.row, n), slot = from_lane(boxes.slot, n);
      if (elected()) {
        FA_UNROLL
        for (int i = 0; i < C::PANELS; ++i)
          tma_load(to + i * C::KV_PANEL + n * p.piece * 128, map, at, 64 * i, slot, head, row);
      }
    }
    stages.next();
  }
};

/* Q of all groups. */
template <class C>
FA_DEVICE void hopper_cache_load_q(const fa_hopper_cache_params &p, const work_tile &work, pipeline_state<1> q) {
  typedef hopper_barriers<C> bar;
  FA_NO_UNROLL
  for (int g = 0; g < C::GROUPS; ++g) {
    const int row = work.seq.q_row + ((work.row0 + 64 * g) >> p.pack);
    mbarrier_wait(bar::q_empty(g), q.phase() ^ 1);
    if (elected()) {
      mbarrier_arrive_expect(bar::q_full(g), C::Q_BYTES);
      FA_UNROLL
      for (int i = 0; i < C::PANELS; ++i)
        tma_load(shared_base() + g * C::Q_BYTES + i * C::Q_PANEL, &p.q, bar::q_full(g), 64 * i, work.head, row,
                 work_tile_map_batch(p.f, work));
    }
  }
}

/* is_v: loads V; else Q and K. */
template <class C> FA_DEVICE void hopper_cache_load(const fa_hopper_cache_params &p, bool is_v, int lane) {
  typedef hopper_barriers<C> bar;
  hopper_cache_loader<C> loader = {is_v ? &p.v : &p.k, shared_base() + (is_v ? C::V_AT : C::K_AT),
                                   is_v ? bar::v_full(0) : bar::k_full(0), is_v ? bar::v_empty(0) : bar::k_empty(0), {}};
  pipeline_state<1> q;
  FA_NO_UNROLL
  for (pipeline_state<2> tile_pipe;; tile_pipe.next()) {
    const work_tile work = fetch_work_tile<C>(p.f, tile_pipe);
    sync_warp();
    if (elected()) mbarrier_arrive(hopper_barriers<C>::tile_empty(tile_pipe.stage()));
    if (work.row0 < 0) break;
    if (work.blocks.begin >= work.blocks.end) continue;
    const cached_keys keys = find_cached_keys(p, work);
    const int head = opaque(work.head / p.f.heads_per_kv); /* not divided again for each block */
    key_box next = find_key_box<C>(p, keys, work.blocks.end - 1, lane);
    FA_NO_UNROLL
    for (int i = work.blocks.end - 1; i >= work.blocks.begin; --i) {
      const key_box now = next;
      if (i > work.blocks.begin) next = find_key_box<C>(p, keys, i - 1, lane);
      loader.load_block(p, head, now);
      if (is_v || i < work.blocks.end - 1) continue;
      hopper_cache_load_q<C>(p, work, q);
      q.next();
    }
  }
}

/* ---- scheduling ---- */

/* Publishes each work tile, then that there are no more. Every block asks once for a tile that there is not; the last
 * one to do so resets the counter. */
template <class C> FA_DEVICE void hopper_cache_schedule(const fa_hopper_cache_params &p, int lane) {
  typedef hopper_barriers<C> bar;
  pipeline_state<2> tile_pipe;
  tile_scheduler scheduler;
  tile_order order = order_of_tiles<C>(p, lane);
  FA_NO_UNROLL
  for (int tile = scheduler.first();;) {
    const tile_place at = next_place<C>(p, order, tile, lane);
    const bool is_tile = at.batch >= 0;
    const work_tile work = is_tile ? load_cached_work_tile<C>(p, at) : work_tile{{}, 0, 0, -1, {0, 0}};
    if (elected()) publish_work_tile<C>(tile_pipe, work);
    if (!is_tile) {
      if (lane == 0 && p.tiles.counter >= 0 && tile - static_cast<int>(gridDim.x) == at.tile - 1)
        counter_store(hopper_counters + p.tiles.counter, 0);
      break;
    }
    tile_pipe.next(); /* a tile is fetched when there is a stage for it: not while others have nothing to do */
    mbarrier_wait(bar::tile_empty(tile_pipe.stage()), tile_pipe.phase() ^ 1);
    tile = from_lane(lane == 0 ? scheduler.next(p.tiles) : 0, 0);
  }
}

template <class C> FA_DEVICE void hopper_cache_produce(const fa_hopper_cache_params &p, int warp, int lane) {
  if (warp == HOPPER_CACHE_SCHEDULER)
    hopper_cache_schedule<C>(p, lane);
  else if (warp <= HOPPER_CACHE_LOADS_V)
    hopper_cache_load<C>(p, warp == HOPPER_CACHE_LOADS_V, lane);
}

} // namespace fa

#endif
