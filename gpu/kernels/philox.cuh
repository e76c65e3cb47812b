/* Philox-4x32 (Salmon et al. 2011). */
#ifndef FA_GPU_KERNELS_PHILOX_CUH
#define FA_GPU_KERNELS_PHILOX_CUH

#include "gpu/kernels/prim.cuh"

namespace fa {

/* counter: x, y, z, w. */
FA_DEVICE void philox_round(uint32_t (&counter)[4], uint32_t k0, uint32_t k1) {
  const uint64_t a = static_cast<uint64_t>(0xD2511F53u) * counter[0],
                 b = static_cast<uint64_t>(0xCD9E8D57u) * counter[2];
  counter[0] = static_cast<uint32_t>(b >> 32) ^ counter[1] ^ k0;
  counter[2] = static_cast<uint32_t>(a >> 32) ^ counter[3] ^ k1;
  counter[1] = static_cast<uint32_t>(b);
  counter[3] = static_cast<uint32_t>(a);
}
/* Of the key, from one round to the next. */
static constexpr uint32_t PHILOX_STEP_0 = 0x9E3779B9u, PHILOX_STEP_1 = 0xBB67AE85u;

template <int ROUNDS>
FA_DEVICE void philox(uint32_t (&words)[4], uint64_t seed, uint32_t x, uint32_t y, uint32_t z, uint32_t w) {
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  words[0] = x;
  words[1] = y;
  words[2] = z;
  words[3] = w;
  FA_UNROLL
  for (int round = 0; round < ROUNDS; ++round) {
    philox_round(words, k0, k1);
    k0 += PHILOX_STEP_0;
    k1 += PHILOX_STEP_1;
  }
}

} // namespace fa

#endif
