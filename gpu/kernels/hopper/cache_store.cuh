/* The epilogue over a KV cache: as forward_store.cuh, where the rows of several heads are packed. */
#ifndef FA_GPU_KERNELS_HOPPER_CACHE_STORE_CUH
#define FA_GPU_KERNELS_HOPPER_CACHE_STORE_CUH

#include "gpu/kernels/hopper/cache_config.cuh"

namespace fa {

/* A row of the tile's heads: which of the sequence, and of which query head. */
struct unpacked_row {
  int row, head;
};
FA_DEVICE unpacked_row hopper_unpack(const work_tile &work, int packed) {
  const int row = packed >> work.pack;
  return unpacked_row{row, work.head + packed - (row << work.pack)};
}

FA_DEVICE uint16_t *hopper_o_row(const fa_attention_params &p, const work_tile &work, int packed) {
  const unpacked_row at = hopper_unpack(work, packed);
  return p.o + work.batch * p.o_stride.batch + (work.seq.q_row + at.row) * p.o_stride.row + at.head * p.o_stride.head;
}
FA_DEVICE float *hopper_lse_row(const fa_attention_params &p, const work_tile &work, int packed) {
  const unpacked_row at = hopper_unpack(work, packed);
  return p.lse + statistics_at(p, p.lse_stride, work.batch, at.head, work.seq.q_row, at.row);
}

/* Stores the warp's rows of O from registers, times the factors of a thread's two rows. */
template <class C>
FA_DEVICE void hopper_store_packed_rows(const fa_attention_params &p, const float (&o)[C::D / 8][4],
                                      const float (&factor)[2], const work_tile &work, int row, int lane) {
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const bool is_row = row + 8 * r < hopper_n_rows<C>(work);
    uint16_t *const to = hopper_o_row(p, work, row + 8 * r) + lane % 4 * 8;
    FA_UNROLL
    for (int i = 0; i < C::D / 32; ++i) {
      uint32_t w[4];
      FA_UNROLL
      for (int n = 0; n < 4; ++n)
        w[n] = pack2(o[4 * i + n][2 * r] * factor[r], o[4 * i + n][2 * r + 1] * factor[r], typename C::T());
      hopper_transpose(w, lane);
      if (is_row && 4 * i + lane % 4 < p.head_dim_v / 8)
        store_global(reinterpret_cast<vec4 *>(to + 32 * i), vec4{w[0], w[1], w[2], w[3]});
    }
  }
}

/* Stores the warp's 16 rows of O through shared memory: all of them by a bulk store, or those that there are. */
template <class C>
FA_DEVICE void hopper_store_packed_tile(const fa_hopper_cache_params &p, const float (&o)[C::D / 8][4],
                                      const float (&factor)[2], const work_tile &work, int group, int warp, int row0,
                                      int lane) {
  const uint32_t tile = shared_base() + C::O_AT + group * C::Q_BYTES + warp * (16 * 128);
  const int rows = hopper_n_rows<C>(work) - row0;
  if (lane == 0) tma_store_wait_read<0>();
  sync_warp();
  FA_UNROLL
  for (int r = 0; r < 2; ++r) hopper_store_row<C::Q_PANEL>(tile, o, factor[r], r, lane, typename C::T());
  fence_async();
  sync_warp();
  if (rows >= 16) {
    if (lane > 0) return;
    FA_UNROLL
    for (int i = 0; i < C::PANELS; ++i)
      tma_store(&p.o, tile + i * C::Q_PANEL, 64 * i, work.head, work.seq.q_row + (row0 >> work.pack),
                work_tile_map_batch(p.f, work));
    tma_store_commit();
    return;
  }
  FA_NO_UNROLL
  for (int i = lane; i < 16 * (C::D / 8); i += 32) {
    const int row = i / (C::D / 8), chunk = i % (C::D / 8);
    if (row >= rows || chunk >= p.f.head_dim_v / 8) continue;
    const uint32_t from = tile + chunk / 8 * C::Q_PANEL + row * 128 + ((chunk % 8 ^ row % 8) << 4);
    store_global(reinterpret_cast<vec4 *>(hopper_o_row(p.f, work, row0 + row) + chunk * 8), load_shared16(from));
  }
}

/* Normalises, and stores the warp's 16 rows of O and LSE. */
template <class C>
FA_DEVICE void hopper_cache_epilogue(const fa_hopper_cache_params &p, const float (&o)[C::D / 8][4],
                                   const row_state (&rows)[2], const work_tile &work, int group, int thread) {
  const int warp = thread / 32, lane = thread % 32, row0 = work.row0 + 64 * group + 16 * warp;
  float factor[2];
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int row = row0 + lane / 4 + 8 * r;
    const finished_row end =
        finish_row(p.f, hopper_unpack(work, row).head, rows[r].max * p.f.scale, quad_sum(rows[r].sum), 1.0f);
    factor[r] = end.factor;
    if (lane % 4 == 0 && row < hopper_n_rows<C>(work)) store_global(hopper_lse_row(p.f, work, row), end.lse);
  }
  if constexpr (C::DIRECT)
    hopper_store_packed_rows<C>(p.f, o, factor, work, row0 + lane / 4, lane);
  else
    hopper_store_packed_tile<C>(p, o, factor, work, group, warp, row0, lane);
}

/* Fully masked rows. */
template <class C>
FA_DEVICE void hopper_store_masked_rows(const fa_attention_params &p, const work_tile &work, int group, int thread) {
  const int row0 = work.row0 + 64 * group, rows = min_int(64, hopper_n_rows<C>(work) - row0), chunks = p.head_dim_v / 8;
  FA_NO_UNROLL
  for (int i = thread; i < rows * chunks; i += 128)
    store_global(reinterpret_cast<vec4 *>(hopper_o_row(p, work, row0 + i / chunks) + i % chunks * 8), vec4{0, 0, 0, 0});
  if (thread < rows)
    store_global(hopper_lse_row(p, work, row0 + thread),
                 lse_without_keys(p, hopper_unpack(work, row0 + thread).head));
}

} // namespace fa

#endif
