/* A custom mask: a bit for every pair of a row and a key (gpu/kernels/params/attention.h). */
#ifndef FA_GPU_KERNELS_PARTS_BITS_CUH
#define FA_GPU_KERNELS_PARTS_BITS_CUH

#include "gpu/kernels/machine/prim.cuh"

namespace fa {

/* Bit n of a sequence, which begins on a byte, is 0; 64 bits, because rows times keys may need them. */
FA_DEVICE bool bit_hides(const uint8_t *bits, int64_t n) {
  return (load_global(bits + n / 8) >> n % 8 & 1) == 0;
}

} // namespace fa

#endif
