/* What consumers do with a row tile. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_STEP_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_STEP_CUH

#include "gpu/kernels/hopper_backward_drop.cuh"
#include "gpu/kernels/hopper_backward_flex_step.cuh"
#include "gpu/kernels/hopper_backward_products.cuh"
#include "gpu/kernels/hopper_backward_scores.cuh"

namespace fa {

/* Zeros for the rows of two tiles from `first` on, which another entry's have come to: of numbers that nobody
 * looks at, 0 times NaN would reach sums. By all consumers, who may read the tiles then. */
template <class C, int PANEL>
FA_DEVICE void hopper_clear_rows(uint32_t tile, uint32_t other, int first, int thread) {
  constexpr int ROWS = PANEL / 128;
  FA_NO_UNROLL
  for (int i = thread; i < C::PANELS * (ROWS - first) * 8; i += 256) {
    const int panel = i / ((ROWS - first) * 8), chunk = i % ((ROWS - first) * 8);
    store_shared16(tile + panel * PANEL + first * 128 + chunk * 16, vec4{0, 0, 0, 0});
    store_shared16(other + panel * PANEL + first * 128 + chunk * 16, vec4{0, 0, 0, 0});
  }
  fence_async();
  named_sync<256>(2);
}

/* P^T, dS^T in 16 bits, of the plain kernel and those with something that costs time for every pair. dV's
 * product is issued, beside which dS is worked out. */
template <class C>
FA_DEVICE void hopper_step_scores(const fa_flash_backward_params &p, uint32_t (&weights)[C::BM / 16][4],
                                  uint32_t (&ds)[C::BM / 16][4], float (&dv)[C::D / 8][4],
                                  hopper_ring<C::STAGES> ring, const hopper_keys &t, const hopper_step &at,
                                  int group, int thread) {
  typedef hopper_backward_barriers<C> bar;
  const uint32_t base = shared_base(), q_tile = base + C::Q_AT + ring.stage() * C::Q_BYTES,
                 do_tile = base + C::DO_AT + ring.stage() * C::Q_BYTES;
  const int lane = thread % 32, key = 64 * group + thread / 32 * 16 + lane / 4;
  float s[C::BM / 8][4], dp[C::BM / 8][4];
  uint32_t kept = 0;
  const hopper_alibi alibi =
      hopper_load_alibi<C>(p.forward, t.seq, t.batch, at.head, t.key0 + key, at.row0 + lane % 4 * 2);
  mbarrier_wait(bar::q_full(ring.stage()), ring.parity());
  if constexpr (C::VARLEN) {
    if (t.seq.len_q - at.row0 < C::BM) {
      mbarrier_wait(bar::do_full(ring.stage()), ring.parity());
      hopper_clear_rows<C, C::Q_PANEL>(q_tile, do_tile, t.seq.len_q - at.row0, 128 * group + thread);
    }
  }
  wgmma_fence();
  hopper_backward_scores<C>(s, base + C::K_AT + group * 64 * 128, q_tile);
  mbarrier_wait(bar::do_full(ring.stage()), ring.parity());
  wgmma_fence();
  hopper_backward_scores<C>(dp, base + C::V_AT + group * 64 * 128, do_tile);
  mbarrier_wait(bar::rows_full(ring.stage()), ring.parity());
  if constexpr (C::DROPOUT) kept = hopper_take_drop<C>(ring, 128 * group + thread);
  const uint32_t rows = base + C::ROWS_AT + ring.stage() * (2 * C::ROW_BYTES) + lane % 4 * 8;
  const int first = t.key0 + 64 * group;
  wgmma_wait<1>(s);
  if (keys_need_mask(p.forward, t.seq, at.row0, min_int(at.row0 + C::BM, t.seq.len_q), first, first + 64))
    hopper_weigh<C, true>(weights, s, p, alibi, rows,
                          rows_of_keys<C>(p.forward, t.seq, t.key0 + key, at.row0 + lane % 4 * 2));
  else
    hopper_weigh<C, false>(weights, s, p, alibi, rows, hopper_rows());
  if constexpr (C::DROPOUT) hopper_drop_weights<C>(weights, kept);
  wgmma_fence();
  hopper_backward_add<C>(dv, weights, do_tile);
  wgmma_wait<1>(dp);
  if constexpr (C::DROPOUT)
    hopper_drop_gradients<C>(dp, s, rows + C::ROW_BYTES, p.forward.dropout_scale, kept);
  else
    hopper_score_gradients<C>(dp, s, rows + C::ROW_BYTES);
  sync_warp();
  hopper_release(bar::rows_empty(ring.stage()), thread);
  hopper_pack<C>(ds, dp);
}

/* One row tile: of the block's key block, which is worked out again because that is cheaper than kept.
 * DQ_COLS: the group's columns of dQ. */
template <class C, int DQ_COLS>
FA_DEVICE void hopper_backward_step(const fa_flash_backward_params &p, float (&dk)[C::D / 8][4],
                                    float (&dv)[C::D / 8][4], hopper_ring<C::STAGES> ring, int key_block,
                                    hopper_step at, int group, int thread) {
  typedef hopper_backward_barriers<C> bar;
  const hopper_keys t = hopper_load_keys<C>(p, key_block);
  const uint32_t base = shared_base(), q_tile = base + C::Q_AT + ring.stage() * C::Q_BYTES,
                 ds_tile = base + C::DS_AT + ring.stage() * C::DS_BYTES;
  const int lane = thread % 32, key = 64 * group + thread / 32 * 16 + lane / 4;
  uint32_t weights[C::BM / 16][4], ds[C::BM / 16][4];
  if constexpr (C::FLEX)
    HOPPER_STEP_FLEX(p, weights, ds, dv, ring, t, at, group, thread);
  else
    hopper_step_scores<C>(p, weights, ds, dv, ring, t, at, group, thread);
  hopper_store_ds<C>(ds_tile, ds, key, lane);
  fence_async();
  named_sync<256>(1); /* dS of both stands; the other buffer of dS is read by nobody any more */
  float dq[DQ_COLS / 8][4];
  wgmma_fence();
  hopper_backward_dq<C>(dq, ds_tile, base + C::K_AT, group);
  hopper_backward_add<C>(dk, ds, q_tile);
  wgmma_wait<2>(dv);
  hopper_release(bar::do_empty(ring.stage()), thread);
  wgmma_wait<1>(dq);
  hopper_backward_add_dq<C>(p, dq, t.batch, at.head, at.row0, group, thread);
  wgmma_wait<0>(dk);
  hopper_release(bar::q_empty(ring.stage()), thread);
}

} // namespace fa

#endif
