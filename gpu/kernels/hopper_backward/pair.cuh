/* The main backward kernel for sm_90a for head dims above 128, where dK or dV of 64 keys fills the registers
 * of a warpgroup. Like gpu/kernels/hopper_backward/main.cuh it is parallel over key blocks, but it divides
 * the work differently. A block owns 64 keys. Of its two consumer warpgroups one keeps dV, the other dK, each
 * with all columns, so that P^T and dS^T are register operands of GEMMs of 64 rows by all columns:
 *
 *   dV group:   S^T = K Q^T, P = exp2(S scale_log2 - LSE_log2)   -> P in f32 through shared memory
 *               dV += P^T dO
 *   dK group:   dP^T = V dO^T, dS = P (dP - delta)               -> dS in 16 bits through shared memory
 *               dK += dS^T Q
 *   both:       their columns of dQ = dS K, which go to memory with atomic additions.
 *
 * While one group waits, the other's GEMMs run: dP of a step while the dV group computes P, dV while dS is
 * computed, the next S while dK is accumulated. P of the next rows comes before dQ of these, and dQ is stored
 * while dV and dK are accumulated, so no group waits for the other block's dS while that is in flight.
 *
 * Two blocks with neighbouring keys form a cluster (a pair) and loop over the same rows. Each loads half of Q
 * and dO into both; they send each other dS, and each adds half of dQ's columns, summed over the keys of
 * both. That halves the loads, and the atomic additions, which would be the bottleneck: 64 KiB of them for
 * 10.5 MFLOP.
 *
 * In a deterministic call clusters take turns in adding: pair_turns.cuh. With dropout or lists of row tiles, a cluster has a
 * dQ accumulator of its own instead. Each of its four warpgroups owns some of the columns and is alone in adding to them, pair of
 * key blocks after pair.
 *
 * Lists of row tiles (flex) are of the keys of a cluster, so that both blocks walk the same one. A tile is of one kind if all its
 * pairs with those keys are.
 *
 * Shared memory, in panels of 64 columns (128 bytes, 128-byte swizzle): K, V; of the other block's K the two
 * panels with this block's columns of dQ; two stages of Q, one or two of dO; two stages each of dS (rows are
 * keys) and of the other block's dS; P in the order of the threads' registers; LSE and delta; in kernels with
 * dropout its bits; in flex kernels which row tiles the last steps have. dK and dV are stored through the space of K and V.
 *
 * Registers are the scarcest resource. In every step addresses, descriptors and the end of the loop are
 * recomputed from one opaque number each; otherwise the compiler would keep them in registers across the
 * step. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_PAIR_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_PAIR_CUH

#include "gpu/kernels/hopper_backward/main.cuh"
#include "gpu/kernels/hopper_backward/pair_load.cuh"
#include "gpu/kernels/hopper_backward/pair_scores.cuh"
#include "gpu/kernels/hopper_backward/pair_turns.cuh"

namespace fa {

/* Issues the group's columns of dQ = dS K over the keys of both blocks. */
template <class C, bool DV_GROUP, int TILES>
FA_DEVICE void hopper_pair_gemm_ds_k(float (&dq)[TILES][4], int stage, int rank) {
  const uint32_t base = shared_base();
  const int first = hopper_pair_columns<C, DV_GROUP>::first(rank), panel = first / 64;
  FA_UNROLL
  for (int other = 0; other < 2; ++other) {
    const uint32_t ds = base + (other ? C::OTHER_DS_AT : C::DS_AT) + stage * C::DS_BYTES,
                   k = base +
                       (other ? C::OTHER_K_AT + (panel - hopper_pair_panel<C>(rank)) * C::KV_PANEL
                              : C::K_AT + panel * C::KV_PANEL) +
                       first % 64 * 2;
    const uint64_t a = matrix_descriptor(ds, C::DS_PANEL, 1024, FA_SWIZZLE_128),
                   b = matrix_descriptor(k, C::KV_PANEL, 1024, FA_SWIZZLE_128);
    FA_UNROLL
    for (int i = 0; i < C::BN / 16; ++i)
      wgmma_ss<1, 1>(dq, descriptor_at(a, i * 16 * 128), descriptor_at(b, i * 16 * 128), other + i > 0,
                     typename C::T());
  }
  wgmma_commit();
}

/* Adds them to the accumulator, whose tiles have the order of the registers. Half of the last panel may not
 * exist. */
template <class C, bool DV_GROUP, int TILES>
FA_DEVICE void hopper_pair_atomic_add_dq(const fa_hopper_backward_params &p, const float (&dq)[TILES][4], int batch,
                                  int head, int row0, int rank, int thread) {
  constexpr bool HAS_LAST = DV_GROUP == (C::D == 256); /* of rank 1 */
  const int first = hopper_pair_columns<C, DV_GROUP>::first(rank) / 8;
  const bool whole = rank == 0 || p.row_dim >= C::D;
  const int own = C::SPLITS && p.b.deterministic ? static_cast<int>(blockIdx.x) / C::RANKS : 0;
  float *to = p.b.dq_accum + own * p.b.split_stride +
              workspace_row<C::D>(p.b, opaque(batch), head, row0 + thread / 32 * 16) * p.row_dim +
              first * 128 + thread % 32 * 4;
  FA_UNROLL
  for (int n = 0; n < TILES; ++n)
    if (!HAS_LAST || n < 4 || whole) atomic_add4(to + n * 128, dq[n]);
}

/* Issues the group's columns of dQ once dS of both blocks is in shared memory. */
template <class C, bool DV_GROUP, int TILES>
FA_DEVICE void hopper_pair_issue_dq(float (&dq)[TILES][4], pipeline_state<C::STAGES> pipe) {
  typedef hopper_pair_barriers<C> bar;
  mbarrier_wait(bar::ds_full(pipe.stage()), pipe.phase());
  mbarrier_wait(bar::other_full(pipe.stage()), pipe.phase());
  if (!DV_GROUP && threadIdx.x == C::THREADS - 1) /* for the next use, since this one's phase is complete */
    mbarrier_arrive_expect(bar::other_full(pipe.stage()), C::DS_BYTES);
  wgmma_fence();
  hopper_pair_gemm_ds_k<C, DV_GROUP>(dq, pipe.stage(), cluster_rank());
}

/* When it is complete: releases its stage of both dS, and adds dQ to memory when it is the block's turn. */
template <class C, bool DV_GROUP, int TILES>
FA_DEVICE void hopper_pair_finish_dq(const fa_hopper_backward_params &p, const float (&dq)[TILES][4],
                                     pipeline_state<C::STAGES> pipe, const hopper_pair_tile &at, int thread) {
  const int rank = cluster_rank();
  hopper_release_both(hopper_pair_barriers<C>::ds_empty(pipe.stage()), thread);
  hopper_dq_wait<C, hopper_pair_barriers<C>>(p.b, pipe);
  hopper_pair_atomic_add_dq<C, DV_GROUP>(p, dq, static_cast<int>(blockIdx.z), at.head, at.block * C::BM, rank, thread);
  hopper_dq_arrive<C, hopper_pair_barriers<C>>(p.b, thread);
}

/* Stores a warp's 16 keys of a gradient through shared memory. */
template <class C>
FA_DEVICE void hopper_pair_store(const fa_attention_params &f, const hopper_gradient &to,
                                 const float (&x)[C::D / 8][4], float factor, uint32_t tile,
                                 const hopper_key_tile &t, int thread) {
  if constexpr (C::VARLEN)
    hopper_store_ragged_gradient<C>(f, to, x, factor, tile, t, thread / 32 * 16, thread % 32);
  else
    hopper_store_gradient<C>(to.map, x, factor, tile, t, thread / 32 * 16, thread % 32);
}

/* Releases the space of K and V when the group's gradient has been stored from it. */
template <class C> FA_DEVICE void hopper_pair_release_keys(int thread) {
  if (thread % 32 == 0) {
    tma_store_commit();
    tma_store_wait_read<0>();
  }
  if constexpr (C::SPLITS) {
    sync_warp(); /* every lane is done with this pair of key blocks */
    hopper_release(hopper_pair_barriers<C>::keys_empty(), thread);
  }
}

/* Issues dV += P^T dO. */
template <class C>
FA_DEVICE void hopper_pair_issue_dv(float (&dv)[C::D / 8][4], const uint32_t (&p_frag)[C::BM / 16][4],
                                    uint32_t base, pipeline_state<C::DO_STAGES> pipe) {
  mbarrier_wait(hopper_pair_barriers<C>::do_full(pipe), pipe.phase());
  wgmma_fence();
  hopper_gemm_dkv<C>(dv, p_frag, base + C::DO_AT + pipe.stage() * C::Q_BYTES);
}

/* Issues dP^T = V dO^T. */
template <class C>
FA_DEVICE void hopper_pair_issue_dp(float (&dp)[C::BM / 8][4], uint32_t base,
                                    pipeline_state<C::DO_STAGES> pipe) {
  mbarrier_wait(hopper_pair_barriers<C>::do_full(pipe), pipe.phase());
  wgmma_fence();
  hopper_gemm_s_dp<C>(dp, base + C::V_AT, base + C::DO_AT + pipe.stage() * C::Q_BYTES);
}

/* The mainloop of the dV group for one key block. P has one buffer, which is free again when dS has been
 * computed. */
template <class C>
FA_DEVICE void hopper_pair_dv_mainloop(const fa_hopper_backward_params &p, pipeline_state<C::STAGES> &pipe,
                                  hopper_pair_key_tiles<C> keys) {
  typedef hopper_pair_barriers<C> bar;
  const uint32_t base = static_cast<uint32_t>(opaque(static_cast<int>(shared_base())));
  const hopper_key_tile t = hopper_pair_load_key_tile<C>(p.b, keys);
  float dv[C::D / 8][4] = {}, dq[hopper_pair_columns<C, true>::N / 8][4], s[C::BM / 8][4];
  uint32_t p_frag[C::BM / 16][4];
  hopper_pair_walk<C> at(p.b.forward, t);
  mbarrier_wait(bar::keys(), keys.n % 2);
  if (at.is_there(t)) {
    mbarrier_wait(bar::q_full(pipe.stage()), pipe.phase());
    wgmma_fence();
    hopper_gemm_s_dp<C>(s, base + C::K_AT, base + C::Q_AT + pipe.stage() * C::Q_BYTES);
    mbarrier_wait(bar::rows_full(pipe.stage()), pipe.phase());
    wgmma_wait<0>(s);
    hopper_release_both(bar::q_empty(pipe.stage()), hopper_pair_thread());
    hopper_pair_compute_p<C>(p.b, p_frag, s, pipe, keys, at.tile(pipe), hopper_pair_thread());
    hopper_pair_issue_dv<C>(dv, p_frag, base, hopper_pair_do_pipeline<C>(pipe));
    FA_NO_UNROLL
    while (at.has_next(p.b, keys)) {
      const int me = hopper_pair_thread();
      const uint32_t here = static_cast<uint32_t>(opaque(static_cast<int>(base)));
      const hopper_pair_walk<C> next = at.after(hopper_pair_load_key_tile<C>(p.b, keys));
      pipe.next();
      mbarrier_wait(bar::q_full(pipe.stage()), pipe.phase());
      wgmma_fence();
      hopper_gemm_s_dp<C>(s, here + C::K_AT, here + C::Q_AT + pipe.stage() * C::Q_BYTES);
      wgmma_wait<1>(dv);
      hopper_release_both(bar::do_empty(hopper_pair_do_pipeline<C>(pipe.before())), me);
      mbarrier_wait(bar::rows_full(pipe.stage()), pipe.phase());
      mbarrier_wait(bar::ds_full(pipe.before().stage()), pipe.before().phase()); /* P has been read */
      wgmma_wait<0>(s);
      hopper_release_both(bar::q_empty(pipe.stage()), me);
      hopper_pair_compute_p<C>(p.b, p_frag, s, pipe, keys, next.tile(pipe), me);
      hopper_pair_issue_dq<C, true>(dq, pipe.before());
      hopper_pair_issue_dv<C>(dv, p_frag, here, hopper_pair_do_pipeline<C>(pipe));
      wgmma_wait<1>(dq);
      hopper_pair_finish_dq<C, true>(p, dq, pipe.before(), at.tile(pipe.before()), me);
      at = at.after(hopper_pair_load_key_tile<C>(p.b, keys));
    }
    hopper_pair_issue_dq<C, true>(dq, pipe);
    wgmma_wait<1>(dv);
    if (C::SPLITS) hopper_release_both(bar::do_empty(hopper_pair_do_pipeline<C>(pipe)), hopper_pair_thread());
    wgmma_wait<0>(dq);
    hopper_pair_finish_dq<C, true>(p, dq, pipe, at.tile(pipe), hopper_pair_thread());
    pipe.next();
  }
  named_arrive<256>(HOPPER_PAIR_KEYS_READ); /* of V, into whose place dV goes, the last dS has said it */
  const hopper_gradient to = {&p.dv, p.b.dv, &p.b.dv_stride, p.b.forward.head_dim_v};
  hopper_pair_store<C>(p.b.forward, to, dv, C::DROPOUT ? p.b.forward.dropout_scale : 1.0f, base + C::V_AT,
                       hopper_pair_load_key_tile<C>(p.b, keys), hopper_pair_thread());
  hopper_pair_release_keys<C>(hopper_pair_thread());
}

/* dp -> dS, returned in ds and sent to both blocks. */
template <class C>
FA_DEVICE void hopper_pair_commit_ds(const fa_backward_params &p, uint32_t (&ds)[C::BM / 16][4],
                                   float (&dp)[C::BM / 8][4], pipeline_state<C::STAGES> pipe, int thread) {
  typedef hopper_pair_barriers<C> bar;
  const uint32_t base = static_cast<uint32_t>(opaque(static_cast<int>(shared_base())));
  const int stage = pipe.stage();
  mbarrier_wait(bar::rows_full(stage), pipe.phase());
  named_sync<64>(HOPPER_PAIR_P_FULL + thread / 32);
  hopper_pair_compute_ds<C>(
      dp, p.forward.dropout_scale,
      base + C::ROWS_AT + stage * (2 * C::ROW_BYTES) + C::ROW_BYTES + thread % 4 * 8, thread);
  sync_warp();
  hopper_release(bar::rows_empty(stage), thread);
  hopper_pack<C>(ds, dp);
  mbarrier_wait(bar::ds_empty(stage), pipe.phase() ^ 1);
  const int lane = thread % 32;
  hopper_store_ds<C>(base + C::DS_AT + stage * C::DS_BYTES, ds, thread / 32 * 16, lane);
  fence_async();
  sync_warp();
  if (lane == 0) {
    const uint32_t rows = stage * C::DS_BYTES + thread / 32 * 16 * 128; /* the warp's keys */
    const int other = cluster_rank() ^ 1;
    copy_shared_to_cluster(cluster_address(base + C::OTHER_DS_AT + rows, other), base + C::DS_AT + rows, 16 * 128,
                cluster_address(bar::other_full(stage), other));
    mbarrier_arrive(bar::ds_full(stage));
  }
}

/* The mainloop of the dK group for one key block. Where dO has one stage, the next dO is still in flight when
 * dK is accumulated, and Q is released first. */
template <class C>
FA_DEVICE void hopper_pair_dk_mainloop(const fa_hopper_backward_params &p, pipeline_state<C::STAGES> &pipe,
                                     hopper_pair_key_tiles<C> keys) {
  typedef hopper_pair_barriers<C> bar;
  const uint32_t base = static_cast<uint32_t>(opaque(static_cast<int>(shared_base())));
  const hopper_key_tile t = hopper_pair_load_key_tile<C>(p.b, keys);
  float dk[C::D / 8][4] = {}, dq[hopper_pair_columns<C, false>::N / 8][4], dp[C::BM / 8][4];
  uint32_t ds[C::BM / 16][4];
  hopper_pair_walk<C> at(p.b.forward, t);
  mbarrier_wait(bar::keys(), keys.n % 2);
  if (at.is_there(t)) {
    hopper_pair_issue_dp<C>(dp, base, hopper_pair_do_pipeline<C>(pipe));
    wgmma_wait<0>(dp);
    hopper_release_both(bar::do_empty(hopper_pair_do_pipeline<C>(pipe)), hopper_pair_thread());
    hopper_pair_commit_ds<C>(p.b, ds, dp, pipe, hopper_pair_thread());
    mbarrier_wait(bar::q_full(pipe.stage()), pipe.phase());
    wgmma_fence();
    hopper_gemm_dkv<C>(dk, ds, base + C::Q_AT + pipe.stage() * C::Q_BYTES);
    FA_NO_UNROLL
    while (at.has_next(p.b, keys)) {
      const int me = hopper_pair_thread();
      const uint32_t here = static_cast<uint32_t>(opaque(static_cast<int>(base)));
      pipe.next();
      if (C::DO_STAGES == 2) hopper_pair_issue_dp<C>(dp, here, hopper_pair_do_pipeline<C>(pipe));
      wgmma_wait<C::DO_STAGES - 1>(dk);
      hopper_release_both(bar::q_empty(pipe.before().stage()), me);
      if (C::DO_STAGES == 1) hopper_pair_issue_dp<C>(dp, here, hopper_pair_do_pipeline<C>(pipe));
      wgmma_wait<0>(dp);
      hopper_release_both(bar::do_empty(hopper_pair_do_pipeline<C>(pipe)), me);
      hopper_pair_commit_ds<C>(p.b, ds, dp, pipe, hopper_pair_thread());
      hopper_pair_issue_dq<C, false>(dq, pipe.before());
      mbarrier_wait(bar::q_full(pipe.stage()), pipe.phase());
      wgmma_fence();
      hopper_gemm_dkv<C>(dk, ds, here + C::Q_AT + pipe.stage() * C::Q_BYTES);
      wgmma_wait<1>(dq);
      hopper_pair_finish_dq<C, false>(p, dq, pipe.before(), at.tile(pipe.before()), opaque(me));
      at = at.after(hopper_pair_load_key_tile<C>(p.b, keys));
    }
    hopper_pair_issue_dq<C, false>(dq, pipe);
    wgmma_wait<1>(dk);
    if (C::SPLITS) hopper_release_both(bar::q_empty(pipe.stage()), hopper_pair_thread());
    wgmma_wait<0>(dq);
    hopper_pair_finish_dq<C, false>(p, dq, pipe, at.tile(pipe), hopper_pair_thread());
    pipe.next();
  }
  named_sync<256>(HOPPER_PAIR_KEYS_READ);
  const hopper_gradient to = {&p.dk, p.b.dk, &p.b.dk_stride, p.b.forward.head_dim};
  hopper_pair_store<C>(p.b.forward, to, dk, p.b.scale, base + C::K_AT, hopper_pair_load_key_tile<C>(p.b, keys),
                       hopper_pair_thread());
  hopper_pair_release_keys<C>(hopper_pair_thread());
}

/* Grid: x over key blocks of the longest sequence in clusters of two or, in deterministic calls with SPLITS, in clusters over dQ
 * accumulators; y over KV heads, z over the batch. */
template <class C> FA_DEVICE void hopper_backward_pair(const fa_hopper_backward_params &p) {
  const int thread = static_cast<int>(threadIdx.x), group = thread / 128;
  if (thread == 0) hopper_pair_barriers<C>::init();
  if constexpr (C::VARLEN) {
    if (thread == 0) hopper_store_sequence<C>(p.b.forward);
    if (p.b.forward.seqused_k || p.b.forward.leftpad_k) hopper_clear_masked<C>(p.b, thread);
  }
  cluster_sync();
  if (group == 0) {
    registers_down<C::PRODUCER_REGISTERS>();
    if (thread < 32) hopper_pair_produce<C, true, !C::APART>(p, thread);
    if constexpr (C::APART) {
      if (thread / 32 == 1) hopper_pair_produce<C, false, true>(p, thread % 32);
    }
    if constexpr (C::DQ_SEMAPHORE) {
      if (thread / 32 == 2 && p.b.dq_semaphore) hopper_pair_take_turns<C>(p.b, thread % 32);
      if (thread / 32 == 3 && p.b.dq_semaphore) hopper_pair_pass_turns<C>(p.b, thread % 32);
    }
    if constexpr (C::DROPOUT) {
      if (thread >= 128 - 32 * HOPPER_DROP_WARPS) hopper_pair_drop<C>(p.b, thread);
    }
  } else {
    registers_up<C::CONSUMER_REGISTERS>();
    pipeline_state<C::STAGES> pipe;
    FA_NO_UNROLL
    for (hopper_pair_key_tiles<C> keys; keys.is_there(p.b); ++keys.n) {
      if (group == 1)
        hopper_pair_dv_mainloop<C>(p, pipe, keys);
      else
        hopper_pair_dk_mainloop<C>(p, pipe, keys);
      if (!C::SPLITS) break;
    }
  }
  cluster_sync(); /* the other block may still copy to this one, or arrive on its barriers */
}

} // namespace fa

#endif
