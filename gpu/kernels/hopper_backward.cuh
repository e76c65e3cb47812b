/* The main backward kernel for sm_90a, parallel over key blocks: what the one by keys of flash_backward.cuh
 * does, between the same kernels before and after it.
 *
 * A block owns 128 keys of one KV head, 64 for each of two consumer warpgroups, and walks the query blocks
 * that see them, of all query heads of the group. Scores are computed transposed, so that P^T and dS^T become
 * operands of dV and dK without leaving the registers:
 *
 *   S^T = K Q^T, dP^T = V dO^T, P = exp2(S scale_log2 - LSE_log2), dS = P (dP - delta)
 *   dV += P^T dO, dK += dS^T Q from registers
 *   dQ = dS K needs dS of both warpgroups: through shared memory; its sums leave by atomic additions.
 *
 * Of the producer warpgroup one thread issues bulk copies, and one warp brings LSE and delta.
 *
 * Shared memory, in panels of 64 columns (128 bytes, 128-byte swizzle): K, V, two each of Q, dO and dS (rows
 * are keys), LSE and delta. dK and dV leave by K's and V's places. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_CUH

#include "gpu/kernels/flash_backward.cuh"
#include "gpu/kernels/hopper_backward_params.h"
#include "gpu/kernels/hopper_common.cuh"

namespace fa {

template <class T_, int D_, int BM_> struct hopper_backward_config {
  typedef T_ T;
  static constexpr int D = D_, BM = BM_, BN = 128, GROUPS = 2, THREADS = 384;
  static constexpr int PANELS = D / 64, STAGES = 2;
  static constexpr int KV_PANEL = BN * 128, Q_PANEL = BM * 128; /* bytes */
  static constexpr int KV_BYTES = PANELS * KV_PANEL, Q_BYTES = PANELS * Q_PANEL;
  static constexpr int DS_PANEL = BN * 128, DS_BYTES = BM / 64 * DS_PANEL;
  static constexpr int K_AT = 0, V_AT = KV_BYTES, Q_AT = 2 * KV_BYTES, DO_AT = Q_AT + STAGES * Q_BYTES,
                       DS_AT = DO_AT + STAGES * Q_BYTES, ROWS_AT = DS_AT + STAGES * DS_BYTES;
  static constexpr int ROW_BYTES = BM * 4; /* of LSE, and of delta */
  static constexpr int BARRIERS_AT = ROWS_AT + STAGES * 2 * ROW_BYTES, N_BARRIERS = 1 + 6 * STAGES;
  static constexpr int SHARED_BYTES = BARRIERS_AT + 8 * N_BARRIERS;
  /* dQ of a step: with 64 rows each group has half of the columns, with 128 half of the rows */
  static constexpr int DQ_COLS = BM == 64 ? D / 2 : D;
  static constexpr int PRODUCER_REGISTERS = 40, CONSUMER_REGISTERS = 232;
  static_assert(BM == 64 || BM == 128, "how dQ is shared out");
  static_assert(SHARED_BYTES <= 232448, "what a block may have");
};

template <class C> struct hopper_backward_barriers {
  FA_DEVICE static uint32_t at(int i) { return shared_base() + C::BARRIERS_AT + 8 * i; }
  FA_DEVICE static uint32_t keys() { return at(0); }
  FA_DEVICE static uint32_t q_full(int s) { return at(1 + s); }
  FA_DEVICE static uint32_t q_empty(int s) { return at(1 + C::STAGES + s); }
  FA_DEVICE static uint32_t do_full(int s) { return at(1 + 2 * C::STAGES + s); }
  FA_DEVICE static uint32_t do_empty(int s) { return at(1 + 3 * C::STAGES + s); }
  FA_DEVICE static uint32_t rows_full(int s) { return at(1 + 4 * C::STAGES + s); }
  FA_DEVICE static uint32_t rows_empty(int s) { return at(1 + 5 * C::STAGES + s); }
};

template <class C> FA_DEVICE void hopper_backward_init() {
  typedef hopper_backward_barriers<C> bar;
  mbarrier_init(bar::keys(), 1);
  FA_NO_UNROLL
  for (int s = 0; s < C::STAGES; ++s) {
    mbarrier_init(bar::q_full(s), 1);
    mbarrier_init(bar::q_empty(s), 8); /* a lane of each warp */
    mbarrier_init(bar::do_full(s), 1);
    mbarrier_init(bar::do_empty(s), 8);
    mbarrier_init(bar::rows_full(s), 1);
    mbarrier_init(bar::rows_empty(s), 8);
  }
  mbarrier_init_fence();
}

/* What a block works on. */
struct hopper_keys {
  sequence seq;
  int batch, kv_head, key0;
  block_range blocks; /* of rows */
  int end;            /* of the group's heads */
};

template <class C> FA_DEVICE hopper_keys hopper_load_keys(const fa_flash_backward_params &p) {
  const fa_flash_params &f = p.forward;
  hopper_keys t;
  t.batch = static_cast<int>(blockIdx.z);
  t.kv_head = static_cast<int>(blockIdx.y);
  t.key0 = static_cast<int>(blockIdx.x) * C::BN;
  t.seq = {0, 0, f.seqlen_q, f.seqlen_k, f.top_left ? 0 : f.seqlen_k - f.seqlen_q};
  t.blocks = query_blocks<C>(f, t.seq, t.key0, min_int(t.key0 + C::BN, f.seqlen_k));
  t.end = (t.kv_head + 1) * f.heads_per_kv;
  return t;
}

/* ---- producers ---- */

/* One thread. */
template <class C> FA_DEVICE void hopper_backward_load(const fa_hopper_backward_params &p) {
  typedef hopper_backward_barriers<C> bar;
  const hopper_keys t = hopper_load_keys<C>(p.b);
  const uint32_t base = shared_base();
  mbarrier_arrive_expect(bar::keys(), 2 * C::KV_BYTES);
  FA_UNROLL
  for (int i = 0; i < C::PANELS; ++i) {
    tma_load(base + C::K_AT + i * C::KV_PANEL, &p.k, bar::keys(), 64 * i, t.key0, t.kv_head, t.batch);
    tma_load(base + C::V_AT + i * C::KV_PANEL, &p.v, bar::keys(), 64 * i, t.key0, t.kv_head, t.batch);
  }
  hopper_ring<C::STAGES> ring;
  FA_NO_UNROLL
  for (int head = t.kv_head * p.b.forward.heads_per_kv; head < t.end; ++head) FA_NO_UNROLL
  for (int block = t.blocks.begin; block < t.blocks.end; ++block) {
    mbarrier_wait(bar::q_empty(ring.stage()), ring.parity() ^ 1);
    hopper_load<C::PANELS, C::Q_PANEL>(base + C::Q_AT + ring.stage() * C::Q_BYTES, &p.q,
                                       bar::q_full(ring.stage()), block * C::BM, head, t.batch);
    mbarrier_wait(bar::do_empty(ring.stage()), ring.parity() ^ 1);
    hopper_load<C::PANELS, C::Q_PANEL>(base + C::DO_AT + ring.stage() * C::Q_BYTES, &p.d_o,
                                       bar::do_full(ring.stage()), block * C::BM, head, t.batch);
    ring.next();
  }
}

/* One warp: LSE and delta of each row block. */
template <class C> FA_DEVICE void hopper_backward_load_rows(const fa_flash_backward_params &p, int lane) {
  typedef hopper_backward_barriers<C> bar;
  const hopper_keys t = hopper_load_keys<C>(p);
  hopper_ring<C::STAGES> ring;
  FA_NO_UNROLL
  for (int head = t.kv_head * p.forward.heads_per_kv; head < t.end; ++head) FA_NO_UNROLL
  for (int block = t.blocks.begin; block < t.blocks.end; ++block) {
    const int64_t row = workspace_row<C::D>(p, t.batch, head, block * C::BM);
    const uint32_t to = shared_base() + C::ROWS_AT + ring.stage() * (2 * C::ROW_BYTES);
    mbarrier_wait(bar::rows_empty(ring.stage()), ring.parity() ^ 1);
    for (int i = lane; i < C::BM; i += 32) {
      store_shared4(to + 4 * i, float_bits(load_global(p.lse_log2 + row + i)));
      store_shared4(to + C::ROW_BYTES + 4 * i, float_bits(load_global(p.delta + row + i)));
    }
    sync_warp();
    if (lane == 0) mbarrier_arrive(bar::rows_full(ring.stage()));
    ring.next();
  }
}

/* ---- consumers ---- */

/* x[64 x BM] = A B^T over D: rows of the group's 64 keys, B the rows of a query block. */
template <class C>
FA_DEVICE void hopper_backward_scores(float (&x)[C::BM / 8][4], uint32_t keys_tile, uint32_t rows_tile) {
  hopper_multiply<C::D, C::KV_PANEL, C::Q_PANEL>(x, keys_tile, rows_tile, typename C::T());
}

/* x[64 x D] += A B, A from registers, B the rows of a query block. */
template <class C>
FA_DEVICE void hopper_backward_add(float (&x)[C::D / 8][4], const uint32_t (&a)[C::BM / 16][4],
                                   uint32_t rows_tile) {
  hopper_add<C::Q_PANEL>(x, a, rows_tile, typename C::T());
}

/* The group's part of dQ = dS K. */
template <class C>
FA_DEVICE void hopper_backward_dq(float (&dq)[C::DQ_COLS / 8][4], uint32_t ds_tile, uint32_t k_tile,
                                  int group) {
  const uint32_t a_at = C::BM == 64 ? 0 : group * C::DS_PANEL,
                 b_at = C::BM == 64 ? (C::D == 64 ? group * 64 : group * (C::PANELS / 2) * C::KV_PANEL) : 0;
  const uint64_t a = matrix_descriptor(ds_tile + a_at, C::DS_PANEL, 1024, FA_SWIZZLE_128),
                 b = matrix_descriptor(k_tile + b_at, C::KV_PANEL, 1024, FA_SWIZZLE_128);
  FA_UNROLL
  for (int i = 0; i < C::BN / 16; ++i)
    wgmma_ss<1, 1>(dq, descriptor_at(a, i * 16 * 128), descriptor_at(b, i * 16 * 128), i > 0,
                   typename C::T());
  wgmma_commit();
}

/* Adds it to the accumulator, whose tiles lie as registers do. */
template <class C>
FA_DEVICE void hopper_backward_add_dq(const fa_flash_backward_params &p, const float (&dq)[C::DQ_COLS / 8][4],
                                      int batch, int head, int row0, int group, int thread) {
  const int row = row0 + (C::BM == 64 ? 0 : 64 * group) + thread / 32 * 16;
  const int chunk = C::BM == 64 ? group * (C::DQ_COLS / 8) : 0;
  float *to = p.dq_accum + workspace_row<C::D>(p, batch, head, row) * C::D + chunk * 128 + thread % 32 * 4;
  FA_UNROLL
  for (int n = 0; n < C::DQ_COLS / 8; ++n) atomic_add4(to + n * 128, dq[n]);
}

/* Which rows see each of a thread's two keys: lo <= row < hi; further, from row0 and the thread's column. */
struct hopper_rows {
  int lo[2], hi[2];
};
template <class C>
FA_DEVICE hopper_rows rows_of_keys(const fa_flash_params &f, const sequence &seq, int key, int row0) {
  hopper_rows r;
  FA_UNROLL
  for (int i = 0; i < 2; ++i) {
    const int level = key + 8 * i - seq.shift;
    r.lo[i] = f.window_right >= 0 ? level - f.window_right - row0 : -(1 << 30);
    r.hi[i] = f.window_left >= 0 ? level + f.window_left + 1 - row0 : 1 << 30;
    if (key + 8 * i >= seq.len_k) r.hi[i] = -(1 << 30);
  }
  return r;
}

/* s -> P. rows: shared address of the block's LSE. Rows that see nothing and those past the end have LSE =
 * inf.
 */
template <class C, bool MASK>
FA_DEVICE void hopper_probabilities(float (&s)[C::BM / 8][4], float scale_log2, uint32_t rows,
                                    const hopper_rows &seen) {
  FA_UNROLL
  for (int n = 0; n < C::BM / 8; ++n) {
    FA_UNROLL
    for (int e = 0; e < 2; ++e) {
      const float lse = as_float(load_shared4(rows + 32 * n + 4 * e));
      FA_UNROLL
      for (int r = 0; r < 2; ++r) {
        float x = exp2_approx(fmaf(s[n][2 * r + e], scale_log2, -lse));
        if (MASK && (8 * n + e < seen.lo[r] || 8 * n + e >= seen.hi[r])) x = 0.0f;
        s[n][2 * r + e] = x;
      }
    }
  }
}

/* dp -> dS. rows: shared address of the block's delta. */
template <class C>
FA_DEVICE void hopper_score_gradients(float (&dp)[C::BM / 8][4], const float (&p)[C::BM / 8][4],
                                      uint32_t rows) {
  FA_UNROLL
  for (int n = 0; n < C::BM / 8; ++n) {
    FA_UNROLL
    for (int e = 0; e < 2; ++e) {
      const float delta = as_float(load_shared4(rows + 32 * n + 4 * e));
      FA_UNROLL
      for (int r = 0; r < 2; ++r) dp[n][2 * r + e] = p[n][2 * r + e] * (dp[n][2 * r + e] - delta);
    }
  }
}

template <class C> FA_DEVICE void hopper_pack(uint32_t (&to)[C::BM / 16][4], const float (&x)[C::BM / 8][4]) {
  FA_UNROLL
  for (int i = 0; i < C::BM / 16; ++i) {
    FA_UNROLL
    for (int j = 0; j < 4; ++j)
      to[i][j] = pack2(x[2 * i + j / 2][j % 2 * 2], x[2 * i + j / 2][j % 2 * 2 + 1], typename C::T());
  }
}

/* dS^T of the group's keys, rows being keys. */
template <class C>
FA_DEVICE void hopper_store_ds(uint32_t tile, const uint32_t (&ds)[C::BM / 16][4], int key, int lane) {
  FA_UNROLL
  for (int i = 0; i < C::BM / 16; ++i) {
    FA_UNROLL
    for (int j = 0; j < 4; ++j) { /* registers 0, 1: keys l/4, l/4 + 8 of rows 0..7; 2, 3: of rows 8..15 */
      const int row = key + j % 2 * 8, chunk = 2 * i + j / 2;
      store_shared4(tile + chunk / 8 * C::DS_PANEL + row * 128 + ((chunk % 8 ^ row % 8) << 4) + lane % 4 * 4,
                    ds[i][j]);
    }
  }
}

/* The warp's 16 rows of a gradient out by shared memory. */
template <class C>
FA_DEVICE void hopper_store_gradient(const fa_tensor_map *map, const float (&x)[C::D / 8][4], float factor,
                                     uint32_t tile, const hopper_keys &t, int first, int lane) {
  tile += first * 128;
  FA_UNROLL
  for (int r = 0; r < 2; ++r) hopper_store_row<C::KV_PANEL>(tile, x, factor, r, lane, typename C::T());
  fence_async();
  sync_warp();
  if (lane == 0 && t.key0 + first < t.seq.len_k) {
    FA_UNROLL
    for (int i = 0; i < C::PANELS; ++i)
      tma_store(map, tile + i * C::KV_PANEL, 64 * i, t.key0 + first, t.kv_head, t.batch);
  }
}

/* One query block. */
template <class C>
FA_DEVICE void hopper_backward_step(const fa_flash_backward_params &p, float (&dk)[C::D / 8][4],
                                    float (&dv)[C::D / 8][4], hopper_ring<C::STAGES> ring, int head,
                                    int block, int group, int thread) {
  typedef hopper_backward_barriers<C> bar;
  const hopper_keys t = hopper_load_keys<C>(p); /* cheaper than kept */
  const uint32_t base = shared_base(), q_tile = base + C::Q_AT + ring.stage() * C::Q_BYTES,
                 do_tile = base + C::DO_AT + ring.stage() * C::Q_BYTES,
                 ds_tile = base + C::DS_AT + ring.stage() * C::DS_BYTES;
  const int lane = thread % 32, key = 64 * group + thread / 32 * 16 + lane / 4, row0 = block * C::BM;
  uint32_t weights[C::BM / 16][4], ds[C::BM / 16][4];
  {
    float s[C::BM / 8][4], dp[C::BM / 8][4];
    mbarrier_wait(bar::q_full(ring.stage()), ring.parity());
    wgmma_fence();
    hopper_backward_scores<C>(s, base + C::K_AT + group * 64 * 128, q_tile);
    mbarrier_wait(bar::do_full(ring.stage()), ring.parity());
    wgmma_fence();
    hopper_backward_scores<C>(dp, base + C::V_AT + group * 64 * 128, do_tile);
    mbarrier_wait(bar::rows_full(ring.stage()), ring.parity());
    const uint32_t rows = base + C::ROWS_AT + ring.stage() * (2 * C::ROW_BYTES) + lane % 4 * 8;
    const int first = t.key0 + 64 * group;
    wgmma_wait<1>(s);
    if (keys_need_mask(p.forward, t.seq, row0, min_int(row0 + C::BM, t.seq.len_q), first, first + 64))
      hopper_probabilities<C, true>(s, p.scale_log2, rows,
                                    rows_of_keys<C>(p.forward, t.seq, t.key0 + key, row0 + lane % 4 * 2));
    else
      hopper_probabilities<C, false>(s, p.scale_log2, rows, hopper_rows());
    hopper_pack<C>(weights, s);
    wgmma_fence();
    hopper_backward_add<C>(dv, weights, do_tile);
    wgmma_wait<1>(dp);
    hopper_score_gradients<C>(dp, s, rows + C::ROW_BYTES);
    sync_warp();
    hopper_release(bar::rows_empty(ring.stage()), thread);
    hopper_pack<C>(ds, dp);
  }
  hopper_store_ds<C>(ds_tile, ds, key, lane);
  fence_async();
  named_sync<256>(1); /* dS of both stands; the other buffer of dS is read by nobody any more */
  float dq[C::DQ_COLS / 8][4];
  wgmma_fence();
  hopper_backward_dq<C>(dq, ds_tile, base + C::K_AT, group);
  hopper_backward_add<C>(dk, ds, q_tile);
  wgmma_wait<2>(dv);
  hopper_release(bar::do_empty(ring.stage()), thread);
  wgmma_wait<1>(dq);
  hopper_backward_add_dq<C>(p, dq, t.batch, head, row0, group, thread);
  wgmma_wait<0>(dk);
  hopper_release(bar::q_empty(ring.stage()), thread);
}

template <class C>
FA_DEVICE void hopper_backward_consume(const fa_hopper_backward_params &p, int group, int thread) {
  const hopper_keys t = hopper_load_keys<C>(p.b);
  float dk[C::D / 8][4] = {}, dv[C::D / 8][4] = {};
  hopper_ring<C::STAGES> ring;
  mbarrier_wait(hopper_backward_barriers<C>::keys(), 0);
  FA_NO_UNROLL
  for (int head = t.kv_head * p.b.forward.heads_per_kv; head < t.end; ++head) FA_NO_UNROLL
  for (int block = t.blocks.begin; block < t.blocks.end; ++block) {
    hopper_backward_step<C>(p.b, dk, dv, ring, head, block, group, opaque(thread));
    ring.next();
  }
  named_sync<256>(1); /* nobody reads K any more */
  const int first = 64 * group + thread / 32 * 16, lane = thread % 32;
  hopper_store_gradient<C>(&p.dk, dk, p.b.scale, shared_base() + C::K_AT, t, first, lane);
  hopper_store_gradient<C>(&p.dv, dv, 1.0f, shared_base() + C::V_AT, t, first, lane);
  if (lane != 0) return;
  tma_store_commit();
  tma_store_wait_read<0>();
}

/* Grid: x over key blocks, y over KV heads, z over batch entries. */
template <class C> FA_DEVICE void hopper_backward(const fa_hopper_backward_params &p) {
  const int thread = static_cast<int>(threadIdx.x), group = thread / 128;
  if (thread == 0) hopper_backward_init<C>();
  sync_block();
  if (group == 0) {
    registers_down<C::PRODUCER_REGISTERS>();
    if (thread == 0) hopper_backward_load<C>(p);
    if (thread / 32 == 1) hopper_backward_load_rows<C>(p.b, thread % 32);
  } else {
    registers_up<C::CONSUMER_REGISTERS>();
    hopper_backward_consume<C>(p, group - 1, thread % 128);
  }
}

} // namespace fa

#endif
