/* What the producers of a main backward kernel for sm_90a do: one thread issues bulk copies of K, V, Q and
 * dO, one warp brings LSE and delta. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_PRODUCE_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_PRODUCE_CUH

#include "gpu/kernels/hopper_backward_config.cuh"

namespace fa {

/* The keys of a key block. */
template <class C>
FA_DEVICE void hopper_backward_load_keys(const fa_hopper_backward_params &p, const hopper_keys &t) {
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

/* The same of a row tile. */
template <class C>
FA_DEVICE void hopper_backward_load_tile(const fa_hopper_backward_params &p, hopper_ring<C::STAGES> ring,
                                         const hopper_keys &t, int head, int tile) {
  typedef hopper_backward_barriers<C> bar;
  const int row = t.seq.q_row + tile * C::BM, batch = hopper_map_batch<C>(p.b.forward, t.batch);
  const uint32_t at = shared_base() + ring.stage() * C::Q_BYTES;
  mbarrier_wait(bar::q_empty(ring.stage()), ring.parity() ^ 1);
  hopper_load<C::PANELS, C::Q_PANEL>(at + C::Q_AT, &p.q, bar::q_full(ring.stage()), row, head, batch);
  mbarrier_wait(bar::do_empty(ring.stage()), ring.parity() ^ 1);
  hopper_load<C::PANELS, C::Q_PANEL>(at + C::DO_AT, &p.d_o, bar::do_full(ring.stage()), row, head, batch);
}

/* And of its LSE and delta, by a warp; for flex kernels, which tile it is. */
template <class C>
FA_DEVICE void hopper_backward_load_values(const fa_flash_backward_params &p, hopper_ring<C::STAGES> ring,
                                           int batch, int head, const flex_tile &tile, int lane) {
  typedef hopper_backward_barriers<C> bar;
  const int64_t row = workspace_row<C::D>(p, batch, head, tile.tile * C::BM);
  const uint32_t to = shared_base() + C::ROWS_AT + ring.stage() * (2 * C::ROW_BYTES);
  mbarrier_wait(bar::rows_empty(ring.stage()), ring.parity() ^ 1);
  FA_NO_UNROLL
  for (int i = lane; i < C::BM; i += 32) {
    store_shared4(to + 4 * i, float_bits(load_global(p.lse_log2 + row + i)));
    store_shared4(to + C::ROW_BYTES + 4 * i, float_bits(load_global(p.delta + row + i)));
  }
  if constexpr (C::FLEX) {
    if (lane == 0)
      store_shared4(shared_base() + C::ENTRIES_AT + 4 * ring.stage(),
                    static_cast<uint32_t>(tile.tile * 4 + tile.kind));
  }
  mbarrier_arrive(bar::rows_full(ring.stage())); /* every lane, for what it wrote */
}

/* One thread. */
template <class C> FA_DEVICE void hopper_backward_load(const fa_hopper_backward_params &p) {
  typedef hopper_backward_more<C> bar;
  const fa_flash_params &f = p.b.forward;
  hopper_ring<C::STAGES> ring;
  FA_NO_UNROLL
  for (hopper_key_blocks<C> keys; keys.is_there(f); ++keys.n) {
    if (keys.n > 0) mbarrier_wait(bar::keys_empty(), (keys.n - 1) % 2);
    hopper_backward_load_keys<C>(p, hopper_load_keys<C>(p.b, keys.block()));
    FA_NO_UNROLL
    for (int n = 0; n < f.heads_per_kv; ++n) {
      const int head = static_cast<int>(blockIdx.y) * f.heads_per_kv + n;
      const auto tiles = hopper_row_tiles<C>(f, hopper_load_keys<C>(p.b, keys.block()), head);
      FA_NO_UNROLL
      for (int i = tiles.begin(); i < tiles.end(); ++i) { /* keys worked out again: there are few registers */
        hopper_backward_load_tile<C>(p, ring, hopper_load_keys<C>(p.b, keys.block()), head, tiles.at(i).tile);
        ring.next();
      }
    }
  }
}

/* One warp. */
template <class C> FA_DEVICE void hopper_backward_load_rows(const fa_flash_backward_params &p, int lane) {
  const fa_flash_params &f = p.forward;
  hopper_ring<C::STAGES> ring;
  FA_NO_UNROLL
  for (hopper_key_blocks<C> keys; keys.is_there(f); ++keys.n) {
    FA_NO_UNROLL
    for (int n = 0; n < f.heads_per_kv; ++n) {
      const int head = static_cast<int>(blockIdx.y) * f.heads_per_kv + n;
      const auto tiles = hopper_row_tiles<C>(f, hopper_load_keys<C>(p, keys.block()), head);
      FA_NO_UNROLL
      for (int i = tiles.begin(); i < tiles.end(); ++i) {
        hopper_backward_load_values<C>(p, ring, static_cast<int>(blockIdx.z), head, tiles.at(i), lane);
        ring.next();
      }
    }
  }
}

} // namespace fa

#endif
