/* Configuration of attention over a KV cache with large head dims, or with two of them: tile sizes and shared
 * memory. */
#ifndef FA_GPU_KERNELS_CACHE_LARGE_CONFIG_CUH
#define FA_GPU_KERNELS_CACHE_LARGE_CONFIG_CUH

#include "gpu/kernels/cache/forward_config.cuh"

namespace fa {

/* V_IN_K: V is the first columns of K, which then lies in shared memory once for both. MIXED: its rows are bytes, of numbers
 * of 8 bits and elements (large_mixed.cuh). Everything else is chosen at run time by the parameters.
 *
 * In shared memory: Q, one tile of K and one of V (V_IN_K: two of K, in turn), P, and numbers of rows. */
template <class T_, cache_shape SHAPE, bool V_IN_K_, class STORED = uint16_t> struct cache_large_config {
  typedef T_ T;
  typedef STORED stored;
  static constexpr bool MIXED = sizeof(STORED) == 1;
  static constexpr bool EIGHT = false, FOUR = false;
  static constexpr int D = 576, DV = 512; /* the largest head dims */
  static constexpr bool PAGED = true, GENERAL = true, FEW = SHAPE == few_rows, V_IN_K = V_IN_K_;
  static constexpr int WARPS = FEW ? 4 : 8, THREADS = 32 * WARPS, TEAM = THREADS;
  static constexpr int BM = FEW ? 16 : 64, KEYS = 32, BN = KEYS;

  /* Scores: a warp has 16 rows and some of the keys. */
  static constexpr int ROW_GROUPS = BM / 16, KEY_GROUPS = WARPS / ROW_GROUPS;
  struct scores {
    static constexpr int KEYS = cache_large_config::KEYS / KEY_GROUPS;
    static constexpr bool GENERAL = true;
  };
  static_assert(scores::KEYS % 8 == 0, "a warp's keys are columns of whole fragments");

  /* O: a warp has all rows and every WARPS-th run of 16 columns. */
  static constexpr int RUNS = DV / 16 / WARPS;

  static constexpr int Q_BYTES = BM * D * 2, K_BYTES = KEYS * D * 2, V_BYTES = V_IN_K ? K_BYTES : KEYS * DV * 2,
                       P_BYTES = BM * KEYS * 2;
  static constexpr int K_AT = Q_BYTES, V_AT = K_AT + K_BYTES, P_AT = V_AT + V_BYTES;
  static constexpr int MAXIMA_AT = P_AT + P_BYTES; /* of a row's keys in each key group; in the end sums */
  static constexpr int FACTORS_AT = MAXIMA_AT + KEY_GROUPS * BM * 4; /* that O is rescaled by; in the end maxima */
  static constexpr int SHARED_BYTES = FACTORS_AT + BM * 4;
  static_assert(Q_BYTES % 1024 == 0 && K_BYTES % 1024 == 0, "tiles of V begin at a multiple of a row's size");
  static_assert(SHARED_BYTES <= (FEW ? 99 : 163) * 1024, "few rows: for every device; many: for those of sm_80");

  /* In the epilogue: the rows of O, not normalised, in the place of Q, K and V. */
  static constexpr int ROW_BYTES = (DV + 8) * 4;
  static_assert(BM * ROW_BYTES <= P_AT, "O takes the tiles' place");
};

} // namespace fa

#endif
