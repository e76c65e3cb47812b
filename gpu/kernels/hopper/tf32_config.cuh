/* Configuration of the f32 forward kernels for sm_90a, their layout of shared memory, and what barriers there are.
 *
 * GEMMs are the 3xTF32 of gpu/kernels/memeff/tile.cuh by warpgroup MMAs. Those read B only with the depth along a tile's
 * rows, and every float as it lies there. So producers lay K and V out as pairs of tiles, of the big parts and of the small
 * ones, V transposed; they have no copies in flight but what their registers hold. Of Q the big part stays in registers, the
 * small one in shared memory. */
#ifndef FA_GPU_KERNELS_HOPPER_TF32_CONFIG_CUH
#define FA_GPU_KERNELS_HOPPER_TF32_CONFIG_CUH

#include "gpu/kernels/hopper/common.cuh"
#include "gpu/kernels/memeff/forward.cuh"

namespace fa {

/* Tiles of floats: panels of 32 columns, 128 bytes a row. */
template <int D_, int STAGES_> struct hopper_tf32_config {
  typedef f32 T;
  typedef no_mods MODS; /* for what it has of memeff_forward_config */
  static constexpr int D = D_, VC = D, STAGES = STAGES_;
  static constexpr int GROUPS = 2, BM = 64 * GROUPS, BN = 64, CONSUMERS = 128 * GROUPS, PRODUCERS = 128,
                       THREADS = CONSUMERS + PRODUCERS;
  static constexpr int Q_PANEL = BM * 128, K_PANEL = BN * 128, V_PANEL = D * 128;
  static constexpr int Q_BYTES = D / 32 * Q_PANEL, PART_BYTES = BN * D * 4, STAGE_BYTES = 2 * PART_BYTES;
  static constexpr int K_AT = Q_BYTES, V_AT = K_AT + STAGES * STAGE_BYTES,
                       BARRIERS_AT = V_AT + STAGES * STAGE_BYTES;
  static constexpr int SHARED_BYTES = BARRIERS_AT + 8 * 4 * STAGES;
  static constexpr int PRODUCER_REGISTERS = 88,
                       CONSUMER_REGISTERS = 208; /* of the 168 that each is launched with */
  static constexpr int LOADS = 8;                /* of 16 bytes, that a producing thread has in flight */
  static constexpr int BATCH =
      2; /* eights of keys whose weights are split before their products are issued */
  static_assert(D == 64 || D == 128, "the producers' shares of a tile are given for these");
  static_assert(SHARED_BYTES <= 232448, "what a block may have");
  typedef float score_tile[BN / 8][4];
  typedef float output_tile[VC / 8][4];
};

/* full: both parts are there; empty: all consumers have released the stage. */
template <class C> struct hopper_tf32_barriers {
  FA_DEVICE static uint32_t at(int i) { return shared_base() + C::BARRIERS_AT + 8 * i; }
  FA_DEVICE static uint32_t k_full(int stage) { return at(stage); }
  FA_DEVICE static uint32_t k_empty(int stage) { return at(C::STAGES + stage); }
  FA_DEVICE static uint32_t v_full(int stage) { return at(2 * C::STAGES + stage); }
  FA_DEVICE static uint32_t v_empty(int stage) { return at(3 * C::STAGES + stage); }
};

template <class C> FA_DEVICE void hopper_tf32_init_barriers() {
  typedef hopper_tf32_barriers<C> bar;
  FA_NO_UNROLL
  for (int s = 0; s < C::STAGES; ++s) {
    mbarrier_init(bar::k_full(s), C::PRODUCERS);
    mbarrier_init(bar::k_empty(s), C::CONSUMERS / 32); /* one lane of each warp */
    mbarrier_init(bar::v_full(s), C::PRODUCERS);
    mbarrier_init(bar::v_empty(s), C::CONSUMERS / 32);
  }
  mbarrier_init_fence();
}

template <class C> FA_DEVICE uint32_t hopper_tf32_k(int stage) {
  return shared_base() + C::K_AT + stage * C::STAGE_BYTES;
}
template <class C> FA_DEVICE uint32_t hopper_tf32_v(int stage) {
  return shared_base() + C::V_AT + stage * C::STAGE_BYTES;
}

} // namespace fa

#endif
