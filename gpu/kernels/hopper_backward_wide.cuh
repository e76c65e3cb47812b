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
 * Shared memory, in panels of 64 columns (128 bytes, 128-byte swizzle): K, V, two each of Q, dO and dS (rows
 * are keys), P as the threads hold it, LSE and delta. dK and dV leave by K's and V's places. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_WIDE_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_WIDE_CUH

#include "gpu/kernels/hopper_backward.cuh"

namespace fa {

/* ROW_D: of the workspace, head_dim up to a multiple of 32. The tiles have whole panels. */
template <class T_, int ROW_D_> struct hopper_backward_wide_config : flash_kind_traits<plain> {
  typedef T_ T;
  static constexpr int ROW_D = ROW_D_, D = (ROW_D + 63) / 64 * 64, BM = 64, BN = 64, THREADS = 384;
  static constexpr flash_kind KIND = plain;
  static constexpr bool VARLEN = false, ORDERED = false;
  static constexpr int PANELS = D / 64, STAGES = 2, RANKS = 1;
  static constexpr int KV_PANEL = BN * 128, Q_PANEL = BM * 128, DS_PANEL = BN * 128; /* bytes */
  static constexpr int KV_BYTES = PANELS * KV_PANEL, Q_BYTES = PANELS * Q_PANEL, DS_BYTES = DS_PANEL;
  static constexpr int K_AT = 0, V_AT = KV_BYTES, Q_AT = 2 * KV_BYTES, DO_AT = Q_AT + STAGES * Q_BYTES,
                       DS_AT = DO_AT + STAGES * Q_BYTES, P_AT = DS_AT + STAGES * DS_BYTES,
                       ROWS_AT = P_AT + BM * BN * 4;
  static constexpr int ROW_BYTES = BM * 4; /* of LSE, and of delta */
  static constexpr int BARRIERS_AT = ROWS_AT + STAGES * 2 * ROW_BYTES, N_BARRIERS = 8 * STAGES + 1;
  static constexpr int SHARED_BYTES = BARRIERS_AT + 8 * N_BARRIERS;
  static constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 240;
  static_assert(D == 192 || D == 256, "how dQ is shared out");
  static_assert(SHARED_BYTES <= 232448, "what a block may have");
};

/* Columns of dQ: 128 for gradients, the rest for values. */
template <class C, bool VALUES> struct hopper_wide_columns {
  static constexpr int FIRST = VALUES ? 128 : 0, N = VALUES ? C::D - 128 : 128;
};

template <class C> struct hopper_wide_barriers {
  FA_DEVICE static uint32_t at(int of, int s) {
    return shared_base() + C::BARRIERS_AT + 8 * (C::STAGES * of + s);
  }
  FA_DEVICE static uint32_t q_full(int s) { return at(0, s); }
  FA_DEVICE static uint32_t q_empty(int s) { return at(1, s); }
  FA_DEVICE static uint32_t do_full(int s) { return at(2, s); }
  FA_DEVICE static uint32_t do_empty(int s) { return at(3, s); }
  FA_DEVICE static uint32_t rows_full(int s) { return at(4, s); }
  FA_DEVICE static uint32_t rows_empty(int s) { return at(5, s); }
  FA_DEVICE static uint32_t ds_full(int s) { return at(6, s); }
  FA_DEVICE static uint32_t ds_empty(int s) { return at(7, s); }
  FA_DEVICE static uint32_t keys() { return at(8, 0); }
  FA_DEVICE static void init() {
    FA_NO_UNROLL
    for (int s = 0; s < C::STAGES; ++s) {
      mbarrier_init(q_full(s), 1);
      mbarrier_init(q_empty(s), 8); /* a lane of each warp */
      mbarrier_init(do_full(s), 1);
      mbarrier_init(do_empty(s), 8);
      mbarrier_init(rows_full(s), 1);
      mbarrier_init(rows_empty(s), 8);
      mbarrier_init(ds_full(s), 4);
      mbarrier_init(ds_empty(s), 8);
    }
    mbarrier_init(keys(), 1);
    mbarrier_init_fence();
  }
};

/* Named barriers of a warp of each group, which hand over P. */
enum { HOPPER_WIDE_P_FULL = 1, HOPPER_WIDE_P_EMPTY = 5, HOPPER_WIDE_ALL = 9 };

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
  const hopper_keys t = hopper_load_keys<C>(p.b);
  const uint32_t base = shared_base();
  if (lane == 0) {
    mbarrier_arrive_expect(bar::keys(), 2 * C::KV_BYTES);
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
      mbarrier_wait(bar::do_empty(stage), empty);
      hopper_load<C::PANELS, C::Q_PANEL>(base + C::DO_AT + stage * C::Q_BYTES, &p.d_o, bar::do_full(stage),
                                         at.block * C::BM, at.head, batch);
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

/* The group's columns of dQ = dS K, issued. */
template <class C, bool VALUES, int TILES>
FA_DEVICE void hopper_wide_dq(float (&dq)[TILES][4], uint32_t ds_tile) {
  typedef hopper_wide_columns<C, VALUES> columns;
  const uint64_t a = matrix_descriptor(ds_tile, C::DS_PANEL, 1024, FA_SWIZZLE_128),
                 b = matrix_descriptor(shared_base() + C::K_AT + columns::FIRST / 64 * C::KV_PANEL,
                                       C::KV_PANEL, 1024, FA_SWIZZLE_128);
  FA_UNROLL
  for (int i = 0; i < C::BN / 16; ++i)
    wgmma_ss<1, 1>(dq, descriptor_at(a, i * 16 * 128), descriptor_at(b, i * 16 * 128), i > 0,
                   typename C::T());
  wgmma_commit();
}

/* Adds them to the accumulator, whose tiles lie as registers do. */
template <class C, bool VALUES, int TILES>
FA_DEVICE void hopper_wide_add_dq(const fa_flash_backward_params &p, const float (&dq)[TILES][4], int batch,
                                  int head, int row0, int thread) {
  constexpr int FIRST = hopper_wide_columns<C, VALUES>::FIRST / 8;
  const int row = row0 + thread / 32 * 16;
  float *to =
      p.dq_accum + workspace_row<C::ROW_D>(p, batch, head, row) * C::ROW_D + FIRST * 128 + thread % 32 * 4;
  FA_UNROLL
  for (int n = 0; n < TILES; ++n)
    if (FIRST + n < C::ROW_D / 8) atomic_add4(to + n * 128, dq[n]);
}

/* The warpgroup of dV. */
template <class C> FA_DEVICE void hopper_wide_values(const fa_hopper_backward_params &p, int thread) {
  typedef hopper_wide_barriers<C> bar;
  const hopper_keys t = hopper_load_keys<C>(p.b);
  const uint32_t base = shared_base();
  float dv[C::D / 8][4] = {};
  hopper_ring<C::STAGES> ring;
  hopper_wide_walk at = hopper_wide_begin(p.b.forward, t);
  mbarrier_wait(bar::keys(), 0);
  FA_NO_UNROLL
  while (at.left > 0) {
    const int stage = ring.stage(), parity = ring.parity(), me = opaque(thread), lane = me % 32;
    const int key = me / 32 * 16 + lane / 4, row0 = at.block * C::BM;
    uint32_t weights[C::BM / 16][4];
    {
      float s[C::BM / 8][4];
      mbarrier_wait(bar::q_full(stage), parity);
      wgmma_fence();
      hopper_backward_scores<C>(s, base + C::K_AT, base + C::Q_AT + stage * C::Q_BYTES);
      mbarrier_wait(bar::rows_full(stage), parity);
      wgmma_wait<0>(s);
      hopper_release(bar::q_empty(stage), me);
      const hopper_keys k = hopper_load_keys<C>(p.b); /* cheaper than kept */
      const uint32_t rows = base + C::ROWS_AT + stage * (2 * C::ROW_BYTES) + lane % 4 * 8;
      if (keys_need_mask(p.b.forward, k.seq, row0, min_int(row0 + C::BM, k.seq.len_q), k.key0,
                         k.key0 + C::BN))
        hopper_probabilities<C, true>(s, p.b.scale_log2, rows,
                                      rows_of_keys<C>(p.b.forward, k.seq, k.key0 + key, row0 + lane % 4 * 2));
      else
        hopper_probabilities<C, false>(s, p.b.scale_log2, rows, hopper_rows());
      named_sync<64>(HOPPER_WIDE_P_EMPTY + me / 32);
      hopper_wide_store_p<C>(s, me);
      named_arrive<64>(HOPPER_WIDE_P_FULL + me / 32);
      sync_warp();
      hopper_release(bar::rows_empty(stage), me);
      hopper_pack<C>(weights, s);
    }
    mbarrier_wait(bar::do_full(stage), parity);
    wgmma_fence();
    hopper_backward_add<C>(dv, weights, base + C::DO_AT + stage * C::Q_BYTES);
    float dq[hopper_wide_columns<C, true>::N / 8][4];
    mbarrier_wait(bar::ds_full(stage), parity);
    wgmma_fence();
    hopper_wide_dq<C, true>(dq, base + C::DS_AT + stage * C::DS_BYTES);
    wgmma_wait<1>(dv);
    hopper_release(bar::do_empty(stage), me);
    wgmma_wait<0>(dq);
    hopper_release(bar::ds_empty(stage), me);
    hopper_wide_add_dq<C, true>(p.b, dq, t.batch, at.head, row0, me);
    ring.next();
    at.next(t.blocks);
  }
  named_sync<256>(HOPPER_WIDE_ALL); /* nobody reads K and V any more */
  hopper_store_gradient<C>(&p.dv, dv, 1.0f, base + C::V_AT, t, thread / 32 * 16, thread % 32);
}

/* The warpgroup of dK. */
template <class C> FA_DEVICE void hopper_wide_gradients(const fa_hopper_backward_params &p, int thread) {
  typedef hopper_wide_barriers<C> bar;
  const hopper_keys t = hopper_load_keys<C>(p.b);
  const uint32_t base = shared_base();
  float dk[C::D / 8][4] = {};
  uint32_t ds[C::BM / 16][4]; /* until dK has them: in the next step */
  hopper_ring<C::STAGES> ring;
  hopper_wide_walk at = hopper_wide_begin(p.b.forward, t);
  mbarrier_wait(bar::keys(), 0);
  FA_NO_UNROLL
  while (at.left > 0) {
    const int stage = ring.stage(), parity = ring.parity(), me = opaque(thread), lane = me % 32;
    const int row0 = at.block * C::BM;
    const uint32_t ds_tile = base + C::DS_AT + stage * C::DS_BYTES;
    named_arrive<64>(HOPPER_WIDE_P_EMPTY + me / 32);
    {
      float dp[C::BM / 8][4];
      mbarrier_wait(bar::do_full(stage), parity);
      wgmma_fence();
      hopper_backward_scores<C>(dp, base + C::V_AT, base + C::DO_AT + stage * C::Q_BYTES);
      wgmma_wait<1>(dk);
      if (ring.n > 0) hopper_release(bar::q_empty(ring.before().stage()), me);
      mbarrier_wait(bar::rows_full(stage), parity);
      wgmma_wait<0>(dp);
      hopper_release(bar::do_empty(stage), me);
      named_sync<64>(HOPPER_WIDE_P_FULL + me / 32);
      hopper_wide_score_gradients<C>(
          dp, base + C::ROWS_AT + stage * (2 * C::ROW_BYTES) + C::ROW_BYTES + lane % 4 * 8, me);
      sync_warp();
      hopper_release(bar::rows_empty(stage), me);
      hopper_pack<C>(ds, dp);
    }
    mbarrier_wait(bar::ds_empty(stage), parity ^ 1);
    hopper_store_ds<C>(ds_tile, ds, me / 32 * 16 + lane / 4, lane);
    fence_async();
    sync_warp();
    hopper_release(bar::ds_full(stage), me);
    float dq[hopper_wide_columns<C, false>::N / 8][4];
    mbarrier_wait(bar::ds_full(stage), parity);
    wgmma_fence();
    hopper_wide_dq<C, false>(dq, ds_tile);
    mbarrier_wait(bar::q_full(stage), parity);
    wgmma_fence();
    hopper_backward_add<C>(dk, ds, base + C::Q_AT + stage * C::Q_BYTES);
    wgmma_wait<1>(dq);
    hopper_release(bar::ds_empty(stage), me);
    hopper_wide_add_dq<C, false>(p.b, dq, t.batch, at.head, row0, me);
    ring.next();
    at.next(t.blocks);
  }
  wgmma_wait<0>(dk);
  named_sync<256>(HOPPER_WIDE_ALL);
  hopper_store_gradient<C>(&p.dk, dk, p.b.scale, base + C::K_AT, t, thread / 32 * 16, thread % 32);
}

/* Grid: x over key blocks, y over KV heads, z over batch entries. */
template <class C> FA_DEVICE void hopper_backward_wide(const fa_hopper_backward_params &p) {
  const int thread = static_cast<int>(threadIdx.x), group = thread / 128;
  if (thread == 0) hopper_wide_barriers<C>::init();
  sync_block();
  if (group == 0) {
    registers_down<C::PRODUCER_REGISTERS>();
    if (thread < 32) hopper_wide_load<C>(p, thread);
    return;
  }
  registers_up<C::CONSUMER_REGISTERS>();
  if (group == 1)
    hopper_wide_values<C>(p, thread % 128);
  else
    hopper_wide_gradients<C>(p, thread % 128);
  if (thread % 32 != 0) return;
  tma_store_commit();
  tma_store_wait_read<0>();
}

} // namespace fa

#endif
