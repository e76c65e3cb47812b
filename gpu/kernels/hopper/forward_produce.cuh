/* The thread of a forward kernel for sm_90a that brings everything. */
#ifndef FA_GPU_KERNELS_HOPPER_FORWARD_PRODUCE_CUH
#define FA_GPU_KERNELS_HOPPER_FORWARD_PRODUCE_CUH

#include "gpu/kernels/hopper/forward_work_tile.cuh"

namespace fa {

/* Loads everything of a tile that has keys. Empty barriers are waited for with the opposite parity: the first
 * use passes at once. */
template <class C> struct hopper_producer {
  typedef hopper_barriers<C> bar;
  typedef hopper_ring<C::STAGES> ring;
  hopper_ring<1> q;
  ring kv; /* of the block whose V comes next */

  /* A key block of K or V. */
  FA_DEVICE static void load_keys(uint32_t shared, const fa_tensor_map *map, uint32_t full,
                                  const fa_hopper_params &p, const hopper_task &task, flex_tile block) {
    hopper_load<C::PANELS, C::KV_PANEL>(shared, map, full, task.seq.k_row + block.tile * C::BN,
                                        task.head / p.f.heads_per_kv, hopper_plane(p.f, task));
  }
  FA_DEVICE static void load_k(const fa_hopper_params &p, const hopper_task &task, ring k, flex_tile block) {
    mbarrier_wait(bar::k_empty(k.stage()), k.parity() ^ 1);
    if (C::FLEX) /* before the arrival that comes with the load */
      store_shared4(shared_base() + C::ENTRIES_AT + 4 * k.stage(),
                    static_cast<uint32_t>(block.tile * 4 + block.kind));
    load_keys(shared_base() + C::K_AT + k.stage() * C::KV_BYTES, &p.k, bar::k_full(k.stage()), p, task,
              block);
  }
  FA_DEVICE static void load_v(const fa_hopper_params &p, const hopper_task &task, ring v, flex_tile block) {
    mbarrier_wait(bar::v_empty(v.stage()), v.parity() ^ 1);
    load_keys(shared_base() + C::V_AT + v.stage() * C::KV_BYTES, &p.v, bar::v_full(v.stage()), p, task,
              block);
  }
  FA_DEVICE void load_q(const fa_hopper_params &p, const hopper_task &task) {
    FA_NO_UNROLL
    for (int g = 0; g < C::GROUPS; ++g) {
      mbarrier_wait(bar::q_empty(g), q.parity() ^ 1);
      hopper_load<C::PANELS, C::Q_PANEL>(shared_base() + g * C::Q_BYTES, &p.q, bar::q_full(g),
                                         task.seq.q_row + task.row0 + 64 * g, task.head,
                                         hopper_plane(p.f, task));
    }
    q.next();
  }
  FA_DEVICE void load(const fa_hopper_params &p, const hopper_task &task,
                      const tile_walk<typename C::MODS> &walk) {
    flex_tile ahead = walk.at(walk.end() - 1);
    load_k(p, task, kv, ahead);
    load_q(p, task);
    FA_NO_UNROLL
    for (int i = walk.end() - 1; i >= walk.begin(); --i) {
      const flex_tile block = C::FLEX ? ahead : walk.at(i); /* read once, or not kept */
      if (i > walk.begin()) {
        ahead = walk.at(i - 1);
        load_k(p, task, kv.after(), ahead);
      }
      load_v(p, task, kv, block);
      kv.next();
    }
  }
};

/* The key blocks of a task. */
template <class C>
FA_DEVICE tile_walk<typename C::MODS> hopper_walk(const fa_hopper_params &p, const hopper_task &task) {
  return tile_walk<typename C::MODS>(p.f.flex, p.f.flex.keys, task.batch, task.head, task.row0 / C::BM,
                                     task.blocks);
}

/* One thread. It tells the consumers each task, and that there are no more; the next tile's number is on its
 * way while a task is loaded. */
template <class C> FA_DEVICE void hopper_produce(const fa_hopper_params &p) {
  typedef hopper_barriers<C> bar;
  hopper_producer<C> producer;
  hopper_ring<2> told;
  hopper_queue queue;
  FA_NO_UNROLL
  for (int tile = queue.first(); tile < p.tiles.n;) {
    const int next = queue.next(p.tiles);
    hopper_task task = hopper_load_task<C>(p, tile);
    const tile_walk<typename C::MODS> walk = hopper_walk<C>(p, task);
    task.blocks = {walk.begin(), walk.end()};
    mbarrier_wait(bar::task_empty(told.stage()), told.parity() ^ 1);
    hopper_tell<C>(told, task);
    told.next();
    if (walk.begin() < walk.end()) producer.load(p, task, walk);
    tile = next;
  }
  mbarrier_wait(bar::task_empty(told.stage()), told.parity() ^ 1);
  hopper_tell<C>(told, hopper_task{{}, 0, 0, -1, {0, 0}});
}

} // namespace fa

#endif
