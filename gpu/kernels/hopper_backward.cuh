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

#include "gpu/kernels/hopper_backward_drop.cuh"
#include "gpu/kernels/hopper_backward_flex.cuh"
#include "gpu/kernels/hopper_backward_scores.cuh"

namespace fa {

/* ---- producers ---- */

/* The keys of a key block. */
template <class C>
FA_DEVICE void hopper_backward_load_keys(const fa_hopper_backward_params &p, const hopper_keys &t) {
  typedef hopper_backward_barriers<C> bar;
  const int batch = hopper_map_batch<C>(t.batch), key = t.seq.k_row + t.key0;
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
  const int row = t.seq.q_row + tile * C::BM, batch = hopper_map_batch<C>(t.batch);
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
template <class C, int TILES>
FA_DEVICE void hopper_backward_dq(float (&dq)[TILES][4], uint32_t ds_tile, uint32_t k_tile, int group) {
  const uint32_t a_at = C::BM == 64 ? 0 : group * C::DS_PANEL,
                 b_at = C::BM == 64 ? (C::D == 64 ? group * 64 : group * C::KV_PANEL) : 0;
  const uint64_t a = matrix_descriptor(ds_tile + a_at, C::DS_PANEL, 1024, FA_SWIZZLE_128),
                 b = matrix_descriptor(k_tile + b_at, C::KV_PANEL, 1024, FA_SWIZZLE_128);
  FA_UNROLL
  for (int i = 0; i < C::BN / 16; ++i)
    wgmma_ss<1, 1>(dq, descriptor_at(a, i * 16 * 128), descriptor_at(b, i * 16 * 128), i > 0,
                   typename C::T());
  wgmma_commit();
}

/* Adds it to the accumulator, whose tiles lie as registers do. */
template <class C, int TILES>
FA_DEVICE void hopper_backward_add_dq(const fa_flash_backward_params &p, const float (&dq)[TILES][4],
                                      int batch, int head, int row0, int group, int thread) {
  const int row = row0 + (C::BM == 64 ? 0 : 64 * group) + thread / 32 * 16;
  const int chunk = C::BM == 64 ? group * (C::DQ_FIRST / 8) : 0;
  float *to = p.dq_accum + (C::ORDERED ? own_accumulator(p) : 0) +
              workspace_row<C::D>(p, batch, head, row) * C::D + chunk * 128 + thread % 32 * 4;
  FA_UNROLL
  for (int n = 0; n < TILES; ++n) atomic_add4(to + n * 128, dq[n]);
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
  hopper_store_row<C::KV_PANEL>(tile, x, factor, 0, lane, typename C::T());
  hopper_store_row<C::KV_PANEL>(tile, x, factor, 1, lane, typename C::T());
  fence_async();
  sync_warp();
  if (lane == 0 && t.key0 + first < t.seq.len_k) {
    FA_UNROLL
    for (int i = 0; i < C::PANELS; ++i)
      tma_store(map, tile + i * C::KV_PANEL, 64 * i, t.seq.k_row + t.key0 + first, t.kv_head,
                hopper_map_batch<C>(t.batch));
  }
}

/* The same where the keys end within them, and another entry's follow. */
template <class C>
FA_DEVICE void hopper_store_gradient_rows(uint16_t *to, const fa_flash_strides &stride, int head_dim,
                                          const float (&x)[C::D / 8][4], float factor, uint32_t tile,
                                          const hopper_keys &t, int first, int lane) {
  tile += first * 128;
  hopper_store_row<C::KV_PANEL>(tile, x, factor, 0, lane, typename C::T());
  hopper_store_row<C::KV_PANEL>(tile, x, factor, 1, lane, typename C::T());
  sync_warp();
  const int n_rows = min_int(16, t.seq.len_k - t.key0 - first);
  to += t.kv_head * stride.head + (static_cast<int64_t>(t.seq.k_row) + t.key0 + first) * stride.row;
  FA_NO_UNROLL
  for (int i = lane; i < n_rows * (C::D / 8); i += 32) {
    const int row = i / (C::D / 8), chunk = i % (C::D / 8);
    if (8 * chunk < head_dim)
      store_global(reinterpret_cast<vec4 *>(to + row * stride.row + 8 * chunk),
                   load_shared16(tile + chunk / 8 * C::KV_PANEL + row * 128 + ((chunk % 8 ^ row % 8) << 4)));
  }
}

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

/* What a step is about. */
struct hopper_step {
  int head, row0, kind; /* kind: of the tile, of flex kernels */
};

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

/* The same of flex kernels. LATE_DP: with the registers of large head dims, dP comes after P; the other
 * warpgroup's products fill the time. READS: gradients of buffers are wanted, which takes S and dP at once.
 */
template <class C, bool READS>
FA_DEVICE void hopper_step_flex(const fa_flash_backward_params &p, uint32_t (&weights)[C::BM / 16][4],
                                uint32_t (&ds)[C::BM / 16][4], float (&dv)[C::D / 8][4],
                                hopper_ring<C::STAGES> ring, const hopper_keys &t, hopper_step &at, int group,
                                int thread) {
  typedef hopper_backward_barriers<C> bar;
  constexpr bool LATE_DP = C::D > 64 && !READS;
  const uint32_t base = shared_base(), q_tile = base + C::Q_AT + ring.stage() * C::Q_BYTES,
                 do_tile = base + C::DO_AT + ring.stage() * C::Q_BYTES,
                 v_tile = base + C::V_AT + group * 64 * 128;
  const int lane = thread % 32, key = t.key0 + 64 * group + thread / 32 * 16 + lane / 4;
  const fa_flex_args &x = p.forward.flex;
  float s[C::BM / 8][4], dp[C::BM / 8][4];
  mbarrier_wait(bar::q_full(ring.stage()), ring.parity());
  wgmma_fence();
  hopper_backward_scores<C>(s, base + C::K_AT + group * 64 * 128, q_tile);
  mbarrier_wait(bar::do_full(ring.stage()), ring.parity());
  if (!LATE_DP) {
    wgmma_fence();
    hopper_backward_scores<C>(dp, v_tile, do_tile);
  }
  mbarrier_wait(bar::rows_full(ring.stage()), ring.parity());
  const int entry = uniform(static_cast<int>(load_shared4(base + C::ENTRIES_AT + 4 * ring.stage())));
  at.row0 = (entry >> 2) * C::BM;
  at.kind = entry & 3;
  const int row = at.row0 + lane % 4 * 2, end = min_int(at.row0 + C::BM, t.seq.len_q),
            first_key = t.key0 + 64 * group;
  const bool all =
      end == at.row0 + C::BM && !keys_need_mask(p.forward, t.seq, at.row0, end, first_key, first_key + 64);
  hopper_rows seen = rows_of_keys<C>(p.forward, t.seq, key, row);
  seen.hi[0] = min_int(seen.hi[0], t.seq.len_q - row);
  seen.hi[1] = min_int(seen.hi[1], t.seq.len_q - row);
  const flex_pair first = {t.batch, at.head, row, key, t.seq.len_q, t.seq.len_k};
  const uint32_t shown = hopper_flex_shown<C>(x, at.kind, first, all, seen);
  const uint32_t rows = base + C::ROWS_AT + ring.stage() * (2 * C::ROW_BYTES) + lane % 4 * 8;
  if constexpr (READS) {
    wgmma_wait<0>(s);
    wgmma_wait<0>(dp);
    hopper_flex_reads<C>(weights, ds, s, dp, p, first, shown, rows, lane);
    wgmma_fence();
    hopper_backward_add<C>(dv, weights, do_tile);
  } else {
    if (LATE_DP)
      wgmma_wait<0>(s);
    else
      wgmma_wait<1>(s);
    hopper_flex_weigh<C>(weights, s, p, first, shown, rows);
    wgmma_fence();
    if (LATE_DP) hopper_backward_scores<C>(dp, v_tile, do_tile);
    hopper_backward_add<C>(dv, weights, do_tile);
    wgmma_wait<1>(dp);
    hopper_score_gradients<C>(dp, s, rows + C::ROW_BYTES);
    hopper_pack<C>(ds, dp);
  }
  sync_warp();
  hopper_release(bar::rows_empty(ring.stage()), thread);
}

/* On a device it is known when the expressions are compiled whether there are READS. */
#ifdef __CUDACC__
#define HOPPER_STEP_FLEX(p, ...) hopper_step_flex<C, C::MODS::READS>(p, __VA_ARGS__)
#else
#define HOPPER_STEP_FLEX(p, ...)                                                                             \
  hopper_has_reads(p.forward.flex) ? hopper_step_flex<C, true>(p, __VA_ARGS__)                               \
                                   : hopper_step_flex<C, false>(p, __VA_ARGS__)
#endif

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

/* dK and dV of a warp's keys. */
template <class C>
FA_DEVICE void hopper_store_gradients(const fa_hopper_backward_params &p, const float (&dk)[C::D / 8][4],
                                      const float (&dv)[C::D / 8][4], int key_block, int group, int thread) {
  const fa_flash_params &f = p.b.forward;
  const hopper_keys t = hopper_load_keys<C>(p.b, key_block);
  const int first = 64 * group + thread / 32 * 16, lane = thread % 32;
  const uint32_t k_tile = shared_base() + C::K_AT, v_tile = shared_base() + C::V_AT;
  const float factor = C::DROPOUT ? f.dropout_scale : 1.0f;
  if constexpr (C::VARLEN) {
    if (t.key0 + first + 16 > t.seq.len_k) {
      hopper_store_gradient_rows<C>(p.b.dk, p.b.dk_stride, f.head_dim, dk, p.b.scale, k_tile, t, first, lane);
      hopper_store_gradient_rows<C>(p.b.dv, p.b.dv_stride, f.head_dim_v, dv, factor, v_tile, t, first, lane);
      return;
    }
  }
  hopper_store_gradient<C>(&p.dk, dk, p.b.scale, k_tile, t, first, lane);
  hopper_store_gradient<C>(&p.dv, dv, factor, v_tile, t, first, lane);
}

/* All of one key block. */
template <class C>
FA_DEVICE void hopper_backward_keys(const fa_hopper_backward_params &p, hopper_ring<C::STAGES> &ring,
                                    int key_block, int group, int thread) {
  const fa_flash_params &f = p.b.forward;
  float dk[C::D / 8][4] = {}, dv[C::D / 8][4] = {};
  FA_NO_UNROLL
  for (int n = 0; n < f.heads_per_kv; ++n) {
    const int head = static_cast<int>(blockIdx.y) * f.heads_per_kv + n;
    const auto tiles = hopper_row_tiles<C>(f, hopper_load_keys<C>(p.b, opaque(key_block)), head);
    FA_NO_UNROLL
    for (int i = tiles.begin(); i < tiles.end(); ++i) {
      const hopper_step at = {head, C::FLEX ? 0 : i * C::BM, 0}; /* flex: the tile comes with its rows */
      if (C::DQ_FIRST == C::DQ_SECOND || group == 0)
        hopper_backward_step<C, C::DQ_FIRST>(p.b, dk, dv, ring, opaque(key_block), at, group, opaque(thread));
      else
        hopper_backward_step<C, C::DQ_SECOND>(p.b, dk, dv, ring, opaque(key_block), at, group,
                                              opaque(thread));
      ring.next();
    }
  }
  named_sync<256>(1);                                                     /* nobody reads K any more */
  hopper_store_gradients<C>(p, dk, dv, key_block, group, opaque(thread)); /* addresses are worked out there */
}

template <class C>
FA_DEVICE void hopper_backward_consume(const fa_hopper_backward_params &p, int group, int thread) {
  typedef hopper_backward_more<C> bar;
  hopper_ring<C::STAGES> ring;
  FA_NO_UNROLL
  for (hopper_key_blocks<C> keys; keys.is_there(p.b.forward); ++keys.n) {
    mbarrier_wait(bar::keys(), keys.n % 2);
    if constexpr (C::VARLEN) {
      const hopper_keys t = hopper_load_keys<C>(p.b, keys.block());
      const int left = t.seq.len_k - t.key0;
      if (left < C::BN)
        hopper_clear_rows<C, C::KV_PANEL>(shared_base() + C::K_AT, shared_base() + C::V_AT, left,
                                          128 * group + thread);
    }
    hopper_backward_keys<C>(p, ring, keys.block(), group, thread);
    if (thread % 32 == 0) {
      tma_store_commit();
      tma_store_wait_read<0>();
    }
    sync_warp(); /* no lane still is with this key block */
    hopper_release(bar::keys_empty(), thread);
  }
}

/* Grid: x over key blocks of the longest entry or, deterministic, over dQ accumulators; y over KV heads, z
 * over batch entries. */
template <class C> FA_DEVICE void hopper_backward(const fa_hopper_backward_params &p) {
  const int thread = static_cast<int>(threadIdx.x), group = thread / 128, warp = thread / 32;
  if (thread == 0) {
    hopper_backward_more<C>::init();
    hopper_backward_init<C>();
  }
  sync_block();
  if (group == 0) {
    registers_down<C::PRODUCER_REGISTERS>();
    if (thread == 0) hopper_backward_load<C>(p);
    if (warp == 1) hopper_backward_load_rows<C>(p.b, thread % 32);
    if constexpr (C::DROPOUT) {
      if (warp >= 4 - HOPPER_DROP_WARPS) hopper_backward_drop<C>(p.b, thread);
    }
  } else {
    registers_up<C::CONSUMER_REGISTERS>();
    hopper_backward_consume<C>(p, group - 1, thread % 128);
  }
}

} // namespace fa

#endif
