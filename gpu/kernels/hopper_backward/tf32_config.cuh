/* Configuration of the f32 backward kernels for sm_90a, their layout of shared memory, and what barriers there are.
 *
 * All products are the 3xTF32 of gpu/kernels/memeff/tile.cuh by warpgroup MMAs, with keys or columns of dQ as their rows:
 *
 *   S^T = K Q^T, dP^T = V dO^T     A is K and V, which stay in shared memory as they are and are split in registers
 *   dV += P^T dO, dK += dS^T Q     A is accumulators; B is dO and Q transposed
 *   dQ^T = K^T dS^T                A is K read the other way; B is dS, from the group's own registers
 *
 * A group has 64 keys, and shares nothing with the other but what the producers lay out: of every step's rows four tiles,
 * Q, dO, dO transposed and Q transposed, each as a pair of big and of small parts. Tiles of floats are panels of 32 columns,
 * 128 bytes a row, swizzled. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_TF32_CONFIG_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_TF32_CONFIG_CUH

#include "gpu/kernels/hopper/tf32_produce.cuh"
#include "gpu/kernels/memeff/backward_single.cuh"

namespace fa {

/* D: of both head dims; BN_: query rows of a step; SLOTS_: tiles of the producers that there is room for. */
template <int D_, int BN_, int SLOTS_> struct hopper_tf32_backward_config {
  typedef f32 T;
  static constexpr int D = D_, VC = D, BN = BN_, SLOTS = SLOTS_;
  static constexpr int GROUPS = 2, KEYS = 64, BM = GROUPS * KEYS, CONSUMERS = 128 * GROUPS, PRODUCERS = 128,
                       THREADS = CONSUMERS + PRODUCERS;
  /* bytes of a panel: of K and V, of Q and dO, of both transposed, of dS */
  static constexpr int KEY_PANEL = KEYS * 128, ROW_PANEL = BN * 128, COL_PANEL = D * 128, DS_PANEL = BN * 128;
  static constexpr int KEY_BYTES = KEYS * D * 4, PART_BYTES = BN * D * 4, SLOT_BYTES = 2 * PART_BYTES,
                       DS_PART = BN * KEYS * 4;
  static constexpr int DS_AT = 2 * GROUPS * KEY_BYTES, SLOTS_AT = DS_AT + 2 * GROUPS * DS_PART,
                       VALUES_AT = SLOTS_AT + SLOTS * SLOT_BYTES;
  /* LSE and delta of so many steps: a step's are written when at most SLOTS tiles before are still to be read */
  static constexpr int VALUES = 4, VALUE_BYTES = 2 * BN * 4, BARRIERS_AT = VALUES_AT + VALUES * VALUE_BYTES;
  static constexpr int SHARED_BYTES = BARRIERS_AT + 8 * 2 * SLOTS;
  static constexpr int BATCHES = D / 64 * (BN / 32); /* that a tile is produced in */
  static constexpr int BATCH =
      D == 64 ? 2 : 1; /* eights of depth whose A is split before their products are issued */
  static constexpr int PRODUCER_REGISTERS = D == 64 ? 104 : 88,
                       CONSUMER_REGISTERS = D == 64 ? 200 : 208; /* of the 168 that each is launched with */
  static_assert(PRODUCER_REGISTERS + GROUPS * CONSUMER_REGISTERS <= 3 * 168, "who wants more waits for ever");
  static_assert(D == 64 || D == 128, "the producers' shares of a tile are given for these");
  static_assert(SLOTS <= 8, "a step's values are kept for four steps");
  static_assert(2 * BN <= PRODUCERS, "a producer fetches one LSE or delta");
  static_assert(SHARED_BYTES <= 232448, "what a block may have");
  typedef float score_tile[BN / 8][4];
  typedef float key_tile[D / 8][4];
  FA_DEVICE static uint32_t k(int group) { return shared_base() + 2 * group * KEY_BYTES; }
  FA_DEVICE static uint32_t v(int group) { return k(group) + KEY_BYTES; }
  FA_DEVICE static uint32_t ds(int group) { return shared_base() + DS_AT + 2 * group * DS_PART; }
  FA_DEVICE static uint32_t slot(int i) { return shared_base() + SLOTS_AT + i * SLOT_BYTES; }
  FA_DEVICE static uint32_t values(unsigned step) {
    return shared_base() + VALUES_AT + step % VALUES * VALUE_BYTES;
  }
  /* full: both parts are there; empty: all consumers have released the slot. */
  FA_DEVICE static uint32_t full(int i) { return shared_base() + BARRIERS_AT + 8 * i; }
  FA_DEVICE static uint32_t empty(int i) { return full(SLOTS + i); }
};

template <class C> FA_DEVICE void hopper_tf32_backward_init_barriers() {
  FA_NO_UNROLL
  for (int i = 0; i < C::SLOTS; ++i) {
    mbarrier_init(C::full(i), C::PRODUCERS);
    mbarrier_init(C::empty(i), C::CONSUMERS / 32); /* one lane of each warp */
  }
  mbarrier_init_fence();
}

/* The steps of a block: query blocks of BN rows, for all heads of the group one after the other. */
struct hopper_tf32_steps {
  block_range blocks;
  int first_head, end_head;
  FA_DEVICE walk first() const { return walk{first_head, blocks.begin}; }
  FA_DEVICE bool has(const walk &at) const { return at.head < end_head; }
};

} // namespace fa

#endif
