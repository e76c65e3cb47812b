/* The producers of the main backward kernel for sm_90a: one thread issues bulk copies of K, V, Q and dO, one
 * warp loads LSE and delta; with LOADS_ALONE the same warp does both. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_PRODUCE_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_PRODUCE_CUH

#include "gpu/kernels/hopper_backward/dq.cuh"
#include "gpu/kernels/hopper_backward/dropout.cuh"

namespace fa {

/* Issues the loads of K and V of a key block. */
template <class C>
FA_DEVICE void hopper_backward_load_kv(const fa_hopper_backward_params &p, const hopper_key_tile &t) {
  typedef hopper_backward_barriers<C> bar;
  const int batch = hopper_map_batch<C>(p.b.forward, t.batch), key = t.seq.k_row + t.key0;
  const uint32_t base = shared_base();
  mbarrier_arrive_expect(bar::keys(), 2 * C::KV_BYTES);
  FA_UNROLL
  for (int i = 0; i < C::PANELS; ++i) {
    tma_load(base + C::K_AT + i * C::KV_PANEL, &p.k, bar::keys(), 64 * i, key, t.kv_head, batch);
    tma_load(base + C::V_AT + i * C::KV_PANEL, &p.v, bar::keys(), 64 * i, key, t.kv_head, batch);
  }
}

/* Issues the loads of Q and dO of a row tile. */
template <class C>
FA_DEVICE void hopper_backward_load_q_do(const fa_hopper_backward_params &p, pipeline_state<C::STAGES> pipe,
                                         const hopper_key_tile &t, int head, int tile) {
  typedef hopper_backward_barriers<C> bar;
  const int row = t.seq.q_row + tile * C::BM, batch = hopper_map_batch<C>(p.b.forward, t.batch);
  const uint32_t at = shared_base() + pipe.stage() * C::Q_BYTES;
  mbarrier_wait(bar::q_empty(pipe.stage()), pipe.phase() ^ 1);
  hopper_load<C::PANELS, C::Q_PANEL>(at + C::Q_AT, &p.q, bar::q_full(pipe.stage()), row, head, batch);
  mbarrier_wait(bar::do_empty(pipe.stage()), pipe.phase() ^ 1);
  hopper_load<C::PANELS, C::Q_PANEL>(at + C::DO_AT, &p.d_o, bar::do_full(pipe.stage()), row, head, batch);
}

struct hopper_nothing {
  FA_DEVICE void operator()() const {}
};

/* Loads LSE and delta of a row tile, by a warp; in flex kernels also stores which tile it is. meanwhile: done
 * while they are on their way from memory. */
template <class C, class F = hopper_nothing>
FA_DEVICE void hopper_backward_load_lse_delta(const fa_backward_params &p, pipeline_state<C::STAGES> pipe, int batch,
                                              int head, const flex_tile &tile, int lane, const F &meanwhile = F()) {
  typedef hopper_backward_barriers<C> bar;
  const int64_t row = workspace_row<C::D>(p, batch, head, tile.tile * C::BM);
  const uint32_t to = shared_base() + C::ROWS_AT + pipe.stage() * (2 * C::ROW_BYTES);
  mbarrier_wait(bar::rows_empty(pipe.stage()), pipe.phase() ^ 1);
  vec4 values = {0, 0, 0, 0};
  if (lane % 16 < C::BM / 4) /* half of the lanes each */
    values = load_global(reinterpret_cast<const vec4 *>((lane < 16 ? p.lse_log2 : p.delta) + row) + lane % 16);
  meanwhile();
  if (lane % 16 < C::BM / 4) store_shared16(to + lane / 16 * C::ROW_BYTES + lane % 16 * 16, values);
  if constexpr (C::FLEX) {
    if (lane == 0)
      store_shared4(shared_base() + C::FLEX_TILES_AT + 4 * pipe.stage(),
                    static_cast<uint32_t>(tile.tile * 4 + tile.kind));
  }
  mbarrier_arrive(bar::rows_full(pipe.stage())); /* every lane, for what it wrote */
}

/* One thread. */
template <class C>
FA_DEVICE void hopper_backward_produce_tiles(const fa_hopper_backward_params &p, const hopper_bias_maps &maps) {
  typedef hopper_backward_all_barriers<C> bar;
  const fa_attention_params &f = p.b.forward;
  pipeline_state<C::STAGES> pipe;
  FA_NO_UNROLL
  for (hopper_key_blocks<C> keys; keys.is_there(p.b); ++keys.n) {
    if (keys.n > 0) mbarrier_wait(bar::keys_empty(), (keys.n - 1) % 2);
    hopper_backward_load_kv<C>(p, hopper_load_key_tile<C>(p.b, keys.block(p.b)));
    FA_NO_UNROLL
    for (int n = 0; n < f.heads_per_kv; ++n) {
      const int head = hopper_first_head<C>(p.b) + n;
      const auto tiles = hopper_row_tiles<C>(f, hopper_load_key_tile<C>(p.b, keys.block(p.b)), head);
      FA_NO_UNROLL
      for (int i = tiles.begin(); i < tiles.end(); ++i) { /* keys are recomputed: there are few registers */
        hopper_backward_load_q_do<C>(p, pipe, hopper_load_key_tile<C>(p.b, keys.block(p.b)), head, tiles.at(i).tile);
        if constexpr (C::BIAS)
          hopper_backward_load_bias<C>(maps.bias, f, pipe, hopper_load_key_tile<C>(p.b, keys.block(p.b)), head, i);
        pipe.next();
      }
    }
  }
}

/* Both of a row tile, by warp 0: Q and dO while LSE and delta are on their way. */
template <class C> FA_DEVICE void hopper_backward_produce_rows(const fa_hopper_backward_params &p, int lane) {
  const fa_attention_params &f = p.b.forward;
  pipeline_state<C::STAGES> pipe;
  const hopper_key_blocks<C> keys;
  if (!keys.is_there(p.b)) return;
  if (lane == 0) hopper_backward_load_kv<C>(p, hopper_load_key_tile<C>(p.b, keys.block(p.b)));
  FA_NO_UNROLL
  for (int n = 0; n < f.heads_per_kv; ++n) {
    const int head = hopper_first_head<C>(p.b) + n;
    const auto tiles = hopper_row_tiles<C>(f, hopper_load_key_tile<C>(p.b, keys.block(p.b)), head);
    FA_NO_UNROLL
    for (int i = tiles.begin(); i < tiles.end(); ++i) {
      hopper_backward_load_lse_delta<C>(p.b, pipe, hopper_grid_batch<C>(p.b), head, tiles.at(i), lane, [&] {
        if (lane == 0)
          hopper_backward_load_q_do<C>(p, pipe, hopper_load_key_tile<C>(p.b, keys.block(p.b)), head, tiles.at(i).tile);
      });
      pipe.next();
    }
  }
}

/* Warp 1. */
template <class C> FA_DEVICE void hopper_backward_produce_lse_delta(const fa_backward_params &p, int lane) {
  const fa_attention_params &f = p.forward;
  pipeline_state<C::STAGES> pipe;
  FA_NO_UNROLL
  for (hopper_key_blocks<C> keys; keys.is_there(p); ++keys.n) {
    FA_NO_UNROLL
    for (int n = 0; n < f.heads_per_kv; ++n) {
      const int head = hopper_first_head<C>(p) + n;
      const auto tiles = hopper_row_tiles<C>(f, hopper_load_key_tile<C>(p, keys.block(p)), head);
      FA_NO_UNROLL
      for (int i = tiles.begin(); i < tiles.end(); ++i) {
        hopper_backward_load_lse_delta<C>(p, pipe, hopper_grid_batch<C>(p), head, tiles.at(i), lane);
        if constexpr (C::LOADER_DROPS && !C::LOADS_ALONE)
          hopper_drop_step<C>(p, pipe, keys.block(p), opaque(head), tiles.at(i).tile, opaque(32 + lane));
        pipe.next();
      }
    }
  }
}

/* The order of additions to dQ. There are two steps in flight, `first` and `second`. pass() waits until the
 * consumers have added dQ of the first step and releases its semaphore, then waits for the semaphore of the
 * second step and lets the consumers add.
 *
 * There is no deadlock: a block waits only for the one before it in its head's order, which started earlier
 * and visits the same row tiles in the same order. So of all running blocks the one that started first waits
 * for none, and finishes. */
template <class C> struct hopper_dq_order {
  int first = -1, second = -1; /* semaphores of their row tiles; -1: no such step */
  bool predecessor = false;    /* whether the second step must wait */
  unsigned n = 0;              /* the second step's pipeline counter */
  FA_DEVICE void pass(const fa_backward_params &p, unsigned own_number) const {
    typedef hopper_backward_all_barriers<C> bar;
    if (first >= 0) {
      mbarrier_wait(bar::dq_added(), static_cast<int>((n - 1) % 2));
      semaphore_release(p.dq_semaphore + first, own_number);
    }
    if (second < 0) return;
    if (predecessor) semaphore_wait(p.dq_semaphore + second, own_number + 1);
    mbarrier_arrive(bar::dq_ready());
  }
  FA_DEVICE void next(int semaphore, bool has_predecessor, unsigned its_n) {
    first = second;
    second = semaphore;
    predecessor = has_predecessor;
    n = its_n;
  }
};

/* hopper_backward_produce_lse_delta for deterministic calls; it also controls when the consumers add to dQ.
 * That is done one step late, so that LSE and delta are there in time, and without LAG while these are on their
 * way: consumers add before they need them. */
template <class C> FA_DEVICE void hopper_backward_produce_ordered(const fa_backward_params &p, int lane) {
  const fa_attention_params &f = p.forward;
  const int block = hopper_key_blocks<C>().block(p), batch = static_cast<int>(blockIdx.z);
  pipeline_state<C::STAGES> pipe;
  hopper_dq_order<C> order;
  if (!hopper_key_blocks<C>().is_there(p)) return;
  FA_NO_UNROLL
  for (int n = 0; n < f.heads_per_kv; ++n) {
    const int head = hopper_first_head<C>(p) + n;
    const block_range tiles = hopper_load_key_tile<C>(p, opaque(block)).blocks;
    FA_NO_UNROLL
    for (int i = tiles.begin; i < tiles.end; ++i) {
      const auto pass = [&] {
        if (lane != 0) return;
        order.pass(p, static_cast<unsigned>(block) + 1);
        order.next(hopper_dq_semaphore_of<C>(p, batch, head, i),
                   hopper_has_predecessor<C>(p, opaque(block), i), pipe.n);
      };
      if constexpr (C::LAG) {
        hopper_backward_load_lse_delta<C>(p, pipe, batch, head, flex_tile{i, 0}, lane);
        pass();
      } else {
        hopper_backward_load_lse_delta<C>(p, pipe, batch, head, flex_tile{i, 0}, lane, pass);
      }
      pipe.next();
    }
  }
  for (int i = 0; lane == 0 && i < 2; ++i) {
    order.pass(p, static_cast<unsigned>(block) + 1);
    order.next(-1, false, order.n + 1);
  }
}

} // namespace fa

#endif
