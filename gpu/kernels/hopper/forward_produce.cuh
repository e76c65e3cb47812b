/* The producer of the forward kernels for sm_90a: one thread that fetches work tiles, publishes them and
 * loads Q, K and V. */
#ifndef FA_GPU_KERNELS_HOPPER_FORWARD_PRODUCE_CUH
#define FA_GPU_KERNELS_HOPPER_FORWARD_PRODUCE_CUH

#include "gpu/kernels/hopper/forward_work_tile.cuh"

namespace fa {

/* Loads everything of a work tile that has keys. Empty barriers are waited for with the opposite phase, so
 * that the first wait returns at once. */
template <class C> struct hopper_producer {
  typedef hopper_barriers<C> bar;
  typedef pipeline_state<C::STAGES> pipeline;
  const fa_tensor_map *bias; /* or NULL */
  pipeline_state<1> q;
  pipeline kv; /* of the block whose V is loaded next */

  /* Loads a key block of K or V. */
  FA_DEVICE static void load_keys(uint32_t shared, const fa_tensor_map *map, uint32_t full,
                                  const fa_hopper_params &p, const work_tile &work, flex_tile block) {
    hopper_load<C::PANELS, C::KV_PANEL>(shared, map, full, work.seq.k_row + block.tile * C::BN,
                                        work.head / p.f.heads_per_kv, work_tile_map_batch(p.f, work));
  }
  FA_DEVICE static void load_k(const fa_hopper_params &p, const work_tile &work, pipeline k,
                               flex_tile block) {
    mbarrier_wait(bar::k_empty(k.stage()), k.phase() ^ 1);
    if (C::FLEX) /* ordered by the arrival that comes with the load */
      store_shared4(shared_base() + C::FLEX_TILES_AT + 4 * k.stage(),
                    static_cast<uint32_t>(block.tile * 4 + block.kind));
    load_keys(shared_base() + C::K_AT + k.stage() * C::KV_BYTES, &p.k, bar::k_full(k.stage()), p, work,
              block);
  }
  FA_DEVICE static void load_v(const fa_hopper_params &p, const work_tile &work, pipeline v,
                               flex_tile block) {
    mbarrier_wait(bar::loaded_v_empty(v.stage()), v.phase() ^ 1);
    load_keys(shared_base() + C::LOADED_V_AT + v.stage() * C::KV_BYTES, &p.v, bar::loaded_v_full(v.stage()),
              p, work, block);
  }
  /* A key block of the bias, for all rows of the work tile. An axis that is broadcast has one element. */
  FA_DEVICE void load_bias(const fa_hopper_params &p, const work_tile &work, pipeline k, flex_tile block) const {
    if constexpr (C::BIAS) {
      mbarrier_wait(bar::bias_empty(k.stage()), k.phase() ^ 1);
      hopper_load_panels<C::BN / 64, C::BIAS_PANEL, 1>(
          shared_base() + C::BIAS_AT + k.stage() * C::BIAS_BYTES, bias, bar::bias_full(k.stage()),
          block.tile * (C::BN / 64), work.row0, p.f.bias_stride.head ? work.head : 0,
          p.f.bias_stride.batch ? work.batch : 0);
    }
  }
  FA_DEVICE void load_q(const fa_hopper_params &p, const work_tile &work) {
    FA_NO_UNROLL
    for (int g = 0; g < C::GROUPS; ++g) {
      mbarrier_wait(bar::q_empty(g), q.phase() ^ 1);
      hopper_load<C::PANELS, C::Q_PANEL>(shared_base() + g * C::Q_BYTES, &p.q, bar::q_full(g),
                                         work.seq.q_row + work.row0 + 64 * g, work.head,
                                         work_tile_map_batch(p.f, work));
    }
    q.next();
  }
  /* Returns the scheduler's next tile, which it asks for as late as the answer comes in time: who is busy longer gets less. */
  FA_DEVICE int load(const fa_hopper_params &p, const work_tile &work,
                     const tile_walk<typename C::MODS> &walk, tile_scheduler &scheduler) {
    int next = 0;
    flex_tile ahead = walk.at(walk.end() - 1);
    load_k(p, work, kv, ahead);
    load_q(p, work);
    load_bias(p, work, kv, ahead);
    FA_NO_UNROLL
    for (int i = walk.end() - 1; i >= walk.begin(); --i) {
      const flex_tile block = C::FLEX ? ahead : walk.at(i); /* read once, or recomputed rather than kept */
      if (i > walk.begin()) {
        ahead = walk.at(i - 1);
        load_k(p, work, kv.after(), ahead);
        load_bias(p, work, kv.after(), ahead);
      } else {
        next = scheduler.next(p.tiles);
      }
      load_v(p, work, kv, block);
      kv.next();
    }
    return next;
  }
};

/* The key blocks of a work tile. Lists that sequences of several lengths share go on behind the keys of most: what
 * memory has there must not be multiplied by, so such tiles are left out. A row block without rows has no list, and may be
 * one behind the lists. */
template <class C>
FA_DEVICE tile_walk<typename C::MODS> hopper_walk(const fa_hopper_params &p, const work_tile &work) {
  int tile = work.row0 / C::BM;
  if (C::FLEX && C::VARLEN) tile = min_int(tile, p.f.flex.keys.n - 1);
  tile_walk<typename C::MODS> walk(p.f.flex, p.f.flex.keys, work.batch, work.head, tile, work.blocks);
  if constexpr (C::FLEX && C::VARLEN) {
    int kept = 0, end = work.row0 < work.seq.len_q ? walk.w.n : 0; /* tiles ascend */
    FA_NO_UNROLL
    while (kept < end) {
      const int middle = (kept + end) / 2;
      if (walk.at(middle).tile * C::BN < work.seq.len_k)
        kept = middle + 1;
      else
        end = middle;
    }
    walk.w.n = kept;
  }
  return walk;
}

/* One thread. Publishes each work tile to the consumers, then that there are no more. The scheduler's next
 * tile is fetched while the current one is loaded. */
template <class C> FA_DEVICE void hopper_produce(const fa_hopper_params &p, const fa_tensor_map *bias) {
  typedef hopper_barriers<C> bar;
  hopper_producer<C> producer = {bias, {}, {}};
  pipeline_state<2> tile_pipe;
  tile_scheduler scheduler;
  FA_NO_UNROLL
  for (int tile = scheduler.first(); tile < p.tiles.n;) {
    work_tile work = load_work_tile<C>(p, tile);
    const tile_walk<typename C::MODS> walk = hopper_walk<C>(p, work);
    work.blocks = {walk.begin(), walk.end()};
    mbarrier_wait(bar::tile_empty(tile_pipe.stage()), tile_pipe.phase() ^ 1);
    publish_work_tile<C>(tile_pipe, work);
    tile_pipe.next();
    tile = walk.begin() < walk.end() ? producer.load(p, work, walk, scheduler) : scheduler.next(p.tiles);
  }
  mbarrier_wait(bar::tile_empty(tile_pipe.stage()), tile_pipe.phase() ^ 1);
  publish_work_tile<C>(tile_pipe, work_tile{{}, 0, 0, -1, {0, 0}});
}

} // namespace fa

#endif
