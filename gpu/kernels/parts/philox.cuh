/* Philox-4x32 (Salmon et al. 2011), the random numbers of dropout. */
#ifndef FA_GPU_KERNELS_PARTS_PHILOX_CUH
#define FA_GPU_KERNELS_PARTS_PHILOX_CUH

#include "gpu/kernels/machine/prim.cuh"

namespace fa {

static constexpr uint32_t PHILOX_FACTOR_X = 0xD2511F53u, PHILOX_FACTOR_Z = 0xCD9E8D57u;

/* A round, of which a and b are the products of x and z with their factors. */
FA_DEVICE void philox_mix(uint32_t &x, uint32_t &y, uint32_t &z, uint32_t &w, uint64_t a, uint64_t b, uint32_t k0,
                          uint32_t k1) {
  x = static_cast<uint32_t>(b >> 32) ^ y ^ k0;
  z = static_cast<uint32_t>(a >> 32) ^ w ^ k1;
  y = static_cast<uint32_t>(b);
  w = static_cast<uint32_t>(a);
}
FA_DEVICE void philox_round(uint32_t &x, uint32_t &y, uint32_t &z, uint32_t &w, uint32_t k0, uint32_t k1) {
  philox_mix(x, y, z, w, static_cast<uint64_t>(PHILOX_FACTOR_X) * x, static_cast<uint64_t>(PHILOX_FACTOR_Z) * z, k0, k1);
}
/* Added to the key after every round. */
static constexpr uint32_t PHILOX_STEP_0 = 0x9E3779B9u, PHILOX_STEP_1 = 0xBB67AE85u;

/* UNROLLED: of the rounds; each takes registers. */
template <int ROUNDS, int UNROLLED = ROUNDS>
FA_DEVICE void philox(uint32_t (&words)[4], uint64_t seed, uint32_t x, uint32_t y, uint32_t z, uint32_t w) {
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  FA_UNROLL_BY(UNROLLED)
  for (int round = 0; round < ROUNDS; ++round) {
    philox_round(x, y, z, w, k0, k1);
    k0 += PHILOX_STEP_0;
    k1 += PHILOX_STEP_1;
  }
  words[0] = x;
  words[1] = y;
  words[2] = z;
  words[3] = w;
}

} // namespace fa

#endif
