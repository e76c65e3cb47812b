/* The producers of gpu/kernels/hopper_backward/pair.cuh, which have few registers:
 *   one warp      loads K and V, Q, LSE and delta
 *   one warp      loads dO; in the plain kernel the first warp does
 *   two warps     compute which pairs (row, key) dropout keeps, in kernels with dropout
 *   two warps     take turns in adding to dQ, in kernels for deterministic calls without dropout: pair_turns.cuh */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_PAIR_LOAD_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_PAIR_LOAD_CUH

#include "gpu/kernels/hopper_backward/dropout.cuh"
#include "gpu/kernels/hopper_backward/pair_config.cuh"

namespace fa {

/* Writes zeros, by a warp, to the ragged tail of a tile of 64 rows, from `first` on: these rows belong to the
 * next sequence, and 0 times a NaN there would reach sums. */
template <int PANELS> FA_DEVICE void hopper_pair_clear_ragged_tail(uint32_t tile, int first, int lane) {
  const int from = max_int(first, 0) * 8 + lane; /* in 16-byte chunks */
  FA_NO_UNROLL
  for (int panel = 0; panel < PANELS; ++panel) {
    FA_NO_UNROLL
    for (int i = from; i < 64 * 8; i += 32)
      store_shared16(tile + panel * (64 * 128) + 16 * i, vec4{0, 0, 0, 0});
  }
}

/* Completes the full barrier of a tile that has arrived and been cleared. */
FA_DEVICE void hopper_pair_arrive_cleared(uint32_t full, int lane) {
  fence_async();
  sync_warp();
  if (lane == 0) mbarrier_arrive(full);
}

/* Issues the loads of K, V and the needed part of the other block's K. bar: the barrier they complete on. One
 * thread. */
template <class C>
FA_DEVICE void hopper_pair_issue_kv(const fa_hopper_backward_params &p, const hopper_key_tile &t, int other_key,
                                     uint32_t bar) {
  const uint32_t base = shared_base();
  const int first = hopper_pair_panel<C>(cluster_rank()), batch = hopper_map_batch<C>(p.b.forward, t.batch),
            key = t.seq.k_row + t.key0;
  mbarrier_arrive_expect(bar, 2 * C::KV_BYTES + C::OTHER_PANELS * C::KV_PANEL);
  FA_UNROLL
  for (int i = 0; i < C::OTHER_PANELS; ++i)
    tma_load(base + C::OTHER_K_AT + i * C::KV_PANEL, &p.k, bar, 64 * (first + i), t.seq.k_row + other_key,
             t.kv_head, batch);
  FA_UNROLL
  for (int i = 0; i < C::PANELS; ++i) {
    tma_load(base + C::K_AT + i * C::KV_PANEL, &p.k, bar, 64 * i, key, t.kv_head, batch);
    tma_load(base + C::V_AT + i * C::KV_PANEL, &p.v, bar, 64 * i, key, t.kv_head, batch);
  }
}

/* Loads the K and V of a block. arrived: the phases that the warp waits for next, of its tiles' barriers by
 * stage (bits 0 and 1) and of the keys' barrier (bit 2). */
template <class C>
FA_DEVICE void hopper_pair_load_kv(const fa_hopper_backward_params &p, hopper_pair_key_tiles<C> keys,
                                      int &arrived, int lane) {
  typedef hopper_pair_barriers<C> bar;
  const hopper_key_tile t = hopper_pair_load_key_tile<C>(p.b, keys);
  const int other_key = t.key0 + (cluster_rank() ? -C::BN : C::BN);
  if constexpr (C::VARLEN) {
    if (max_int(t.key0, other_key) + C::BN > t.seq.len_k) {
      const uint32_t base = shared_base();
      if (lane == 0) hopper_pair_issue_kv<C>(p, t, other_key, bar::keys_arrived());
      mbarrier_wait(bar::keys_arrived(), arrived >> 2 & 1);
      arrived ^= 4;
      hopper_pair_clear_ragged_tail<C::PANELS>(base + C::K_AT, t.seq.len_k - t.key0, lane);
      hopper_pair_clear_ragged_tail<C::PANELS>(base + C::V_AT, t.seq.len_k - t.key0, lane);
      hopper_pair_clear_ragged_tail<C::OTHER_PANELS>(base + C::OTHER_K_AT, t.seq.len_k - other_key, lane);
      hopper_pair_arrive_cleared(bar::keys(), lane);
      return;
    }
  }
  if (lane == 0) hopper_pair_issue_kv<C>(p, t, other_key, bar::keys());
}

/* Loads half of a row tile into both blocks once its stage is free in both; the other block loads the other
 * half. n_rows: rows of the sequence from this tile on; phase: of `arrived`. */
template <class C>
FA_DEVICE void hopper_pair_load_half_tile(const fa_tensor_map *map, uint32_t to, uint32_t full, uint32_t arrived,
                                      int phase, int row, int head, int batch, int n_rows, int lane) {
  const bool whole = !C::VARLEN || n_rows >= C::BM;
  if (lane == 0)
    hopper_load_multicast<C::PANELS, C::Q_PANEL>(to, map, whole ? full : arrived, row, C::BM / 2, head, batch);
  if (whole) return;
  mbarrier_wait(arrived, phase);
  hopper_pair_clear_ragged_tail<C::PANELS>(to, n_rows, lane);
  hopper_pair_arrive_cleared(full, lane);
}

/* Loads LSE and delta of a row tile; in flex kernels also stores which tile it is. */
template <class C>
FA_DEVICE void hopper_pair_load_lse_delta(const fa_backward_params &p, pipeline_state<C::STAGES> pipe,
                                        const hopper_pair_tile &at, int lane) {
  typedef hopper_pair_barriers<C> bar;
  mbarrier_wait(bar::rows_empty(pipe.stage()), pipe.phase() ^ 1);
  const float *from = (lane < 16 ? p.lse_log2 : p.delta) +
                      workspace_row<C::D>(p, static_cast<int>(blockIdx.z), at.head, at.block * C::BM) +
                      lane % 16 * 4;
  store_shared16(shared_base() + C::ROWS_AT + pipe.stage() * (2 * C::ROW_BYTES) + 16 * lane,
                 load_global(reinterpret_cast<const vec4 *>(from)));
  if constexpr (C::FLEX) {
    if (lane < 2)
      store_shared4(hopper_pair_tile_address<C>(pipe) + 4 * lane,
                    static_cast<uint32_t>(lane ? at.head : at.block * 4 + at.kind));
  }
  sync_warp();
  if (lane == 0) mbarrier_arrive(bar::rows_full(pipe.stage()));
}

/* Loads Q of a row tile, with LSE and delta, and dO. */
template <class C, bool WITH_Q, bool WITH_DO>
FA_DEVICE void hopper_pair_load_q_do(const fa_hopper_backward_params &p, pipeline_state<C::STAGES> pipe,
                                      const hopper_pair_tile &at, int &arrived, int lane) {
  typedef hopper_pair_barriers<C> bar;
  const fa_attention_params &f = p.b.forward;
  const sequence seq = hopper_load_sequence<C>(f);
  const int row = at.block * C::BM, n_rows = seq.len_q - row,
            batch = hopper_map_batch<C>(f, static_cast<int>(blockIdx.z));
  const bool ends = C::VARLEN && n_rows < C::BM;
  if (WITH_Q) {
    const int stage = pipe.stage();
    if (lane == 0) mbarrier_wait(bar::q_empty(stage), pipe.phase() ^ 1);
    hopper_pair_load_half_tile<C>(&p.q, shared_base() + C::Q_AT + stage * C::Q_BYTES, bar::q_full(stage),
                              bar::q_arrived(stage), arrived >> stage & 1, seq.q_row + row, at.head, batch,
                              n_rows, lane);
    if (ends) arrived ^= 1 << stage;
    hopper_pair_load_lse_delta<C>(p.b, pipe, at, lane);
  }
  if (WITH_DO) {
    const pipeline_state<C::DO_STAGES> do_pipe = hopper_pair_do_pipeline<C>(pipe);
    const int stage = do_pipe.stage();
    if (lane == 0) mbarrier_wait(bar::do_empty(do_pipe), do_pipe.phase() ^ 1);
    hopper_pair_load_half_tile<C>(&p.d_o, shared_base() + C::DO_AT + stage * C::Q_BYTES, bar::do_full(do_pipe),
                              bar::do_arrived(stage), arrived >> stage & 1, seq.q_row + row, at.head, batch,
                              n_rows, lane);
    if (ends) arrived ^= 1 << stage;
  }
}

/* All row tiles of a block's keys. */
template <class C, bool WITH_Q, bool WITH_DO>
FA_DEVICE void hopper_pair_produce_rows(const fa_hopper_backward_params &p, pipeline_state<C::STAGES> &pipe,
                                        hopper_pair_key_tiles<C> keys, int &arrived, int lane) {
  hopper_pair_walk<C> at(p.b.forward, hopper_pair_load_key_tile<C>(p.b, keys));
  FA_NO_UNROLL
  while (at.is_there(hopper_pair_load_key_tile<C>(p.b, keys))) {
    hopper_pair_load_q_do<C, WITH_Q, WITH_DO>(p, pipe, at.tile(pipe), arrived, opaque(lane));
    pipe.next();
    at = at.after(hopper_pair_load_key_tile<C>(p.b, keys));
  }
}

/* The same in flex kernels. Where the list lies is worked out again in every step: there are no registers to keep it in. */
template <class C, bool WITH_Q, bool WITH_DO>
FA_DEVICE void hopper_pair_produce_listed(const fa_hopper_backward_params &p, pipeline_state<C::STAGES> &pipe,
                                          hopper_pair_key_tiles<C> keys, int &arrived, int lane) {
  const fa_attention_params &f = p.b.forward;
  FA_NO_UNROLL
  for (int head = static_cast<int>(blockIdx.y) * f.heads_per_kv;
       head < hopper_pair_load_key_tile<C>(p.b, keys).end; ++head) {
    FA_NO_UNROLL
    for (int i = 0;; ++i) {
      const auto tiles = hopper_pair_row_tiles<C>(f, hopper_pair_load_key_tile<C>(p.b, keys), opaque(head));
      if (i >= tiles.end()) break;
      const flex_tile x = tiles.at(i);
      hopper_pair_load_q_do<C, WITH_Q, WITH_DO>(p, pipe, hopper_pair_tile{opaque(head), x.tile, x.kind}, arrived,
                                                opaque(lane));
      pipe.next();
    }
  }
}

/* One warp: its first lane issues the bulk copies, all lanes load LSE and delta. */
template <class C, bool WITH_Q, bool WITH_DO>
FA_DEVICE void hopper_pair_produce(const fa_hopper_backward_params &p, int lane) {
  typedef hopper_pair_barriers<C> bar;
  int arrived = 0;
  if (WITH_Q && lane == 0)
    for (int i = 0; i < C::STAGES; ++i) mbarrier_arrive_expect(bar::other_full(i), C::DS_BYTES);
  pipeline_state<C::STAGES> pipe;
  FA_NO_UNROLL
  for (hopper_pair_key_tiles<C> keys; keys.is_there(p.b); ++keys.n) {
    if (WITH_Q) {
      if (keys.n > 0) mbarrier_wait(bar::keys_empty(), (keys.n - 1) % 2);
      hopper_pair_load_kv<C>(p, keys, arrived, opaque(lane));
    }
    if constexpr (C::FLEX)
      hopper_pair_produce_listed<C, WITH_Q, WITH_DO>(p, pipe, keys, arrived, lane);
    else
      hopper_pair_produce_rows<C, WITH_Q, WITH_DO>(p, pipe, keys, arrived, lane);
  }
}

/* The position of a dropout warp in one number, since registers are few. */
template <class C> struct hopper_pair_drop_walk {
  int x =
      0; /* the pipeline's counter, modulo its period; above that the index of the head, key block by key
            block */
  FA_DEVICE pipeline_state<C::STAGES> pipe() const {
    return pipeline_state<C::STAGES>{static_cast<unsigned>(opaque(x)) % (2 * C::STAGES)};
  }
  FA_DEVICE hopper_pair_key_tiles<C> keys(const fa_attention_params &f) const {
    return hopper_pair_key_tiles<C>{opaque(x) / (2 * C::STAGES) / f.heads_per_kv};
  }
  FA_DEVICE int head(const fa_attention_params &f) const {
    return static_cast<int>(blockIdx.y) * f.heads_per_kv + opaque(x) / (2 * C::STAGES) % f.heads_per_kv;
  }
  FA_DEVICE void next() { x = x / (2 * C::STAGES) * (2 * C::STAGES) + (x + 1) % (2 * C::STAGES); }
  FA_DEVICE void next_head() { x += 2 * C::STAGES; }
};

/* A warp's 32 keys of a step. One counter at a time: there are no registers for more, and steps are long. */
template <class C>
FA_DEVICE void hopper_pair_drop_step(const fa_backward_params &p, hopper_pair_drop_walk<C> at,
                                     int block, int thread) {
  typedef hopper_pair_barriers<C> bar;
  static_assert(C::BN / 32 == HOPPER_DROP_WARPS, "each has 32 keys");
  uint32_t bits[2];
  if (!hopper_keeps_all<C>(bits, p.forward))
    hopper_drop_bits<1, 1, 1>(
        bits, p.forward,
        dropout_of(p.forward, static_cast<int>(blockIdx.z), at.head(p.forward), opaque(thread) % 32),
        opaque(block) * (C::BM / 16), at.keys(p.forward).block(p) * HOPPER_DROP_WARPS + opaque(thread) / 32 % 2);
  const int me = opaque(thread), lane = me % 32, warp = me / 32 % 2;
  const pipeline_state<C::STAGES> pipe = at.pipe();
  mbarrier_wait(bar::drop_empty(pipe.stage()), pipe.phase() ^ 1);
  hopper_drop_store(shared_base() + C::DROP_AT + pipe.stage() * C::DROP_BYTES + warp * 256, bits, lane);
  sync_warp();
  if (lane == 0) mbarrier_arrive(bar::drop_full(pipe.stage()));
}

/* HOPPER_DROP_WARPS warps: one word for each thread of the dV group, with the bits of its pairs
 * (gpu/kernels/hopper_backward/dropout.cuh). */
template <class C> FA_DEVICE void hopper_pair_drop(const fa_backward_params &p, int thread) {
  const fa_attention_params &f = p.forward;
  FA_NO_UNROLL
  for (hopper_pair_drop_walk<C> at; at.keys(f).is_there(p); at.next_head()) {
    FA_NO_UNROLL
    for (int block = hopper_pair_load_key_tile<C>(p, at.keys(f)).blocks.begin;
         block < hopper_pair_load_key_tile<C>(p, at.keys(f)).blocks.end; ++block) {
      hopper_pair_drop_step<C>(p, at, block, opaque(thread));
      at.next();
    }
  }
}

} // namespace fa

#endif
