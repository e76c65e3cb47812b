/* Private to dtype.c and the row loops: a double to a 16-bit type in one rounding, without branches so that
 * loops vectorise. */
#ifndef FA_CASES_BASE_DTYPE_NARROW_H
#define FA_CASES_BASE_DTYPE_NARROW_H

#include <stdint.h>
#include <string.h>

static inline uint64_t fa_narrow_f64(double x, int exponent_bits, int fraction_bits) {
  const int64_t bias = (1 << (exponent_bits - 1)) - 1, drop = 52 - fraction_bits;
  const uint64_t infinity = ((1ull << exponent_bits) - 1) << fraction_bits;
  uint64_t u;
  memcpy(&u, &x, sizeof u);
  const uint64_t sign = u >> 48 & 0x8000u, magnitude = u & 0x7fffffffffffffffu,
                 fraction = u & 0xfffffffffffffu;
  const int64_t exponent =
      (int64_t)(magnitude >> 52) - 1023; /* a double subnormal is far below t's range and becomes 0 */
  const int64_t below = exponent < 1 - bias ? 1 - bias - exponent : 0; /* binades below the normal range */
  const uint64_t shift =
      (uint64_t)(drop + below < 54 ? drop + below : 54); /* from 54 on not even half a unit is left */
  /* To nearest, ties to even: add one less than half a unit, or half a unit if the last kept bit is odd. */
  const uint64_t significand = fraction | 1ull << 52, q = significand >> shift, half = (1ull << shift) >> 1;
  const uint64_t rounded = (significand + (half - 1) + (q & 1)) >> shift;
  /* q holds the implicit one, which is worth one exponent step. A carry out of the fraction moves into the
   * exponent, and from the largest finite value to infinity. */
  const uint64_t base = below ? 0 : (uint64_t)(exponent + bias - 1) << fraction_bits;
  const uint64_t quiet = infinity | 1ull << (fraction_bits - 1) | fraction >> drop;
  uint64_t y = base + rounded;
  y = exponent > bias ? infinity : y;
  y = magnitude > 0x7ff0000000000000u ? quiet : y;
  return sign | y;
}

#endif
