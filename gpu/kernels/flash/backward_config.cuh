/* What a specialisation of the main backward kernel is made of: tiles, the warps' shares, shared memory.
 *
 * The warps stand in a grid over each product, S_TILES or KV_TILES 16-row tiles each: over S and dP
 * [BM x BN] and dQ [BM x D] with S_WARPS warps down, over dK and dV [BN x D] with KV_WARPS. Keys are shared
 * in runs; columns of dQ, dK and dV in groups of 16 dealt round, so that the steps from one of a warp's
 * groups to the next are compatible with every swizzle (tile_right). */
#ifndef FA_GPU_KERNELS_FLASH_BACKWARD_CONFIG_CUH
#define FA_GPU_KERNELS_FLASH_BACKWARD_CONFIG_CUH

#include "gpu/kernels/flash/backward_rows.cuh"
#include "gpu/kernels/parts/kind.cuh"
#include "gpu/kernels/parts/tile.cuh"

namespace fa {

/* Which side of the score matrix a block keeps, and how much shared memory it may take. */
enum flash_backward_shape {
  by_keys,       /* keys; up to 163 KiB: compute capability 8.0, 9.0 */
  by_keys_small, /* keys; up to 99 KiB: 8.6, 8.9 */
  by_queries     /* query rows; up to 99 KiB */
};

/* Tiles that 255 registers and the shared memory hold; what costs registers takes smaller ones. */
template <int D, kernel_kind KIND, flash_backward_shape SHAPE> struct flash_backward_tiles {
  static constexpr bool HUGE = D >= 192; /* rows of which 64 + 64 do not fit twice into 99 KiB */
  static constexpr int THREADS = HUGE ? 128 : FA_BACKWARD_THREADS;
  static constexpr int BM = HUGE ? 32 : 64, BN = HUGE ? 32 : 64;
  static constexpr int S_TILES = 1, KV_TILES = !HUGE && D % 64 == 0 ? 2 : 1;
  static constexpr int STAGES = D <= 96 || D == 192 || D == 224 ? 2 : 1;
  static constexpr int MOST_BYTES = 99 * 1024;
};
template <int D, kernel_kind KIND> struct flash_backward_tiles<D, KIND, by_keys> {
  static constexpr int THREADS = FA_BACKWARD_THREADS;
  static constexpr bool SMALL = KIND == general || KIND == mixed || (KIND == biased && D <= 64) || D >= 160 ||
                                (KIND == dropout && D <= 64);
  static constexpr int BM = SMALL || D >= 96 ? 64 : 128, BN = SMALL && D > 64 ? 64 : 128;
  static constexpr int S_TILES = SMALL || D == 96 ? 1 : 2, KV_TILES = BN == 128 || D % 64 == 0 ? 2 : 1;
  static constexpr int STAGES = D <= 192 ? 2 : 1;
  static constexpr int MOST_BYTES = 163 * 1024;
};

/* One for devices of all kinds. */
template <int D>
struct flash_backward_tiles<D, mixed, by_keys>
    : flash_backward_tiles<D, general, D <= 64 ? by_keys : by_keys_small> {};

/* T: f16 or bf16. D: of the tiles, head_dim up to a multiple of 32. STAGES: buffers of what a block walks
 * over, Q and dO or K and V. */
template <class T_, int D_, kernel_kind KIND_, flash_backward_shape SHAPE>
struct flash_backward_config : kernel_kind_traits<KIND_>, flash_backward_tiles<D_, KIND_, SHAPE> {
  typedef flash_backward_tiles<D_, KIND_, SHAPE> tiles;
  typedef T_ T;
  static constexpr kernel_kind KIND = KIND_;
  static constexpr bool BY_QUERIES = SHAPE == by_queries;
  static constexpr int D = D_, WARPS = tiles::THREADS / 32;
  static constexpr int UNROLL = D <= 128 ? 2 : 1; /* no further: ptxas would fetch ahead until it spills */
  /* Two blocks fit onto a processor with 128 registers: where ptxas would spill for that, it is told that one
   * is enough (0: it decides). */
  static constexpr int MIN_BLOCKS = BY_QUERIES && KIND_ != plain && (D == 96 || D == 128) ? 1 : 0;
  static constexpr int BM = tiles::BM, BN = tiles::BN, STAGES = tiles::STAGES;
  static constexpr int S_WARPS = BM / (16 * tiles::S_TILES), KV_WARPS = BN / (16 * tiles::KV_TILES);
  static constexpr int S_COL_WARPS = WARPS / S_WARPS, KV_COL_WARPS = WARPS / KV_WARPS;
  static constexpr int S_COLS = BN / S_COL_WARPS;            /* keys of a warp in S */
  static constexpr int DQ_GROUPS = D / (16 * S_COL_WARPS);   /* 16-column groups of a warp in dQ */
  static constexpr int DKV_GROUPS = D / (16 * KV_COL_WARPS); /* and in dK, dV */
  static constexpr int KV_BYTES = BN * D * 2, Q_BYTES = BM * D * 2, P_BYTES = BM * BN * 2;
  static constexpr int KV_STAGES = BY_QUERIES ? STAGES : 1, Q_STAGES = BY_QUERIES ? 1 : STAGES;
  static constexpr int K_AT = 0, V_AT = KV_STAGES * KV_BYTES, Q_AT = 2 * V_AT;
  static constexpr int DO_AT = Q_AT + Q_STAGES * Q_BYTES, P_AT = DO_AT + Q_STAGES * Q_BYTES;
  static constexpr int DS_AT = P_AT + P_BYTES;
  static constexpr int ROWS_BYTES = 2 * BM * 4, ROWS_AT = DS_AT + P_BYTES; /* LSE and delta */
  static constexpr int SHARED_BYTES = ROWS_AT + Q_STAGES * ROWS_BYTES;
  static_assert(SHARED_BYTES <= tiles::MOST_BYTES, "what devices of its kind have");
  static_assert(S_WARPS * S_COL_WARPS == WARPS && KV_WARPS * KV_COL_WARPS == WARPS, "all warps work");
  static_assert(DQ_GROUPS * S_COL_WARPS * 16 == D && DKV_GROUPS * KV_COL_WARPS * 16 == D, "on all columns");
  static_assert(S_COLS % 32 == 0 || S_COLS == 16, "dropout decides on 32 keys at once");
  static_assert(!kernel_kind_traits<KIND_>::BIAS || !BY_QUERIES, "who reads a bias has its tile to himself");
  static_assert(FA_DBIAS_PADDED % BM == 0 && FA_DBIAS_PADDED % BN == 0,
                "sums of dbias have whole tiles");
  static_assert(fa_backward_row_block(D) % BM == 0, "tiles do not straddle entries");
  static_assert(fa_backward_row_block(D) % BN == 0 || !BY_QUERIES, "nor do those of dK and dV");
  typedef float score_tile[tiles::S_TILES][S_COLS / 8][4];
  typedef float dq_tile[tiles::S_TILES][DQ_GROUPS * 2][4];
  typedef float dkv_tile[tiles::KV_TILES][DKV_GROUPS * 2][4];
  /* Where the buffers of one step begin. */
  FA_DEVICE static int k_at(int buffer) { return K_AT + (BY_QUERIES ? buffer * KV_BYTES : 0); }
  FA_DEVICE static int q_at(int buffer) { return Q_AT + (BY_QUERIES ? 0 : buffer * Q_BYTES); }
  FA_DEVICE static int rows_at(int buffer) { return ROWS_AT + (BY_QUERIES ? 0 : buffer * ROWS_BYTES); }
};

/* Aligned rows, or so they are this time. */
template <class C> FA_DEVICE bool rows_are_aligned_too(const fa_backward_params &p) {
  return C::ALIGNED || p.forward.aligned;
}

} // namespace fa

#endif
