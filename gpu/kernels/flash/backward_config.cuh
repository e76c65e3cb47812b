/* Configuration of the main flash backward kernel: tile sizes, the warps' shares, shared memory.
 *
 * The warps form a grid over the result of each GEMM, with S_TILES or KV_TILES 16-row tiles each: S_WARPS
 * warps down over S, dP [BM x BN] and dQ [BM x D], KV_WARPS over dK and dV [BN x D]. Across, keys are divided
 * into contiguous runs; columns of dQ, dK and dV into groups of 16 dealt round-robin, so that the step from
 * one of a warp's groups to the next works with every swizzle (tile_right). */
#ifndef FA_GPU_KERNELS_FLASH_BACKWARD_CONFIG_CUH
#define FA_GPU_KERNELS_FLASH_BACKWARD_CONFIG_CUH

#include "gpu/kernels/flash/backward_rows.cuh"
#include "gpu/kernels/parts/kind.cuh"
#include "gpu/kernels/parts/tile.cuh"

namespace fa {

/* What a block keeps (keys or query rows), and how much shared memory it may use. */
enum flash_backward_shape {
  by_keys,       /* keys; up to 163 KiB: compute capability 8.0, 9.0 */
  by_keys_small, /* keys; up to 99 KiB: 8.6, 8.9 */
  by_queries     /* query rows; up to 99 KiB */
};

/* Tiles that fit into 255 registers and the shared memory; kinds that cost registers use smaller ones. */
template <int D, kernel_kind KIND, flash_backward_shape SHAPE> struct flash_backward_tiles {
  static constexpr bool HUGE = D >= 192; /* two tiles of 64 + 64 rows would not fit into 99 KiB */
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

/* The same tiles for every device. */
template <int D>
struct flash_backward_tiles<D, mixed, by_keys>
    : flash_backward_tiles<D, general, D <= 64 ? by_keys : by_keys_small> {};

/* T: f16 or bf16. D: of the tiles, head_dim rounded up to a multiple of 32. STAGES: buffers for what a block
 * loops over: Q and dO, or K and V. */
template <class T_, int D_, kernel_kind KIND_, flash_backward_shape SHAPE>
struct flash_backward_config : kernel_kind_traits<KIND_>, flash_backward_tiles<D_, KIND_, SHAPE> {
  typedef flash_backward_tiles<D_, KIND_, SHAPE> tiles;
  typedef T_ T;
  static constexpr kernel_kind KIND = KIND_;
  static constexpr bool BY_QUERIES = SHAPE == by_queries;
  static constexpr int D = D_, WARPS = tiles::THREADS / 32;
  static constexpr int UNROLL = D <= 128 ? 2 : 1; /* no further: ptxas would load ahead until it spills */
  /* With 128 registers two blocks fit on a processor. Where ptxas would spill to reach that, it is told that
   * one block is enough (0: ptxas decides). */
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
  /* Offsets of the buffers of one step. */
  FA_DEVICE static int k_at(int buffer) { return K_AT + (BY_QUERIES ? buffer * KV_BYTES : 0); }
  FA_DEVICE static int q_at(int buffer) { return Q_AT + (BY_QUERIES ? 0 : buffer * Q_BYTES); }
  FA_DEVICE static int rows_at(int buffer) { return ROWS_AT + (BY_QUERIES ? 0 : buffer * ROWS_BYTES); }
};

/* Rows are aligned by the kernel's kind, or in this call. */
template <class C> FA_DEVICE bool rows_are_aligned_too(const fa_backward_params &p) {
  return C::ALIGNED || p.forward.aligned;
}

} // namespace fa

#endif
