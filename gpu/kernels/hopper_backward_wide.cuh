/* The main backward kernel for sm_90a of head dims whose gradients of 64 keys fill the registers, parallel
 * over key blocks as hopper_backward.cuh's, from which it differs in who does what. A block owns 64 keys. Of
 * two consumer warpgroups one keeps dV, the other dK, each of all the columns, so that P^T and dS^T are
 * operands of them from registers, 64 rows by all the columns at once:
 *
 *   values:     S^T = K Q^T, P = exp2(S scale_log2 - LSE_log2)   -> P in f32 by shared memory
 *               dV += P^T dO
 *   gradients:  dP^T = V dO^T, dS = P (dP - delta)               -> dS in 16 bits by shared memory
 *               dK += dS^T Q
 *   both:       their columns of dQ = dS K; its sums leave by atomic additions.
 *
 * What one waits for, the products of the other fill: dP of a block while values makes P of it, dV while dS
 * is made, the next S while dK is added.
 *
 * Two blocks, of neighbouring keys, are a cluster and walk the same rows: they send each other dS, and each
 * adds half of dQ's columns over the keys of both. That halves the additions in memory, which else would be
 * the limit: 64 KiB of them for 10.5 MFLOP.
 *
 * Shared memory, in panels of 64 columns (128 bytes, 128-byte swizzle): K, V, of the other block's K the two
 * panels with this one's columns of dQ, two of Q, one of dO, two each of dS (rows are keys) and of the other
 * block's, P as the threads hold it, LSE and delta. dK and dV leave by K's and V's places. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_WIDE_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_WIDE_CUH

#include "gpu/kernels/hopper_backward.cuh"

namespace fa {

/* ROW_D: of the workspace, head_dim up to a multiple of 32. The tiles have whole panels. */
template <class T_, int ROW_D_> struct hopper_backward_wide_config : flash_kind_traits<plain> {
  typedef T_ T;
  static constexpr flash_kind KIND = plain;
  static constexpr bool VARLEN = false, ORDERED = false;
  static constexpr int ROW_D = ROW_D_, D = (ROW_D + 63) / 64 * 64, BM = 64, BN = 64, RANKS = 2, THREADS = 384;
  static constexpr int PANELS = D / 64, OTHER_PANELS = 2, STAGES = 2;
  static constexpr int KV_PANEL = BN * 128, Q_PANEL = BM * 128, DS_PANEL = BN * 128; /* bytes */
  static constexpr int KV_BYTES = PANELS * KV_PANEL, Q_BYTES = PANELS * Q_PANEL, DS_BYTES = DS_PANEL;
  static constexpr int K_AT = 0, V_AT = KV_BYTES, OTHER_K_AT = 2 * KV_BYTES,
                       Q_AT = OTHER_K_AT + OTHER_PANELS * KV_PANEL, DO_AT = Q_AT + STAGES * Q_BYTES,
                       DS_AT = DO_AT + Q_BYTES, OTHER_DS_AT = DS_AT + STAGES * DS_BYTES,
                       P_AT = OTHER_DS_AT + STAGES * DS_BYTES, ROWS_AT = P_AT + BM * BN * 4;
  static constexpr int ROW_BYTES = BM * 4; /* of LSE, and of delta */
  static constexpr int BARRIERS_AT = ROWS_AT + STAGES * 2 * ROW_BYTES, N_BARRIERS = 7 * STAGES + 3;
  static constexpr int SHARED_BYTES = BARRIERS_AT + 8 * N_BARRIERS;
  static constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 240;
  static_assert((D == 192 || D == 256) && (ROW_D == D || ROW_D == D - 32), "how dQ is shared out");
  static_assert(SHARED_BYTES <= 232448, "what a block may have");
};

/* Columns of dQ of a warpgroup: first of 256 in pieces of 64, of 192 in 64, 64 and 64 for the two blocks'
 * gradients and halves of the panel between for their values. */
template <class C, bool VALUES> struct hopper_wide_columns {
  static constexpr int N = VALUES && C::D == 192 ? 32 : 64;
  FA_DEVICE static int first(int rank) {
    return 128 * rank + (VALUES ? C::D == 192 ? 64 - 96 * rank : 64 : 0);
  }
};

/* The first panel of the other block's K that is wanted. */
template <class C> FA_DEVICE int hopper_wide_panel(int rank) {
  return rank * (C::PANELS - C::OTHER_PANELS);
}

/* full: the data are there; empty: nobody needs the old ones any more. */
template <class C> struct hopper_wide_barriers {
  FA_DEVICE static uint32_t at(int of, int s) {
    return shared_base() + C::BARRIERS_AT + 8 * (C::STAGES * of + s);
  }
  FA_DEVICE static uint32_t q_full(int s) { return at(0, s); }
  FA_DEVICE static uint32_t q_empty(int s) { return at(1, s); }
  FA_DEVICE static uint32_t rows_full(int s) { return at(2, s); }
  FA_DEVICE static uint32_t rows_empty(int s) { return at(3, s); }
  FA_DEVICE static uint32_t ds_full(int s) { return at(4, s); }
  FA_DEVICE static uint32_t ds_empty(int s) { return at(5, s); } /* and the other block's copy of it */
  FA_DEVICE static uint32_t other_full(int s) { return at(6, s); }
  FA_DEVICE static uint32_t do_full() { return at(7, 0); }
  FA_DEVICE static uint32_t do_empty() { return at(7, 1); }
  FA_DEVICE static uint32_t keys() { return at(7, 2); }
  FA_DEVICE static void init() {
    FA_NO_UNROLL
    for (int s = 0; s < C::STAGES; ++s) {
      mbarrier_init(q_full(s), 1);
      mbarrier_init(q_empty(s), 8); /* a lane of each warp */
      mbarrier_init(rows_full(s), 1);
      mbarrier_init(rows_empty(s), 8);
      mbarrier_init(ds_full(s), 4);
      mbarrier_init(ds_empty(s), 8 * C::RANKS);
      mbarrier_init(other_full(s), 1);
    }
    mbarrier_init(do_full(), 1);
    mbarrier_init(do_empty(), 8);
    mbarrier_init(keys(), 1);
    mbarrier_init_fence();
  }
};

/* A warp's release of dS to both blocks. */
FA_DEVICE void hopper_wide_release(uint32_t bar, int rank, int thread) {
  if (thread % 32 != 0) return;
  mbarrier_arrive(bar);
  mbarrier_arrive_at(cluster_address(bar, rank ^ 1));
}

/* What a block works on: the rows are those that see keys of the cluster. */
template <class C> FA_DEVICE hopper_keys hopper_wide_load_keys(const fa_flash_backward_params &p) {
  const fa_flash_params &f = p.forward;
  const int block = opaque(static_cast<int>(blockIdx.x)), first = block / C::RANKS * (C::RANKS * C::BN);
  hopper_keys t;
  t.batch = opaque(static_cast<int>(blockIdx.z));
  t.kv_head = opaque(static_cast<int>(blockIdx.y));
  t.key0 = block * C::BN;
  t.seq = {0, 0, f.seqlen_q, f.seqlen_k, f.top_left ? 0 : f.seqlen_k - f.seqlen_q};
  t.blocks = query_blocks<C>(f, t.seq, first, min_int(first + C::RANKS * C::BN, f.seqlen_k));
  t.end = (t.kv_head + 1) * f.heads_per_kv;
  return t;
}

/* Named barriers of a warp of each group, to hand over P, and of both groups. That a P was read is known from
 * its dS. */
enum { HOPPER_WIDE_P_FULL = 1, HOPPER_WIDE_ALL = 5 };

/* The blocks of rows that a block walks, of all heads of the group. */
struct hopper_wide_walk {
  int head, block, left;
  FA_DEVICE void next(block_range blocks) {
    --left;
    if (++block < blocks.end) return;
    block = blocks.begin;
    ++head;
  }
};
FA_DEVICE hopper_wide_walk hopper_wide_begin(const fa_flash_params &f, const hopper_keys &t) {
  return {t.kv_head * f.heads_per_kv, t.blocks.begin,
          max_int(t.blocks.end - t.blocks.begin, 0) * f.heads_per_kv};
}

/* One warp, which has few registers: its first lane starts the bulk copies, all bring LSE and delta. */
template <class C> FA_DEVICE void hopper_wide_load(const fa_hopper_backward_params &p, int lane) {
  typedef hopper_wide_barriers<C> bar;
  const hopper_keys t = hopper_wide_load_keys<C>(p.b);
  const uint32_t base = shared_base();
  const int rank = cluster_rank();
  if (lane == 0) {
    for (int i = 0; i < C::STAGES; ++i) mbarrier_arrive_expect(bar::other_full(i), C::DS_BYTES);
    mbarrier_arrive_expect(bar::keys(), 2 * C::KV_BYTES + C::OTHER_PANELS * C::KV_PANEL);
    FA_UNROLL
    for (int i = 0; i < C::OTHER_PANELS; ++i)
      tma_load(base + C::OTHER_K_AT + i * C::KV_PANEL, &p.k, bar::keys(),
               64 * (hopper_wide_panel<C>(rank) + i), t.key0 + (rank ? -C::BN : C::BN), t.kv_head, t.batch);
    FA_UNROLL
    for (int i = 0; i < C::PANELS; ++i) {
      tma_load(base + C::K_AT + i * C::KV_PANEL, &p.k, bar::keys(), 64 * i, t.key0, t.kv_head, t.batch);
      tma_load(base + C::V_AT + i * C::KV_PANEL, &p.v, bar::keys(), 64 * i, t.key0, t.kv_head, t.batch);
    }
  }
  hopper_ring<C::STAGES> ring;
  hopper_wide_walk at = hopper_wide_begin(p.b.forward, t);
  FA_NO_UNROLL
  while (at.left > 0) {
    const int stage = ring.stage(), empty = ring.parity() ^ 1, batch = static_cast<int>(blockIdx.z);
    if (lane == 0) {
      mbarrier_wait(bar::q_empty(stage), empty);
      hopper_load<C::PANELS, C::Q_PANEL>(base + C::Q_AT + stage * C::Q_BYTES, &p.q, bar::q_full(stage),
                                         at.block * C::BM, at.head, batch);
    }
    mbarrier_wait(bar::rows_empty(stage), empty);
    const float *from = (lane < 16 ? p.b.lse_log2 : p.b.delta) +
                        workspace_row<C::ROW_D>(p.b, batch, at.head, at.block * C::BM) + lane % 16 * 4;
    store_shared16(base + C::ROWS_AT + stage * (2 * C::ROW_BYTES) + 16 * lane,
                   load_global(reinterpret_cast<const vec4 *>(from)));
    sync_warp();
    if (lane == 0) {
      mbarrier_arrive(bar::rows_full(stage));
      mbarrier_wait(bar::do_empty(), static_cast<int>(ring.n % 2) ^ 1);
      hopper_load<C::PANELS, C::Q_PANEL>(base + C::DO_AT, &p.d_o, bar::do_full(), at.block * C::BM, at.head,
                                         batch);
    }
    ring.next();
    at.next(t.blocks);
  }
}

/* Where a thread leaves P of its tile n, 16 bytes, for the same thread of the other group. */
template <class C> FA_DEVICE uint32_t hopper_wide_p(int n, int thread) {
  return shared_base() + C::P_AT + (128 * n + thread) * 16;
}

template <class C> FA_DEVICE void hopper_wide_store_p(const float (&p)[C::BM / 8][4], int thread) {
  FA_UNROLL
  for (int n = 0; n < C::BM / 8; ++n)
    store_shared16(hopper_wide_p<C>(n, thread),
                   vec4{float_bits(p[n][0]), float_bits(p[n][1]), float_bits(p[n][2]), float_bits(p[n][3])});
}

/* dp -> dS. rows: shared address of the block's delta. */
template <class C>
FA_DEVICE void hopper_wide_score_gradients(float (&dp)[C::BM / 8][4], uint32_t rows, int thread) {
  FA_UNROLL
  for (int n = 0; n < C::BM / 8; ++n) {
    const vec4 p = load_shared16(hopper_wide_p<C>(n, thread));
    const uint32_t words[4] = {p.x, p.y, p.z, p.w};
    FA_UNROLL
    for (int e = 0; e < 2; ++e) {
      const float delta = as_float(load_shared4(rows + 32 * n + 4 * e));
      FA_UNROLL
      for (int r = 0; r < 2; ++r) dp[n][2 * r + e] = as_float(words[2 * r + e]) * (dp[n][2 * r + e] - delta);
    }
  }
}

/* The group's columns of dQ = dS K over the keys of both blocks, issued. */
template <class C, bool VALUES, int TILES>
FA_DEVICE void hopper_wide_dq(float (&dq)[TILES][4], int stage, int rank) {
  const uint32_t base = shared_base();
  const int first = hopper_wide_columns<C, VALUES>::first(rank), panel = first / 64;
  FA_UNROLL
  for (int other = 0; other < 2; ++other) {
    const uint32_t ds = base + (other ? C::OTHER_DS_AT : C::DS_AT) + stage * C::DS_BYTES,
                   k = base +
                       (other ? C::OTHER_K_AT + (panel - hopper_wide_panel<C>(rank)) * C::KV_PANEL
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

/* Adds them to the accumulator, whose tiles lie as registers do. Half of the last panel may not be there. */
template <class C, bool VALUES, int TILES>
FA_DEVICE void hopper_wide_add_dq(const fa_flash_backward_params &p, const float (&dq)[TILES][4], int batch,
                                  int head, int row0, int rank, int thread) {
  constexpr bool HAS_LAST = VALUES == (C::D == 256); /* in rank 1 */
  const int first = hopper_wide_columns<C, VALUES>::first(rank) / 8;
  float *to = p.dq_accum +
              workspace_row<C::ROW_D>(p, opaque(batch), head, row0 + thread / 32 * 16) * C::ROW_D +
              first * 128 + thread % 32 * 4;
  FA_UNROLL
  for (int n = 0; n < TILES; ++n)
    if (C::ROW_D == C::D || !HAS_LAST || n < 4 || rank == 0) atomic_add4(to + n * 128, dq[n]);
}

/* s -> P, handed over, and in 16 bits. */
template <class C>
FA_DEVICE void hopper_wide_weigh(const fa_flash_backward_params &p, uint32_t (&weights)[C::BM / 16][4],
                                 float (&s)[C::BM / 8][4], int stage, int row0, int thread) {
  typedef hopper_wide_barriers<C> bar;
  const hopper_keys t = hopper_wide_load_keys<C>(p); /* cheaper than kept */
  const int lane = thread % 32, key = t.key0 + thread / 32 * 16 + lane / 4;
  const uint32_t rows = shared_base() + C::ROWS_AT + stage * (2 * C::ROW_BYTES) + lane % 4 * 8;
  if (keys_need_mask(p.forward, t.seq, row0, min_int(row0 + C::BM, t.seq.len_q), t.key0, t.key0 + C::BN))
    hopper_probabilities<C, true>(s, p.scale_log2, rows,
                                  rows_of_keys<C>(p.forward, t.seq, key, row0 + lane % 4 * 2));
  else
    hopper_probabilities<C, false>(s, p.scale_log2, rows, hopper_rows());
  hopper_wide_store_p<C>(s, thread);
  named_arrive<64>(HOPPER_WIDE_P_FULL + thread / 32);
  sync_warp();
  hopper_release(bar::rows_empty(stage), thread);
  hopper_pack<C>(weights, s);
}

/* The group's columns of dQ, when dS of both blocks stands, issued. */
template <class C, bool VALUES, int TILES>
FA_DEVICE void hopper_wide_issue_dq(float (&dq)[TILES][4], hopper_ring<C::STAGES> ring) {
  typedef hopper_wide_barriers<C> bar;
  mbarrier_wait(bar::ds_full(ring.stage()), ring.parity());
  mbarrier_wait(bar::other_full(ring.stage()), ring.parity());
  if (!VALUES && threadIdx.x == C::THREADS - 1) /* for the next use, as this one's phase is over */
    mbarrier_arrive_expect(bar::other_full(ring.stage()), C::DS_BYTES);
  wgmma_fence();
  hopper_wide_dq<C, VALUES>(dq, ring.stage(), cluster_rank());
}

/* Once it is there: both dS of its stage are released, and it leaves. */
template <class C, bool VALUES, int TILES>
FA_DEVICE void hopper_wide_finish_dq(const fa_flash_backward_params &p, const float (&dq)[TILES][4],
                                     hopper_ring<C::STAGES> ring, int head, int block, int thread) {
  const int rank = cluster_rank();
  hopper_wide_release(hopper_wide_barriers<C>::ds_empty(ring.stage()), rank, thread);
  hopper_wide_add_dq<C, VALUES>(p, dq, static_cast<int>(blockIdx.z), head, block * C::BM, rank, thread);
}

/* The warpgroup of dV. The next S is on its way before dQ is, and its P handed over before dQ leaves. */
template <class C> FA_DEVICE void hopper_wide_values(const fa_hopper_backward_params &p, int thread) {
  typedef hopper_wide_barriers<C> bar;
  const uint32_t base = shared_base();
  const hopper_keys t = hopper_wide_load_keys<C>(p.b);
  float dv[C::D / 8][4] = {}, dq[hopper_wide_columns<C, true>::N / 8][4], s[C::BM / 8][4];
  uint32_t weights[C::BM / 16][4];
  hopper_ring<C::STAGES> ring;
  hopper_wide_walk at = hopper_wide_begin(p.b.forward, t);
  mbarrier_wait(bar::keys(), 0);
  if (at.left > 0) {
    mbarrier_wait(bar::q_full(0), 0);
    wgmma_fence();
    hopper_backward_scores<C>(s, base + C::K_AT, base + C::Q_AT);
    mbarrier_wait(bar::rows_full(0), 0);
    wgmma_wait<0>(s);
    hopper_release(bar::q_empty(0), thread);
    hopper_wide_weigh<C>(p.b, weights, s, 0, at.block * C::BM, thread);
    FA_NO_UNROLL
    while (at.left > 1) {
      const int me = opaque(thread);
      mbarrier_wait(bar::do_full(), static_cast<int>(ring.n % 2));
      wgmma_fence();
      hopper_backward_add<C>(dv, weights, base + C::DO_AT);
      ring.next();
      mbarrier_wait(bar::q_full(ring.stage()), ring.parity());
      wgmma_fence();
      hopper_backward_scores<C>(s, base + C::K_AT, base + C::Q_AT + ring.stage() * C::Q_BYTES);
      wgmma_wait<1>(dv);
      hopper_release(bar::do_empty(), me);
      hopper_wide_issue_dq<C, true>(dq, ring.before());
      wgmma_wait<1>(s);
      hopper_release(bar::q_empty(ring.stage()), me);
      wgmma_wait<0>(dq);
      hopper_wide_finish_dq<C, true>(p.b, dq, ring.before(), at.head, at.block, me);
      at.next(hopper_wide_load_keys<C>(p.b).blocks);
      mbarrier_wait(bar::rows_full(ring.stage()), ring.parity());
      hopper_wide_weigh<C>(p.b, weights, s, ring.stage(), at.block * C::BM, me);
    }
    mbarrier_wait(bar::do_full(), static_cast<int>(ring.n % 2));
    wgmma_fence();
    hopper_backward_add<C>(dv, weights, base + C::DO_AT);
    hopper_wide_issue_dq<C, true>(dq, ring);
    wgmma_wait<1>(dv);
    wgmma_wait<0>(dq);
    hopper_wide_finish_dq<C, true>(p.b, dq, ring, at.head, at.block, thread);
  }
  named_sync<256>(HOPPER_WIDE_ALL); /* nobody reads K and V any more */
  hopper_store_gradient<C>(&p.dv, dv, 1.0f, base + C::V_AT, t, thread / 32 * 16, thread % 32);
}

/* dp -> dS, to both blocks, and in ds. */
template <class C>
FA_DEVICE void hopper_wide_send_ds(uint32_t (&ds)[C::BM / 16][4], float (&dp)[C::BM / 8][4],
                                   hopper_ring<C::STAGES> ring, int thread) {
  typedef hopper_wide_barriers<C> bar;
  const uint32_t base = shared_base();
  const int stage = ring.stage(), lane = thread % 32;
  mbarrier_wait(bar::rows_full(stage), ring.parity());
  named_sync<64>(HOPPER_WIDE_P_FULL + thread / 32);
  hopper_wide_score_gradients<C>(
      dp, base + C::ROWS_AT + stage * (2 * C::ROW_BYTES) + C::ROW_BYTES + lane % 4 * 8, thread);
  sync_warp();
  hopper_release(bar::rows_empty(stage), thread);
  hopper_pack<C>(ds, dp);
  mbarrier_wait(bar::ds_empty(stage), ring.parity() ^ 1);
  hopper_store_ds<C>(base + C::DS_AT + stage * C::DS_BYTES, ds, thread / 32 * 16 + lane / 4, lane);
  fence_async();
  sync_warp();
  if (lane == 0) {
    const uint32_t rows = stage * C::DS_BYTES + thread / 32 * 16 * 128; /* the warp's keys */
    const int other = cluster_rank() ^ 1;
    send_shared(cluster_address(base + C::OTHER_DS_AT + rows, other), base + C::DS_AT + rows, 16 * 128,
                cluster_address(bar::other_full(stage), other));
    mbarrier_arrive(bar::ds_full(stage));
  }
}

/* The warpgroup of dK. dQ of a step waits for the other block's dS behind dK, and leaves after the next dS.
 */
template <class C> FA_DEVICE void hopper_wide_gradients(const fa_hopper_backward_params &p, int thread) {
  typedef hopper_wide_barriers<C> bar;
  const uint32_t base = shared_base();
  const hopper_keys t = hopper_wide_load_keys<C>(p.b);
  float dk[C::D / 8][4] = {}, dq[hopper_wide_columns<C, false>::N / 8][4], dp[C::BM / 8][4];
  uint32_t ds[C::BM / 16][4];
  hopper_ring<C::STAGES> ring;
  hopper_wide_walk at = hopper_wide_begin(p.b.forward, t);
  mbarrier_wait(bar::keys(), 0);
  if (at.left > 0) {
    mbarrier_wait(bar::q_full(0), 0);
    mbarrier_wait(bar::do_full(), 0);
    wgmma_fence();
    hopper_backward_scores<C>(dp, base + C::V_AT, base + C::DO_AT);
    wgmma_wait<0>(dp);
    hopper_release(bar::do_empty(), thread);
    hopper_wide_send_ds<C>(ds, dp, ring, thread);
    FA_NO_UNROLL
    while (at.left > 1) {
      const int me = opaque(thread);
      mbarrier_wait(bar::q_full(ring.stage()), ring.parity());
      wgmma_fence();
      hopper_backward_add<C>(dk, ds, base + C::Q_AT + ring.stage() * C::Q_BYTES);
      hopper_wide_issue_dq<C, false>(dq, ring);
      ring.next();
      wgmma_wait<1>(dk);
      hopper_release(bar::q_empty(ring.before().stage()), me);
      mbarrier_wait(bar::do_full(), static_cast<int>(ring.n % 2));
      wgmma_fence();
      hopper_backward_scores<C>(dp, base + C::V_AT, base + C::DO_AT);
      wgmma_wait<1>(dq);
      hopper_wide_finish_dq<C, false>(p.b, dq, ring.before(), at.head, at.block, opaque(me));
      at.next(hopper_wide_load_keys<C>(p.b).blocks);
      wgmma_wait<0>(dp);
      hopper_release(bar::do_empty(), me);
      hopper_wide_send_ds<C>(ds, dp, ring, me);
    }
    mbarrier_wait(bar::q_full(ring.stage()), ring.parity());
    wgmma_fence();
    hopper_backward_add<C>(dk, ds, base + C::Q_AT + ring.stage() * C::Q_BYTES);
    hopper_wide_issue_dq<C, false>(dq, ring);
    wgmma_wait<1>(dk);
    wgmma_wait<0>(dq);
    hopper_wide_finish_dq<C, false>(p.b, dq, ring, at.head, at.block, thread);
  }
  named_sync<256>(HOPPER_WIDE_ALL);
  hopper_store_gradient<C>(&p.dk, dk, p.b.scale, base + C::K_AT, t, thread / 32 * 16, thread % 32);
}

/* Grid: x over key blocks in clusters of two, y over KV heads, z over batch entries. */
template <class C> FA_DEVICE void hopper_backward_wide(const fa_hopper_backward_params &p) {
  const int thread = static_cast<int>(threadIdx.x), group = thread / 128;
  if (thread == 0) hopper_wide_barriers<C>::init();
  cluster_sync();
  if (group == 0) {
    registers_down<C::PRODUCER_REGISTERS>();
    if (thread < 32) hopper_wide_load<C>(p, thread);
  } else {
    registers_up<C::CONSUMER_REGISTERS>();
    if (group == 1)
      hopper_wide_values<C>(p, thread % 128);
    else
      hopper_wide_gradients<C>(p, thread % 128);
    if (thread % 32 == 0) {
      tma_store_commit();
      tma_store_wait_read<0>();
    }
  }
  cluster_sync(); /* the other block may still send, or tell that it has read */
}

} // namespace fa

#endif
