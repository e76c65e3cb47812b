/* The producer over a KV cache: one warp, whose lanes find work tiles and read page tables together. The first lane does
 * all else. */
#ifndef FA_GPU_KERNELS_HOPPER_CACHE_PRODUCE_CUH
#define FA_GPU_KERNELS_HOPPER_CACHE_PRODUCE_CUH

#include "gpu/kernels/hopper/cache_work_tile.cuh"

namespace fa {

/* Where a work tile's keys are. */
struct cached_keys {
  const int32_t *table; /* the sequence's page table; NULL: no pages */
  int row;              /* else its row of the cache */
  int lo, hi;           /* keys that some row sees */
};

FA_DEVICE cached_keys find_cached_keys(const fa_hopper_cache_params &p, const work_tile &work) {
  cached_keys keys = {nullptr, work.batch, 0, work.seq.len_k};
  if (p.block_table) keys.table = p.block_table + work.batch * p.table_stride;
  if (p.cache_batch_idx) keys.row = load_global(p.cache_batch_idx + work.batch);
  keys.lo = limits_of_row(p.f, work.seq, work.row0 >> p.pack).lo;
  return keys;
}

/* As hopper_producer; all lanes call everything. */
template <class C> struct hopper_cache_producer {
  typedef hopper_barriers<C> bar;
  typedef pipeline_state<C::STAGES> pipeline;
  int lane;
  pipeline_state<1> q;
  pipeline kv; /* of the block whose V is loaded next */

  FA_DEVICE void wait(uint32_t empty, int phase) const {
    if (lane == 0) mbarrier_wait(empty, phase ^ 1);
  }
  /* The last coordinate of the lane's piece of a block. A piece without keys has one outside the tensor, where there are
   * zeros: its page may not exist. */
  FA_DEVICE int page_of(const fa_hopper_cache_params &p, const cached_keys &keys, int block) const {
    if (!keys.table) return keys.row;
    const int key = block * C::BN + lane * p.piece;
    if (lane * p.piece >= C::BN || key >= keys.hi || key + p.piece <= keys.lo) return -1;
    return load_global(keys.table + key / p.page_size);
  }
  FA_DEVICE void load_keys(uint32_t shared, const fa_tensor_map *map, uint32_t full, const fa_hopper_cache_params &p,
                           const work_tile &work, int block, int page) const {
    const int slot = p.block_table ? block * C::BN % p.page_size : work.seq.k_row + block * C::BN;
    const int head = work.head / p.f.heads_per_kv;
    if (lane == 0) mbarrier_arrive_expect(full, C::KV_BYTES);
    FA_NO_UNROLL
    for (int n = 0; n * p.piece < C::BN; ++n) {
      const int its_page = hopper_shfl_xor(page, n); /* to lane 0, from lane n */
      FA_UNROLL
      for (int i = 0; lane == 0 && i < C::PANELS; ++i)
        tma_load(shared + i * C::KV_PANEL + n * p.piece * 128, map, full, 64 * i, slot, head, its_page);
    }
  }
  FA_DEVICE void load_k(const fa_hopper_cache_params &p, const work_tile &work, pipeline k, int block, int page) const {
    wait(bar::k_empty(k.stage()), k.phase());
    load_keys(shared_base() + C::K_AT + k.stage() * C::KV_BYTES, &p.k, bar::k_full(k.stage()), p, work, block, page);
  }
  FA_DEVICE void load_v(const fa_hopper_cache_params &p, const work_tile &work, pipeline v, int block, int page) const {
    wait(bar::v_empty(v.stage()), v.phase());
    load_keys(shared_base() + C::V_AT + v.stage() * C::KV_BYTES, &p.v, bar::v_full(v.stage()), p, work, block, page);
  }
  FA_DEVICE void load_q(const fa_hopper_cache_params &p, const work_tile &work) {
    FA_NO_UNROLL
    for (int g = 0; lane == 0 && g < C::GROUPS; ++g) {
      const uint32_t shared = shared_base() + g * C::Q_BYTES;
      mbarrier_wait(bar::q_empty(g), q.phase() ^ 1);
      mbarrier_arrive_expect(bar::q_full(g), C::Q_BYTES);
      FA_UNROLL
      for (int i = 0; i < C::PANELS; ++i)
        tma_load(shared + i * C::Q_PANEL, &p.q, bar::q_full(g), 64 * i, work.head,
                 work.seq.q_row + ((work.row0 + 64 * g) >> p.pack), work_tile_map_batch(p.f, work));
    }
    q.next();
  }
  /* The page table is read two blocks ahead of the V that it is for. */
  FA_DEVICE void load(const fa_hopper_cache_params &p, const work_tile &work) {
    const cached_keys keys = find_cached_keys(p, work);
    const int last = work.blocks.end - 1;
    int now = page_of(p, keys, last), ahead = last > work.blocks.begin ? page_of(p, keys, last - 1) : -1;
    load_k(p, work, kv, last, now);
    load_q(p, work);
    FA_NO_UNROLL
    for (int i = last; i >= work.blocks.begin; --i) {
      const int then = i - 2 >= work.blocks.begin ? page_of(p, keys, i - 2) : -1;
      if (i > work.blocks.begin) load_k(p, work, kv.after(), i - 1, ahead);
      load_v(p, work, kv, i, now);
      kv.next();
      now = ahead;
      ahead = then;
    }
  }
};

/* As hopper_produce. Every block asks once for a tile that there is not; the last one to do so resets the
 * counter. */
template <class C> FA_DEVICE void hopper_cache_produce(const fa_hopper_cache_params &p, int lane) {
  typedef hopper_barriers<C> bar;
  hopper_cache_producer<C> producer = {lane, {}, {}};
  pipeline_state<2> tile_pipe;
  tile_scheduler scheduler;
  tile_order order = order_of_tiles<C>(p, lane);
  int tile = scheduler.first();
  tile_place at = next_place<C>(p, order, tile, lane);
  FA_NO_UNROLL
  while (at.batch >= 0) {
    tile = hopper_from_lane(lane == 0, lane == 0 ? scheduler.next(p.tiles) : 0);
    const work_tile work = load_cached_work_tile<C>(p, at);
    producer.wait(bar::tile_empty(tile_pipe.stage()), tile_pipe.phase());
    if (lane == 0) publish_work_tile<C>(tile_pipe, work);
    tile_pipe.next();
    if (work.blocks.begin < work.blocks.end) producer.load(p, work);
    at = next_place<C>(p, order, tile, lane);
  }
  if (lane > 0) return;
  producer.wait(bar::tile_empty(tile_pipe.stage()), tile_pipe.phase());
  publish_work_tile<C>(tile_pipe, work_tile{{}, 0, 0, -1, {0, 0}});
  if (p.tiles.counter >= 0 && tile - static_cast<int>(gridDim.x) == at.tile - 1)
    counter_store(hopper_counters + p.tiles.counter, 0);
}

} // namespace fa

#endif
