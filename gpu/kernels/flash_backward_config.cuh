/* What a specialisation of the main backward kernel is made of: tiles, the warps' shares, shared memory.
 *
 * The eight warps stand in a grid over each product, S_TILES or KV_TILES 16-row tiles each: over S and dP
 * [BM x BN] and dQ [BM x D] with S_WARPS warps down, over dK and dV [BN x D] with KV_WARPS. Keys are shared
 * in runs; columns of dQ, dK and dV in groups of 16 dealt round, so that the steps from one of a warp's
 * groups to the next are compatible with every swizzle (tile_right). */
#ifndef FA_GPU_KERNELS_FLASH_BACKWARD_CONFIG_CUH
#define FA_GPU_KERNELS_FLASH_BACKWARD_CONFIG_CUH

#include "gpu/kernels/flash_backward_rows.cuh"
#include "gpu/kernels/flash_kind.cuh"
#include "gpu/kernels/tile.cuh"

namespace fa {

/* T: f16 or bf16. D: of the tiles, head_dim up to a multiple of 32. Sizes are what 255 registers and 163 KiB
 * of shared memory hold; what costs registers takes smaller tiles. */
template <class T_, int D_, flash_kind KIND> struct flash_backward_config {
  typedef T_ T;
  static constexpr int D = D_, THREADS = FA_FLASH_BACKWARD_THREADS, WARPS = THREADS / 32;
  static constexpr bool ALIGNED = KIND != general, SCORE_MOD = KIND == modified || KIND == general;
  static constexpr bool DROPOUT = KIND == dropout || KIND == general, GENERAL = KIND == general;
  static constexpr bool SMALL = GENERAL || D >= 160 || (DROPOUT && D <= 64);
  static constexpr int UNROLL = D <= 128 ? 2 : 1; /* no further: ptxas would fetch ahead until it spills */
  static constexpr int BM = SMALL || D >= 96 ? 64 : 128, BN = SMALL && D > 64 ? 64 : 128;
  static constexpr int S_TILES = SMALL || D == 96 ? 1 : 2;          /* 16-row tiles of a warp in S, dP, dQ */
  static constexpr int KV_TILES = BN == 128 || D % 64 == 0 ? 2 : 1; /* and in dK, dV */
  static constexpr int STAGES = D <= 192 ? 2 : 1;                   /* buffers of Q and dO */
  static constexpr int S_WARPS = BM / (16 * S_TILES), KV_WARPS = BN / (16 * KV_TILES);
  static constexpr int S_COL_WARPS = WARPS / S_WARPS, KV_COL_WARPS = WARPS / KV_WARPS;
  static constexpr int S_COLS = BN / S_COL_WARPS;            /* keys of a warp in S */
  static constexpr int DQ_GROUPS = D / (16 * S_COL_WARPS);   /* 16-column groups of a warp in dQ */
  static constexpr int DKV_GROUPS = D / (16 * KV_COL_WARPS); /* and in dK, dV */
  static constexpr int KV_BYTES = BN * D * 2, Q_BYTES = BM * D * 2, P_BYTES = BM * BN * 2;
  static constexpr int K_AT = 0, V_AT = KV_BYTES, Q_AT = 2 * KV_BYTES, DO_AT = Q_AT + STAGES * Q_BYTES;
  static constexpr int P_AT = DO_AT + STAGES * Q_BYTES, DS_AT = P_AT + P_BYTES;
  static constexpr int ROWS_BYTES = 2 * BM * 4, ROWS_AT = DS_AT + P_BYTES; /* LSE and delta */
  static constexpr int SHARED_BYTES = ROWS_AT + STAGES * ROWS_BYTES;
  static_assert(SHARED_BYTES <= 163 * 1024, "devices of compute capability 8.0 have no more");
  static_assert(S_WARPS * S_COL_WARPS == WARPS && KV_WARPS * KV_COL_WARPS == WARPS, "all warps work");
  static_assert(DQ_GROUPS * S_COL_WARPS * 16 == D && DKV_GROUPS * KV_COL_WARPS * 16 == D, "on all columns");
  static_assert(S_COLS % 32 == 0, "dropout decides on 32 keys at once");
  static_assert(fa_flash_backward_row_block(D) % BM == 0, "tiles do not straddle entries");
  typedef float score_tile[S_TILES][S_COLS / 8][4];
  typedef float dq_tile[S_TILES][DQ_GROUPS * 2][4];
  typedef float dkv_tile[KV_TILES][DKV_GROUPS * 2][4];
};

/* Aligned rows, or so they are this time. */
template <class C> FA_DEVICE bool rows_are_aligned_too(const fa_flash_backward_params &p) {
  return C::ALIGNED || p.forward.aligned;
}

} // namespace fa

#endif
