/* Configuration of a forward kernel for sm_90a, its layout of shared memory, and its barriers. */
#ifndef FA_GPU_KERNELS_HOPPER_FORWARD_CONFIG_CUH
#define FA_GPU_KERNELS_HOPPER_FORWARD_CONFIG_CUH

#include "gpu/kernels/parts/kind.cuh"
#include "gpu/kernels/mods/call.cuh"
#include "gpu/kernels/hopper/common.cuh"
#include "gpu/kernels/params/hopper.h"

namespace fa {

/* On a device there are flex kernels only where a call's expressions are compiled in. */
template <kernel_kind KIND> struct hopper_mods_of { typedef no_mods type; };
#if defined(FA_FLEX_SCORE) || !defined(__CUDACC__)
template <> struct hopper_mods_of<flex> { typedef flex_mods type; };
#endif

template <class T_, int D_, kernel_kind KIND_, int GROUPS_, int BN_, bool APART_, int LAZY_ = 0,
          bool VARLEN_ = true, int STAGES_ = 2>
struct hopper_forward_config : kernel_kind_traits<KIND_> {
  typedef T_ T;
  typedef typename hopper_mods_of<KIND_>::type MODS;
  static constexpr kernel_kind KIND = KIND_;
  static constexpr int D = D_, M_TILES = 1, GROUPS = GROUPS_, BN = BN_, STAGES = STAGES_;
  static constexpr bool APART = APART_, VARLEN = VARLEN_;
  static constexpr bool CACHE = false; /* hopper_cache_config has it */
  static constexpr int LOADERS = 0;    /* warps that read published work tiles to load their tensors */
  static constexpr bool DIRECT = !APART && KIND == plain, IN_Q = !APART && !DIRECT;
  static constexpr int LAZY = LAZY_;
  static constexpr int BM = 64 * GROUPS, THREADS = 128 * (GROUPS + 1);
  /* of the mainloop: warpgroups issue in turns; the first row's exponentials come before O is waited for */
  static constexpr bool TURNS = GROUPS == 3 || (KIND == plain && D == 128), BY_ROW = GROUPS == 2;
  /* groups may skip whole key blocks, and there are registers for the test */
  static constexpr bool SKIPS = KIND == plain && GROUPS == 3 && BM - 64 >= BN;
  static constexpr int PANELS = (D + 63) / 64;
  static constexpr int Q_PANEL = 64 * 128, KV_PANEL = BN * 128; /* bytes */
  static constexpr int Q_BYTES = PANELS * Q_PANEL, KV_BYTES = PANELS * KV_PANEL;
  static constexpr int K_AT = GROUPS * Q_BYTES, V_AT = K_AT + STAGES * KV_BYTES;
  static constexpr int O_AT = APART ? V_AT + STAGES * KV_BYTES : 0;
  static constexpr int BARRIERS_AT = V_AT + STAGES * KV_BYTES + (APART ? GROUPS * Q_BYTES : 0);
  static constexpr int N_BARRIERS = 2 * GROUPS + 4 * STAGES + 4;
  static constexpr int BIAS_AT = 0; /* no bias */
  /* what the producer publishes: two work tiles, and the flex_tile in each stage of K */
  static constexpr int WORK_TILE_BYTES = 32, WORK_TILES_AT = (BARRIERS_AT + 8 * N_BARRIERS + 15) / 16 * 16,
                       FLEX_TILES_AT = WORK_TILES_AT + 2 * WORK_TILE_BYTES;
  static constexpr int SHARED_BYTES = FLEX_TILES_AT + (MODS::ANY ? 4 * STAGES : 0);
  /* of 64 K registers: the equal shares of the launch bounds are moved to where they are needed */
  static constexpr int PRODUCER_REGISTERS = GROUPS == 3 ? 32 : D > 192 || BN > 160 ? 24 : 40;
  static constexpr int CONSUMER_REGISTERS = GROUPS == 3 ? 160 : D > 192 || BN > 160 ? 240 : 232;
  static_assert(GROUPS == 2 || GROUPS == 3, "register shares are given for these");
  static_assert(BN % 32 == 0 || KIND_ != dropout, "dropout decides on 32 keys at once");
  static_assert(D % 16 == 0 && BN % 16 == 0 && KV_PANEL % 1024 == 0, "whole panels, whole swizzle atoms");
  static_assert(SHARED_BYTES <= 232448, "what a block may have");
};

/* full: the data have arrived; empty: all consumers have released the stage. */
template <class C> struct hopper_barriers {
  FA_DEVICE static uint32_t at(int i) { return shared_base() + C::BARRIERS_AT + 8 * i; }
  FA_DEVICE static uint32_t q_full(int group) { return at(group); }
  FA_DEVICE static uint32_t q_empty(int group) { return at(C::GROUPS + group); }
  FA_DEVICE static uint32_t k_full(int stage) { return at(2 * C::GROUPS + stage); }
  FA_DEVICE static uint32_t k_empty(int stage) { return at(2 * C::GROUPS + C::STAGES + stage); }
  FA_DEVICE static uint32_t v_full(int stage) { return at(2 * C::GROUPS + 2 * C::STAGES + stage); }
  FA_DEVICE static uint32_t v_empty(int stage) { return at(2 * C::GROUPS + 3 * C::STAGES + stage); }
  FA_DEVICE static uint32_t tile_full(int stage) { return at(2 * C::GROUPS + 4 * C::STAGES + stage); }
  FA_DEVICE static uint32_t tile_empty(int stage) { return at(2 * C::GROUPS + 4 * C::STAGES + 2 + stage); }
};

template <class C> FA_DEVICE void hopper_init_barriers() {
  typedef hopper_barriers<C> bar;
  FA_NO_UNROLL
  for (int g = 0; g < C::GROUPS; ++g) {
    mbarrier_init(bar::q_full(g), 1);
    mbarrier_init(bar::q_empty(g), 4); /* one lane of each warp */
  }
  FA_NO_UNROLL
  for (int s = 0; s < C::STAGES; ++s) {
    mbarrier_init(bar::k_full(s), 1);
    mbarrier_init(bar::k_empty(s), 4 * C::GROUPS);
    mbarrier_init(bar::v_full(s), 1);
    mbarrier_init(bar::v_empty(s), 4 * C::GROUPS);
  }
  FA_NO_UNROLL
  for (int s = 0; s < 2; ++s) {
    mbarrier_init(bar::tile_full(s), 1);
    mbarrier_init(bar::tile_empty(s), 4 * C::GROUPS + C::LOADERS);
  }
  mbarrier_init_fence();
}

} // namespace fa

#endif
