/* Configuration of a forward kernel for sm_90a, its layout of shared memory, and its barriers. */
#ifndef FA_GPU_KERNELS_HOPPER_FORWARD_CONFIG_CUH
#define FA_GPU_KERNELS_HOPPER_FORWARD_CONFIG_CUH

#include "gpu/kernels/hopper/common.cuh"
#include "gpu/kernels/mods/call.cuh"
#include "gpu/kernels/params/hopper.h"
#include "gpu/kernels/parts/kind.cuh"

namespace fa {

/* On a device there are flex kernels only where a call's expressions are compiled in. */
template <kernel_kind KIND> struct hopper_mods_of { typedef no_mods type; };
#if defined(FA_FLEX_SCORE) || !defined(__CUDACC__)
template <> struct hopper_mods_of<flex> { typedef flex_mods type; };
#endif

/* What a kernel of that kind takes. */
template <kernel_kind KIND> struct hopper_forward_params { typedef fa_hopper_params type; };
template <> struct hopper_forward_params<biased> { typedef fa_hopper_biased_params type; };

template <class T, bool EIGHT> struct hopper_element { typedef T type; };
template <class T> struct hopper_element<T, true> { typedef e4m3 type; };

template <class T_, int D_, kernel_kind KIND_, int GROUPS_, int BN_, bool APART_, int LAZY_ = 0,
          bool VARLEN_ = true, int STAGES_ = 2, bool EIGHT_ = false, bool AMAX_ = false>
struct hopper_forward_config : kernel_kind_traits<KIND_> {
  typedef T_ T; /* of O, and without EIGHT of Q, K and V */
  typedef typename hopper_mods_of<KIND_>::type MODS;
  static constexpr kernel_kind KIND = KIND_;
  static constexpr int D = D_, M_TILES = 1, GROUPS = GROUPS_, BN = BN_, STAGES = STAGES_;
  static constexpr bool APART = APART_, VARLEN = VARLEN_;
  static constexpr bool CACHE = false; /* hopper_cache_config has it */
  static constexpr bool AMAX = AMAX_;  /* the largest P and O of the call are outputs */
  /* Q, K and V are e4m3, and a warpgroup multiplies by V transposed: three warps make that of what is loaded */
  static constexpr bool EIGHT = EIGHT_;
  typedef typename hopper_element<T_, EIGHT_>::type ELEMENT;
  static constexpr int TRANSPOSERS = EIGHT ? 3 : 0;
  static constexpr bool OVERLAPS =
      D == 64 || (D == 128 && KIND == plain); /* of EIGHT: others have no registers for it */
  static constexpr bool BIAS = kernel_kind_traits<KIND_>::BIAS;
  static constexpr bool DIRECT = EIGHT || (!APART && (KIND == plain || BIAS)), IN_Q = !APART && !DIRECT;
  static constexpr int LAZY = LAZY_;
  static constexpr int BM = 64 * GROUPS, THREADS = 128 * (GROUPS + 1);
  /* of the mainloop: warpgroups issue in turns; the first row's exponentials come before O is waited for */
  static constexpr bool TURNS = GROUPS == 3 || KIND == flex || (KIND == plain && D == 128), BY_ROW = GROUPS == 2;
  /* groups may skip whole key blocks, and there are registers for the test */
  static constexpr bool SKIPS = KIND == plain && GROUPS == 3 && BM - 64 >= BN;
  static constexpr int LOADERS = TRANSPOSERS; /* warps of the producer that read published work tiles */
  static constexpr int PANEL_COLUMNS = EIGHT ? 128 : 64, PANELS = (D + PANEL_COLUMNS - 1) / PANEL_COLUMNS;
  static constexpr int Q_PANEL = 64 * 128, KV_PANEL = BN * 128; /* bytes */
  static constexpr int Q_BYTES = PANELS * Q_PANEL, KV_BYTES = PANELS * KV_PANEL;
  static constexpr int K_AT = GROUPS * Q_BYTES, V_AT = K_AT + STAGES * KV_BYTES;
  static constexpr int V_BYTES = EIGHT ? D * BN : KV_BYTES; /* transposed: D rows */
  static constexpr int LOADED_V_AT = EIGHT ? V_AT + STAGES * V_BYTES : V_AT;
  static constexpr int O_AT = APART ? V_AT + STAGES * KV_BYTES : 0;
  /* BIAS: a tile of it in each stage, in panels like the others */
  static constexpr int BIAS_PANEL = BM * 128, BIAS_BYTES = BIAS ? BN / 64 * BIAS_PANEL : 0;
  static constexpr int BIAS_AT = LOADED_V_AT + STAGES * KV_BYTES + (APART ? GROUPS * Q_BYTES : 0);
  static constexpr int BARRIERS_AT = BIAS_AT + STAGES * BIAS_BYTES;
  static constexpr int N_BARRIERS = 2 * GROUPS + (EIGHT || BIAS ? 6 : 4) * STAGES + 4;
  static constexpr float P_LOG2 =
      EIGHT ? 8.0f : 0.0f; /* P is 2^P_LOG2 times the weights: so e4m3 has the small ones too */
  static constexpr float P_UNIT = EIGHT ? 0x1p-8f : 1.0f;
  /* what the producer publishes: two work tiles, and the flex_tile in each stage of K */
  static constexpr int WORK_TILE_BYTES = 32, WORK_TILES_AT = (BARRIERS_AT + 8 * N_BARRIERS + 15) / 16 * 16,
                       FLEX_TILES_AT = WORK_TILES_AT + 2 * WORK_TILE_BYTES;
  static constexpr int SHARED_BYTES = FLEX_TILES_AT + (MODS::ANY ? 4 * STAGES : 0);
  /* of 64 K registers: the equal shares of the launch bounds are moved to where they are needed. A flex producer walks
   * lists, for which 24 are too few. */
  static constexpr bool SMALL_PRODUCER = !EIGHT && KIND != flex && (D > 192 || BN > 160);
  static constexpr int PRODUCER_REGISTERS = GROUPS == 3 ? 32 : SMALL_PRODUCER ? 24 : 40;
  static constexpr int CONSUMER_REGISTERS = GROUPS == 3 ? 160 : SMALL_PRODUCER ? 240 : 232;
  static_assert(GROUPS == 2 || GROUPS == 3, "register shares are given for these");
  static_assert(BN % 32 == 0 || !kernel_kind_traits<KIND_>::DROPOUT, "dropout decides on 32 keys at once");
  static_assert(BN == 128 || !kernel_kind_traits<KIND_>::LINEAR, "a word has a bit to each of a thread's keys of a row");
  static_assert(D % 16 == 0 && BN % 16 == 0 && KV_PANEL % 1024 == 0, "whole panels, whole swizzle atoms");
  static_assert(SHARED_BYTES <= 232448, "what a block may have");
  static_assert(!EIGHT || (BN == 128 && GROUPS == 2), "a row of V transposed is one of a panel");
  static_assert(!BIAS || (!EIGHT && BN % 64 == 0), "whole panels of the bias, and its barriers in the place of others");
};

/* full: the data have arrived; empty: all consumers have released the stage. loaded_v: V as it is loaded, which is V as it
 * is multiplied by, unless that is made of it. */
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
  FA_DEVICE static uint32_t loaded_v_full(int stage) {
    return C::EIGHT ? at(2 * C::GROUPS + 4 * C::STAGES + 4 + stage) : v_full(stage);
  }
  FA_DEVICE static uint32_t loaded_v_empty(int stage) {
    return C::EIGHT ? at(2 * C::GROUPS + 5 * C::STAGES + 4 + stage) : v_empty(stage);
  }
  FA_DEVICE static uint32_t bias_full(int stage) { return at(2 * C::GROUPS + 4 * C::STAGES + 4 + stage); }
  FA_DEVICE static uint32_t bias_empty(int stage) { return at(2 * C::GROUPS + 5 * C::STAGES + 4 + stage); }
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
    mbarrier_init(bar::v_full(s), C::EIGHT ? C::TRANSPOSERS : 1);
    mbarrier_init(bar::v_empty(s), 4 * C::GROUPS);
    if (C::EIGHT) {
      mbarrier_init(bar::loaded_v_full(s), 1);
      mbarrier_init(bar::loaded_v_empty(s), C::TRANSPOSERS);
    }
    if (C::BIAS) {
      mbarrier_init(bar::bias_full(s), 1);
      mbarrier_init(bar::bias_empty(s), 4 * C::GROUPS);
    }
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
