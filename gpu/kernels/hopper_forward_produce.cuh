/* The thread of a forward kernel for sm_90a that brings everything. */
#ifndef FA_GPU_KERNELS_HOPPER_FORWARD_PRODUCE_CUH
#define FA_GPU_KERNELS_HOPPER_FORWARD_PRODUCE_CUH

#include "gpu/kernels/hopper_forward_task.cuh"

namespace fa {

/* Loads everything of a tile that has keys. Empty barriers are waited for with the opposite parity: the first
 * use passes at once. */
template <class C> struct hopper_producer {
  typedef hopper_barriers<C> bar;
  typedef hopper_ring<C::STAGES> ring;
  hopper_ring<1> q;
  ring kv; /* of the block whose V comes next */

  FA_DEVICE static void load_k(const fa_hopper_params &p, const hopper_task &task, ring k, int block) {
    mbarrier_wait(bar::k_empty(k.stage()), k.parity() ^ 1);
    hopper_load<C::PANELS, C::KV_PANEL>(shared_base() + C::K_AT + k.stage() * C::KV_BYTES, &p.k,
                                        bar::k_full(k.stage()), block * C::BN, task.head / p.f.heads_per_kv,
                                        task.batch);
  }
  FA_DEVICE static void load_v(const fa_hopper_params &p, const hopper_task &task, ring v, int block) {
    mbarrier_wait(bar::v_empty(v.stage()), v.parity() ^ 1);
    hopper_load<C::PANELS, C::KV_PANEL>(shared_base() + C::V_AT + v.stage() * C::KV_BYTES, &p.v,
                                        bar::v_full(v.stage()), block * C::BN, task.head / p.f.heads_per_kv,
                                        task.batch);
  }
  FA_DEVICE void load(const fa_hopper_params &p, const hopper_task &task) {
    load_k(p, task, kv, task.blocks.end - 1);
    FA_NO_UNROLL
    for (int g = 0; g < C::GROUPS; ++g) {
      mbarrier_wait(bar::q_empty(g), q.parity() ^ 1);
      hopper_load<C::PANELS, C::Q_PANEL>(shared_base() + g * C::Q_BYTES, &p.q, bar::q_full(g),
                                         task.row0 + 64 * g, task.head, task.batch);
    }
    q.next();
    FA_NO_UNROLL
    for (int block = task.blocks.end - 1; block >= task.blocks.begin; --block) {
      if (block > task.blocks.begin) load_k(p, task, kv.after(), block - 1);
      load_v(p, task, kv, block);
      kv.next();
    }
  }
};

/* One thread. It tells the consumers each tile's number, and -1 in the end; the next number is on its way
 * while a tile is loaded. */
template <class C> FA_DEVICE void hopper_produce(const fa_hopper_params &p) {
  typedef hopper_barriers<C> bar;
  hopper_producer<C> producer;
  hopper_ring<2> told;
  hopper_queue queue;
  FA_NO_UNROLL
  for (int tile = queue.first(); tile >= 0;) {
    const int next = tile < p.tiles.n ? queue.next(p.tiles) : -1;
    mbarrier_wait(bar::tile_empty(told.stage()), told.parity() ^ 1);
    store_shared4(shared_base() + C::TILES_AT + 16 * told.stage(),
                  static_cast<uint32_t>(tile < p.tiles.n ? tile : -1));
    mbarrier_arrive(bar::tile_full(told.stage()));
    told.next();
    if (tile < p.tiles.n) {
      const hopper_task task = hopper_load_task<C>(p, tile);
      if (task.blocks.begin < task.blocks.end) producer.load(p, task);
    }
    tile = next;
  }
}

} // namespace fa

#endif
