/* Configuration of multi-head latent attention over a KV cache for sm_90a, its layout of shared memory, and its
 * barriers. */
#ifndef FA_GPU_KERNELS_HOPPER_LATENT_CONFIG_CUH
#define FA_GPU_KERNELS_HOPPER_LATENT_CONFIG_CUH

#include "gpu/kernels/hopper/common.cuh"
#include "gpu/kernels/params/latent.h"

namespace fa {

/* RANKS: 2: two blocks of rows that see the same keys form a cluster, and each loads half of every tile for both.
 *
 * In shared memory, in panels of 64 columns (128 bytes a row, 128-byte swizzle): STAGES tiles of keys; the last panel
 * of Q, and in rows of 32 bytes (32-byte swizzle) the 16 columns before it; numbers; barriers. Q's other columns go
 * through the last stage into registers: all that the scores' group has beside its 32 accumulators. */
template <class T_, int RANKS_> struct latent_config {
  typedef T_ T;
  static constexpr int D = 576, DV = 512, RANKS = RANKS_, STAGES = 3;
  static constexpr bool GENERAL = true; /* sinks; there are no masks in chunks */
  static constexpr int BM = 64, BN = 64, KEYS = BN, THREADS = 384;
  static constexpr int PANELS = D / 64, PANEL = BN * 128; /* bytes, of K as of Q */
  static constexpr int PARTS = 3, PART_PANELS = PANELS / PARTS; /* of a tile, that arrive one after the other */
  static constexpr int STAGE_BYTES = PANELS * PANEL;
  /* P takes the place of the last panel of its own keys, which V has not: nobody reads that any more. */
  static constexpr int P_IN_STAGE = (PANELS - 1) * PANEL;
  static constexpr int Q_STEPS = 31; /* of 16 columns, in registers */
  static constexpr int Q_AT = (STAGES - 1) * STAGE_BYTES, Q_LAST_AT = STAGES * STAGE_BYTES;
  static constexpr int Q_STEP_AT = Q_LAST_AT + PANEL, Q_STEP_BYTES = BM * 32;
  static constexpr int FACTORS_AT = Q_STEP_AT + Q_STEP_BYTES; /* of each stage's rows */
  static constexpr int END_AT = Q_LAST_AT; /* factors in the end, when nobody reads Q any more */
  static constexpr int NUMBERS_AT = FACTORS_AT + STAGES * BM * 4, N_NUMBERS = 10;
  static constexpr int BARRIERS_AT = NUMBERS_AT + N_NUMBERS * 4;
  static constexpr int N_BARRIERS = (PARTS + 4) * STAGES + 2;
  static constexpr int SHARED_BYTES = BARRIERS_AT + 8 * N_BARRIERS;
  /* Of 64 K registers: the equal shares of the launch bounds are moved to where they are needed. */
  static constexpr int SCORES_REGISTERS = 184, VALUES_REGISTERS = 160;
  static constexpr int V_GROUPS = 2, O_COLUMNS = DV / V_GROUPS;
  static_assert(SCORES_REGISTERS + V_GROUPS * VALUES_REGISTERS <= 3 * 168, "what the launch gives");
  static_assert(DV <= (PANELS - 1) * 64 && BM == BN, "P has a panel, which is no panel of V");
  static_assert(Q_STEPS == (PANELS - 1) * 4 - 1, "one step is in rows of 32 bytes, and then there is the last panel");
  static_assert(SHARED_BYTES <= 232448, "what a block may have");
};

/* Of each stage:
 *   full     the keys have arrived, each part of the columns by itself
 *   issued   the MMAs that read them are all on their way
 *   scored   the warps of the scores' group have read them
 *   p_full   P and its factors are there, and V has zeros where it has no keys
 *   empty    V and P have been read, in all blocks of the cluster
 * and of the block: q_taken, Q has left the last stage in all blocks of the cluster; finished, the last factors are
 * there. */
template <class C> struct latent_barriers {
  FA_DEVICE static uint32_t at(int i) { return shared_base() + C::BARRIERS_AT + 8 * i; }
  FA_DEVICE static uint32_t scored(int stage) { return at(stage); }
  FA_DEVICE static uint32_t p_full(int stage) { return at(C::STAGES + stage); }
  FA_DEVICE static uint32_t empty(int stage) { return at(2 * C::STAGES + stage); }
  FA_DEVICE static uint32_t full(int stage, int part) { return at((3 + part) * C::STAGES + stage); }
  FA_DEVICE static uint32_t issued(int stage) { return at((3 + C::PARTS) * C::STAGES + stage); }
  FA_DEVICE static uint32_t q_taken() { return at((4 + C::PARTS) * C::STAGES); }
  FA_DEVICE static uint32_t finished() { return at((4 + C::PARTS) * C::STAGES + 1); }
};

/* One lane of each warp arrives, but for `full`, and for p_full and finished, where every lane does that has stored
 * two rows' factors. */
template <class C> FA_DEVICE void init_latent_barriers() {
  typedef latent_barriers<C> bar;
  FA_NO_UNROLL
  for (int s = 0; s < C::STAGES; ++s) {
    FA_NO_UNROLL
    for (int part = 0; part < C::PARTS; ++part) mbarrier_init(bar::full(s, part), 1);
    mbarrier_init(bar::issued(s), 4);
    mbarrier_init(bar::scored(s), 4);
    mbarrier_init(bar::p_full(s), C::BM / 2);
    mbarrier_init(bar::empty(s), 4 * C::V_GROUPS * C::RANKS);
  }
  mbarrier_init(bar::q_taken(), 4 * C::RANKS);
  mbarrier_init(bar::finished(), C::BM / 2);
  mbarrier_init_fence();
}

/* To all blocks of the cluster, from one warp. All lanes must have waited before. */
template <class C> FA_DEVICE void release_latent(uint32_t bar, int thread) {
  if (C::RANKS == 2)
    hopper_release_both(bar, thread);
  else
    hopper_release(bar, thread);
}

/* The factor that a row of O is rescaled by before the stage's keys count. */
template <class C> FA_DEVICE uint32_t latent_factor(int stage, int row) {
  return shared_base() + C::FACTORS_AT + (stage * C::BM + row) * 4;
}
/* The one that makes O of its accumulators. */
template <class C> FA_DEVICE uint32_t latent_end_factor(int row) {
  return shared_base() + C::END_AT + row * 4;
}

} // namespace fa

#endif
