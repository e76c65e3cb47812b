/* Numbers to 8 bits, for every device: to nearest, ties to even; beyond the largest number the largest. NaN is 0x7f, of int8
 * 0. */
#ifndef FA_GPU_KERNELS_PARTS_NARROW_CUH
#define FA_GPU_KERNELS_PARTS_NARROW_CUH

#include "gpu/kernels/machine/prim.cuh"

namespace fa {

/* A float of 8 bits: exponents biased by BIAS, FRACTION bits of fraction, up to the pattern LARGEST. */
template <int BIAS, int FRACTION, uint32_t LARGEST> FA_DEVICE uint8_t narrowed_float(float x) {
  const uint32_t bits = float_bits(x), sign = bits >> 24 & 0x80u, magnitude = bits & 0x7fffffffu;
  constexpr uint32_t LEAST = (128u - BIAS) << 23; /* the smallest normal number's */
  constexpr int SHIFT = 23 - FRACTION;
  uint32_t r;
  if (magnitude > 0x7f800000u) {
    r = 0x7fu;
  } else if (magnitude < LEAST) { /* a sum with 2^23 is rounded to a whole number of the smallest ones */
    const float steps = as_float(magnitude) * as_float((126u + BIAS + FRACTION) << 23);
    r = float_bits(steps + 8388608.0f) & 0xffu;
  } else {
    const uint32_t n = magnitude - ((127u - BIAS) << 23);
    r = (n + (1u << (SHIFT - 1)) - 1u + (n >> SHIFT & 1u)) >> SHIFT;
    r = r > LARGEST ? LARGEST : r;
  }
  return static_cast<uint8_t>(sign | r);
}

FA_DEVICE uint8_t narrowed(float x, e4m3) {
  return narrowed_float<7, 3, 0x7eu>(x);
}
FA_DEVICE uint8_t narrowed(float x, e5m2) {
  return narrowed_float<15, 2, 0x7bu>(x);
}
FA_DEVICE uint8_t narrowed(float x, i8) {
  const float within = x > 127.0f ? 127.0f : x < -128.0f ? -128.0f : x;
  return x != x ? 0 : static_cast<uint8_t>(float_bits(within + 12582912.0f)); /* 1.5 2^23: a whole number's low bits */
}

} // namespace fa

#endif
