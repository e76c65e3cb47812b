/* The epilogue of the forward kernels for sm_90a: a consumer stores O and LSE. */
#ifndef FA_GPU_KERNELS_HOPPER_FORWARD_STORE_CUH
#define FA_GPU_KERNELS_HOPPER_FORWARD_STORE_CUH

#include "gpu/kernels/hopper/forward_softmax.cuh"
#include "gpu/kernels/parts/amax.cuh"
#include "gpu/kernels/parts/sink.cuh"
#include "gpu/kernels/parts/statistics.cuh"

namespace fa {

FA_DEVICE float *hopper_lse(const fa_attention_params &p, const work_tile &work, int row) {
  return p.lse + statistics_at(p, p.lse_stride, work.batch, work.head, work.seq.q_row, row);
}

/* Stores those of a warp's 16 rows that exist, where the next sequence's rows follow in memory. */
template <class C>
FA_DEVICE void hopper_store_ragged_rows(const fa_attention_params &p, uint32_t tile, const work_tile &work,
                                        int row0, int lane) {
  uint16_t *const to = p.o + (work.seq.q_row + row0) * p.o_stride.row + work.head * p.o_stride.head;
  FA_NO_UNROLL
  for (int i = lane; i < 16 * (C::D / 8); i += 32) {
    const int row = i / (C::D / 8), chunk = i % (C::D / 8);
    if (row0 + row >= work.seq.len_q || chunk >= p.head_dim_v / 8) continue;
    const uint32_t from = tile + chunk / 8 * C::Q_PANEL + row * 128 + ((chunk % 8 ^ row % 8) << 4);
    store_global(reinterpret_cast<vec4 *>(to + row * p.o_stride.row + chunk * 8), load_shared16(from));
  }
}

/* Stores the warp's rows of O from registers, times the factors of a thread's two rows. */
template <class C>
FA_DEVICE void hopper_store_o_rows(const fa_attention_params &p, const float (&o)[C::D / 8][4],
                                   const float (&factor)[2], const work_tile &work, int row, int lane) {
  const int64_t first = work.batch * p.o_stride.batch + (work.seq.q_row + row) * p.o_stride.row +
                        work.head * p.o_stride.head + lane % 4 * 8;
  FA_UNROLL
  for (int i = 0; i < C::D / 32; ++i) {
    const bool in_head = 4 * i + lane % 4 < p.head_dim_v / 8;
    FA_UNROLL
    for (int r = 0; r < 2; ++r) {
      uint32_t w[4];
      FA_UNROLL
      for (int n = 0; n < 4; ++n)
        w[n] = pack2(o[4 * i + n][2 * r] * factor[r], o[4 * i + n][2 * r + 1] * factor[r], typename C::T());
      hopper_transpose(w, lane);
      if (in_head && row + 8 * r < work.seq.len_q)
        store_global(reinterpret_cast<vec4 *>(p.o + first + 8 * r * p.o_stride.row + 32 * i),
                     vec4{w[0], w[1], w[2], w[3]});
    }
  }
}

/* Stores the warp's 16 rows of O through shared memory. Waits until the previous bulk store has read it
 * before writing there. */
template <class C>
FA_DEVICE void hopper_store_o_tile(const fa_hopper_params &p, const float (&o)[C::D / 8][4],
                                   const float (&factor)[2], const work_tile &work, int group, int warp,
                                   int row0, int lane) {
  const uint32_t tile = shared_base() + C::O_AT + group * C::Q_BYTES + warp * (16 * 128);
  if (C::APART && lane == 0) tma_store_wait_read<0>();
  sync_warp();
  FA_UNROLL
  for (int r = 0; r < 2; ++r) hopper_store_row<C::Q_PANEL>(tile, o, factor[r], r, lane, typename C::T());
  fence_async();
  sync_warp();
  if (C::VARLEN && p.f.cu_seqlens_q && row0 + 16 > work.seq.len_q) {
    hopper_store_ragged_rows<C>(p.f, tile, work, row0, lane);
  } else if (lane == 0) {
    if (row0 < work.seq.len_q) {
      FA_UNROLL
      for (int i = 0; i < C::PANELS; ++i)
        tma_store(&p.o, tile + i * C::Q_PANEL, 64 * i, work.seq.q_row + row0, work.head,
                  work_tile_map_batch(p.f, work));
    }
    tma_store_commit();
  }
}

/* The P of a row's largest score, whose exponential is 1. */
template <class C>
FA_DEVICE float hopper_largest_p(const fa_attention_params &p, const work_tile &work, const row_state &row,
                                 float scale) {
  return finish_row(p, work.head, row.max * scale, quad_sum(row.sum) * C::P_UNIT, 1.0f).factor;
}

/* Raises the call's largest P and O to those of the warp's rows. factor, largest_p: of a thread's two rows, of which the
 * first is `row`; those that do not exist may hold anything. */
template <class C>
FA_DEVICE void hopper_raise_amax(const fa_kernel_amax &to, const float (&o)[C::D / 8][4],
                                 const float (&factor)[2], const float (&largest_p)[2], int row, int n_rows,
                                 int lane) {
  amax_of_lane most;
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    if (row + 8 * r >= n_rows) continue;
    most.take_p(largest_p[r]);
    FA_UNROLL
    for (int n = 0; n < C::D / 8; ++n) {
      FA_UNROLL
      for (int e = 2 * r; e < 2 * r + 2; ++e) most.take_o(o[n][e] * factor[r]);
    }
  }
  raise_amax(to, most, lane);
}

/* Normalises, and stores the warp's 16 rows of O and LSE. */
template <class C>
FA_DEVICE void hopper_epilogue(const fa_hopper_params &p, const float (&o)[C::D / 8][4],
                               const row_state (&rows)[2], const work_tile &work, int group, int thread) {
  const int warp = thread / 32, lane = thread % 32, row0 = work.row0 + 64 * group + 16 * warp;
  const hopper_descales descale = hopper_load_descales<C>(p.f, work);
  float factor[2], largest_p[2];
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int row = row0 + lane / 4 + 8 * r;
    const float scale = hopper_has_logits<C>(p.f) ? 1.0f : p.f.scale * descale.scores;
    const finished_row end =
        finish_row(p.f, work.head, rows[r].max * scale, quad_sum(rows[r].sum) * C::P_UNIT,
                   C::DROPOUT || C::LINEAR ? p.f.dropout_scale : descale.values * C::P_UNIT);
    factor[r] = end.factor;
    if constexpr (C::AMAX) largest_p[r] = hopper_largest_p<C>(p.f, work, rows[r], scale);
    if (lane % 4 == 0 && row < work.seq.len_q) store_global(hopper_lse(p.f, work, row), end.lse);
  }
  if constexpr (C::AMAX)
    hopper_raise_amax<C>(p.amax, o, factor, largest_p, row0 + lane / 4, work.seq.len_q, lane);
  if constexpr (C::DIRECT)
    hopper_store_o_rows<C>(p.f, o, factor, work, row0 + lane / 4, lane);
  else
    hopper_store_o_tile<C>(p, o, factor, work, group, warp, row0, lane);
}

/* Fully masked rows. */
template <class C>
FA_DEVICE void hopper_store_fully_masked(const fa_attention_params &p, const work_tile &work, int group,
                                         int thread) {
  const int row0 = work.row0 + 64 * group, chunks = p.head_dim_v / 8;
  FA_NO_UNROLL
  for (int i = thread; i < 64 * chunks; i += 128) {
    const int row = row0 + i / chunks;
    if (row >= work.seq.len_q) break;
    uint16_t *const to = p.o + work.batch * p.o_stride.batch + (work.seq.q_row + row) * p.o_stride.row +
                         work.head * p.o_stride.head + i % chunks * 8;
    store_global(reinterpret_cast<vec4 *>(to), vec4{0, 0, 0, 0});
  }
  if (thread < 64 && row0 + thread < work.seq.len_q)
    store_global(hopper_lse(p, work, row0 + thread), lse_without_keys(p, work.head));
}

} // namespace fa

#endif
