/* A consumer's work on one row tile: S, dP, P, dS, and the GEMMs of dV, dK and dQ. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_STEP_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_STEP_CUH

#include "gpu/kernels/hopper_backward/dq.cuh"
#include "gpu/kernels/hopper_backward/dropout.cuh"
#include "gpu/kernels/hopper_backward/flex_step.cuh"
#include "gpu/kernels/hopper_backward/gemm.cuh"
#include "gpu/kernels/hopper_backward/scores.cuh"

namespace fa {

/* Issues S^T or dP^T: the group's keys against the rows of a tile. */
template <class C>
FA_DEVICE void hopper_issue_s_dp(float (&x)[C::BM / 8][4], const typename hopper_kv_fragments<C>::tile &kv_frag,
                                   int keys_at, uint32_t rows_tile, int group) {
  wgmma_fence();
  if constexpr (C::KV_IN_REGISTERS)
    hopper_gemm_s_dp_rs<C>(x, kv_frag, rows_tile);
  else
    hopper_gemm_s_dp<C>(x, shared_base() + keys_at + group * 64 * 128, rows_tile);
}

/* Issues dV += P^T dO. */
template <class C>
FA_DEVICE void hopper_issue_dv(float (&dv)[C::D / 8][4], const uint32_t (&p_frag)[C::BM / 16][4],
                               pipeline_state<C::STAGES> pipe) {
  wgmma_fence();
  hopper_gemm_dkv<C>(dv, p_frag, shared_base() + C::DO_AT + pipe.stage() * C::Q_BYTES);
}

/* P^T and dS^T in 16 bits, for the plain kernel and the kinds with features that cost time on every pair. Issues the GEMM of
 * dV, which overlaps the computation of dS, or with LATE_DV leaves that to the caller. meanwhile: called while the scores
 * are computed. */
template <class C, class F>
FA_DEVICE void hopper_compute_p_ds(const fa_backward_params &p, uint32_t (&p_frag)[C::BM / 16][4],
                                   uint32_t (&ds)[C::BM / 16][4], float (&dv)[C::D / 8][4],
                                   pipeline_state<C::STAGES> pipe, const hopper_key_tile &t,
                                   const hopper_row_tile &at, const hopper_kv_fragments<C> &kv_frag,
                                   int group, int thread, const F &meanwhile) {
  typedef hopper_backward_barriers<C> bar;
  const uint32_t base = shared_base(), q_tile = base + C::Q_AT + pipe.stage() * C::Q_BYTES,
                 do_tile = base + C::DO_AT + pipe.stage() * C::Q_BYTES;
  const int lane = thread % 32, key = 64 * group + thread / 32 * 16 + lane / 4;
  float s[C::BM / 8][4], dp[C::BM / 8][4];
  hopper_row_values<C> row_values;
  uint32_t kept = 0;
  const hopper_alibi alibi =
      hopper_load_alibi<C>(p.forward, t.seq, t.batch, at.head, t.key0 + key, at.row0 + lane % 4 * 2);
  mbarrier_wait(bar::q_full(pipe.stage()), pipe.phase());
  if constexpr (C::VARLEN) {
    if (t.seq.len_q - at.row0 < C::BM) {
      mbarrier_wait(bar::do_full(pipe.stage()), pipe.phase());
      hopper_clear_ragged_rows<C, C::Q_PANEL>(q_tile, do_tile, t.seq.len_q - at.row0, 128 * group + thread);
    }
  }
  hopper_issue_s_dp<C>(s, kv_frag.k, C::K_AT, q_tile, group);
  mbarrier_wait(bar::do_full(pipe.stage()), pipe.phase());
  hopper_issue_s_dp<C>(dp, kv_frag.v, C::V_AT, do_tile, group);
  meanwhile();
  mbarrier_wait(bar::rows_full(pipe.stage()), pipe.phase());
  if constexpr (C::DROPOUT) kept = hopper_load_drop_bits<C>(pipe, 128 * group + thread);
  const uint32_t rows = base + C::ROWS_AT + pipe.stage() * (2 * C::ROW_BYTES) + lane % 4 * 8;
  const int first = t.key0 + 64 * group;
  if constexpr (C::EARLY_ROWS) hopper_load_rows<0, C::BM / 8>(row_values, rows);
  wgmma_wait<1>(s);
  if constexpr (C::SEVERAL) hopper_compute_several_p<C>(p_frag, s, p, alibi, rows);
  if constexpr (C::BIAS) hopper_add_bias_to<C>(s, p.scale, pipe, !p.dbias, group, opaque(thread));
  if (keys_need_mask(p.forward, t.seq, at.row0, min_int(at.row0 + C::BM, t.seq.len_q), first, first + 64)) {
    const auto seen = rows_of_keys<C>(p.forward, t.seq, t.key0 + key, at.row0 + lane % 4 * 2);
    if constexpr (C::SEVERAL)
      hopper_hide_p<C>(p_frag, s, seen);
    else if constexpr (C::EARLY_ROWS)
      hopper_exponentiate_with<C, true>(s, p.scale_log2, row_values, seen);
    else
      hopper_compute_p<C, true>(p_frag, s, p, alibi, rows, seen);
  } else if constexpr (C::EARLY_ROWS) {
    hopper_exponentiate_with<C, false>(s, p.scale_log2, row_values, hopper_row_limits());
  } else if constexpr (!C::SEVERAL) {
    hopper_compute_p<C, false>(p_frag, s, p, alibi, rows, hopper_row_limits());
  }
  if constexpr (C::EARLY_ROWS) hopper_pack<C>(p_frag, s);
  if constexpr (C::DROPOUT) hopper_drop_p<C>(p_frag, kept);
  if constexpr (!C::LATE_DV) hopper_issue_dv<C>(dv, p_frag, pipe);
  if constexpr (C::EARLY_ROWS)
    hopper_load_rows<0, C::BM / 16>(row_values, rows + C::ROW_BYTES); /* half: there are no more registers */
  wgmma_wait<C::LATE_DV ? 0 : 1>(dp);
  if constexpr (C::DROPOUT) hopper_release(hopper_backward_all_barriers<C>::drop_empty(hopper_drop_place<C>(pipe).stage()), thread);
  if constexpr (C::EARLY_ROWS) {
    hopper_load_rows<C::BM / 16, C::BM / 8>(row_values, rows + C::ROW_BYTES);
    hopper_compute_ds_with<C>(dp, s, row_values);
  } else if constexpr (C::DROPOUT) {
    hopper_drop_ds<C>(dp, s, rows + C::ROW_BYTES, p.forward.dropout_scale, kept);
  } else {
    hopper_compute_ds<C>(dp, s, rows + C::ROW_BYTES);
  }
  if constexpr (C::BIAS) {
    if (p.dbias_accum) hopper_add_dbias<C>(p, dp, t, at, group, opaque(thread));
  }
  hopper_pack<C>(ds, dp);
}

/* Stores dS of the group where dQ of both groups reads it. */
template <class C>
FA_DEVICE void hopper_store_group_ds(const uint32_t (&ds)[C::BM / 16][4], pipeline_state<C::STAGES> pipe,
                                     int group, int thread) {
  if constexpr (C::LAG)
    mbarrier_wait(hopper_backward_all_barriers<C>::ds_empty(pipe.stage()), pipe.phase() ^ 1);
  /* & 31: the compiler knows the sign, and needs a register less, of which some kernels have none left; others are slower, or
   * need one more */
  const int lane = C::LOADER_DROPS && !C::LINEAR ? thread & 31 : thread % 32;
  hopper_store_ds<C>(shared_base() + C::DS_AT + pipe.stage() * C::DS_BYTES, ds, 64 * group + thread / 32 * 16, lane);
}

/* Tells both groups that it is there. */
template <class C> FA_DEVICE void hopper_commit_ds(pipeline_state<C::STAGES> pipe, int thread) {
  fence_async();
  if constexpr (C::LAG) {
    sync_warp();
    hopper_release(hopper_backward_all_barriers<C>::ds_full(pipe.stage()), thread);
  } else {
    hopper_sync_groups<C>(1); /* dS of both is in shared memory; all are done with the other buffer of dS */
  }
}

/* Issues a step's dQ: TILES columns, from the group's column `first` on. LAG: with !is_there there was no
 * such step. A GEMM is issued all the same, on other data, and its result is not used, because wgmma must not
 * be issued in a branch. */
template <class C, int TILES>
FA_DEVICE void hopper_issue_dq(float (&dq)[TILES][4], pipeline_state<C::STAGES> pipe, bool is_there, int group,
                               int first) {
  const uint32_t base = shared_base(), ds_tile = base + C::DS_AT + pipe.stage() * C::DS_BYTES;
  if (C::LAG && is_there) mbarrier_wait(hopper_backward_all_barriers<C>::ds_full(pipe.stage()), pipe.phase());
  wgmma_fence();
  hopper_gemm_ds_k<C>(dq, is_there ? ds_tile : base + C::V_AT, base + C::K_AT + 2 * first, group);
}

/* One row tile. The key block is recomputed, which is cheaper than keeping it. DQ_COLS: the group's columns
 * of dQ. With LAG it is dQ of the tile before, if the head has one. */
template <class C, int DQ_COLS>
FA_DEVICE void hopper_backward_step(const fa_backward_params &p, float (&dk)[C::D / 8][4],
                                    float (&dv)[C::D / 8][4], pipeline_state<C::STAGES> pipe, int key_block,
                                    hopper_row_tile at, const hopper_kv_fragments<C> &kv_frag, int group, int thread) {
  typedef hopper_backward_barriers<C> bar;
  const hopper_key_tile t = hopper_load_key_tile<C>(p, key_block);
  const uint32_t q_tile = shared_base() + C::Q_AT + pipe.stage() * C::Q_BYTES;
  /* Whether the head had more than n tiles before; worked out where it is asked, which costs no register. */
  const auto is_past = [&](int n) {
    return at.row0 / C::BM > hopper_load_key_tile<C>(p, opaque(key_block)).blocks.begin + n;
  };
  const auto made = C::LAG ? pipe.before() : pipe;
  uint32_t p_frag[C::BM / 16][4], ds[C::BM / 16][4];
  float dq[DQ_COLS / 8][4];
  if constexpr (C::FLEX)
    HOPPER_FLEX_P_DS(p, p_frag, ds, dv, pipe, t, at, group, thread);
  else
    hopper_compute_p_ds<C>(p, p_frag, ds, dv, pipe, t, at, kv_frag, group, thread, [&] {
      if constexpr (C::DQ_COPIES && !C::DQ_AT_ONCE) {
        if (is_past(1)) hopper_release_dq<C>(pipe.n - 2, group, thread);
      }
    });
  const auto is_there = [&] { return !C::LAG || is_past(0); };
  const auto issue_dq_dk = [&] {
    hopper_issue_dq<C>(dq, made, is_there(), group, 0);
    hopper_gemm_dkv<C>(dk, ds, q_tile);
  };
  hopper_store_group_ds<C>(ds, pipe, group, thread);
  if constexpr (C::BIAS) {
    if (p.dbias) hopper_leave_dbias<C>(ds, pipe, group, opaque(thread));
  }
  if constexpr (C::LATE_DV) hopper_issue_dv<C>(dv, p_frag, pipe);
  if constexpr (C::PRODUCTS_FIRST) issue_dq_dk();
  hopper_commit_ds<C>(pipe, thread);
  if constexpr (!C::PRODUCTS_FIRST) issue_dq_dk();
  wgmma_wait<2>(dv);
  hopper_release(bar::do_empty(pipe.stage()), thread);
  wgmma_wait<1>(dq);
  hopper_release(bar::rows_empty(pipe.stage()), thread); /* behind a product: what racecheck follows, unlike sync_warp */
  if (is_there()) {
    if constexpr (C::LAG) hopper_release(hopper_backward_all_barriers<C>::ds_empty(made.stage()), thread);
    if constexpr (C::DQ_COPIES) {
      hopper_stage_dq<C>(dq, made.n, group, opaque(thread), 0);
      if constexpr (C::DQ_AT_ONCE) hopper_release_dq<C>(made.n, group, thread);
    } else {
      hopper_dq_wait<C, hopper_backward_all_barriers<C>>(p, made);
      hopper_atomic_add_dq<C>(p, dq, at.head, at.row0 - (C::LAG ? C::BM : 0), group, opaque(thread), 0);
      hopper_dq_arrive<C, hopper_backward_all_barriers<C>>(p, thread);
    }
  }
  wgmma_wait<0>(dk);
  hopper_release(bar::q_empty(pipe.stage()), thread);
}

/* LAG: dQ of a head's last tile, at most 32 columns at a time: with 64, ptxas would move the accumulators of the
 * steps between registers. */
template <class C, int DQ_COLS>
FA_DEVICE void hopper_last_dq(const fa_backward_params &p, pipeline_state<C::STAGES> pipe, int key_block,
                              int head, int group, int thread) {
  const auto made = pipe.before();
  const block_range tiles = hopper_load_key_tile<C>(p, key_block).blocks;
  if (tiles.begin >= tiles.end) return;
  if (C::DQ_COPIES && !C::DQ_AT_ONCE && tiles.end - tiles.begin > 1) hopper_release_dq<C>(pipe.n - 2, group, thread);
  if constexpr (!C::DQ_COPIES) hopper_dq_wait<C, hopper_backward_all_barriers<C>>(p, made);
  constexpr int AT_ONCE = DQ_COLS < 32 ? DQ_COLS : 32;
  FA_NO_UNROLL
  for (int first = 0; first < DQ_COLS; first += AT_ONCE) {
    float dq[AT_ONCE / 8][4];
    hopper_issue_dq<C>(dq, made, true, group, first);
    wgmma_wait<0>(dq);
    if constexpr (C::DQ_COPIES)
      hopper_stage_dq<C>(dq, made.n, group, thread, first);
    else
      hopper_atomic_add_dq<C>(p, dq, head, (tiles.end - 1) * C::BM, group, thread, first);
  }
  hopper_release(hopper_backward_all_barriers<C>::ds_empty(made.stage()), thread);
  if constexpr (C::DQ_COPIES)
    hopper_release_dq<C>(made.n, group, thread);
  else
    hopper_dq_arrive<C, hopper_backward_all_barriers<C>>(p, thread);
}

} // namespace fa

#endif
