/* V of e4m3, transposed on its way to the GEMM: warpgroup MMAs of bytes want both operands with the depth contiguous, which
 * for P V is the keys. Three warps of the producer read the tiles that are loaded, keys as rows, and write those that the
 * consumers multiply by, columns of V as rows of 128 keys.
 *
 * The keys of a row are in the order in which a thread has P's: accumulators have keys 2 j and 2 j + 1 of eight in a
 * lane, an A fragment of bytes has four neighbours. So of 16 keys, A0..7 and B0..7, the order is A0 A1 B0 B1 A2 A3 B2 B3
 * ..., and ldmatrix, which hands out pairs of columns of two keys, makes it by itself: four bytes of two registers are one
 * column's. */
#ifndef FA_GPU_KERNELS_HOPPER_EIGHT_TRANSPOSE_CUH
#define FA_GPU_KERNELS_HOPPER_EIGHT_TRANSPOSE_CUH

#include "gpu/kernels/hopper/forward_mainloop.cuh"

namespace fa {

/* Which bytes of a word of four keys exist: those below limit of keys 0, 1, 8 and 9. */
FA_DEVICE uint32_t hopper_kept_bytes(int limit) {
  return (limit > 0 ? 0xffu : 0) | (limit > 1 ? 0xff00u : 0) | (limit > 8 ? 0xff0000u : 0) |
         (limit > 9 ? 0xff000000u : 0);
}

/* 32 keys by 32 columns, numbers `keys` and `columns`, of the tile at `from`. Lanes of the upper half have the odd column
 * first: so the rows that a matrix is stored to lie in different banks. n_keys: from there on come zeros, for 0 times what
 * the tile holds could be NaN. Both loads are in flight at once: one after the other
 * they hold up the GEMMs. Four at once would be faster by 1 to 5 %, had the producer two registers more. */
template <class C>
FA_DEVICE void hopper_transpose_unit(uint32_t from, uint32_t to, int keys, int columns, int n_keys,
                                     int lane) {
  const int row = lane % 8, odd = lane / 8 % 2, chunk = 2 * columns + lane / 16;
  const uint32_t read =
      from + chunk / 8 * C::KV_PANEL + (32 * keys + 8 * odd + row) * 128 + ((chunk % 8 ^ row) << 4);
  const int column = 16 * chunk + 2 * row + ((row >= 4) ^ odd);
  const uint32_t write = to + column * 128 + ((column % 8 ^ 2 * keys) << 4);
  const uint32_t first = lane < 16 ? 0x6420 : 0x7531, second = first ^ 0x1111;
  uint32_t pairs[2][4];
  FA_UNROLL
  for (int i = 0; i < 2; ++i) ldmatrix_x4_trans(pairs[i], read + i * 16 * 128);
  FA_UNROLL
  for (int i = 0; i < 2; ++i) {
    uint32_t quads[4] = {
        pick_bytes(pairs[i][0], pairs[i][1], first), pick_bytes(pairs[i][0], pairs[i][1], second),
        pick_bytes(pairs[i][2], pairs[i][3], first), pick_bytes(pairs[i][2], pairs[i][3], second)};
    if (C::VARLEN && n_keys < C::BN) {
      const uint32_t kept = hopper_kept_bytes(n_keys - 32 * keys - 16 * i - lane % 4 * 2);
      FA_UNROLL
      for (int n = 0; n < 4; ++n) quads[n] &= kept;
    }
    stmatrix_x4(write ^ i << 4, quads);
  }
}

/* One of the warps that do it, for all work tiles. */
template <class C> FA_DEVICE void hopper_transpose_values(const fa_attention_params &p, int warp, int lane) {
  typedef hopper_barriers<C> bar;
  constexpr int OF_KEYS = C::BN / 32, UNITS = OF_KEYS * (C::D / 32);
  pipeline_state<C::STAGES> v;
  FA_NO_UNROLL
  for (pipeline_state<2> tile_pipe;; tile_pipe.next()) {
    mbarrier_wait(bar::tile_full(tile_pipe.stage()), tile_pipe.phase());
    const work_tile work = read_work_tile<C>(p, tile_pipe);
    sync_warp();
    hopper_release(bar::tile_empty(tile_pipe.stage()), lane);
    if (work.row0 < 0) break;
    FA_NO_UNROLL
    for (int i = work.blocks.end - 1; i >= work.blocks.begin; --i, v.next()) {
      const int stage = v.stage();
      const bool ragged = i == work.blocks.end - 1 && hopper_is_ragged<C>(p, work, work.blocks.end);
      mbarrier_wait(bar::loaded_v_full(stage), v.phase());
      mbarrier_wait(bar::v_empty(stage), v.phase() ^ 1);
      FA_NO_UNROLL
      for (int u = warp; u < UNITS; u += C::TRANSPOSERS)
        hopper_transpose_unit<C>(shared_base() + C::LOADED_V_AT + stage * C::KV_BYTES,
                                 shared_base() + C::V_AT + stage * C::V_BYTES, u % OF_KEYS, u / OF_KEYS,
                                 ragged ? work.seq.len_k - i * C::BN : C::BN, lane);
      fence_async();
      sync_warp();
      hopper_release(bar::v_full(stage), lane);
      hopper_release(bar::loaded_v_empty(stage), lane);
    }
  }
}

} // namespace fa

#endif
