/* Private to dtype.c, the row loops, and fills on a device: a double to a 16-bit type in one rounding, without branches so that
 * loops vectorise. */
#ifndef FA_CASES_BASE_DTYPE_NARROW_H
#define FA_CASES_BASE_DTYPE_NARROW_H

#include "cases/base/both.h"

#include <stdint.h>
#include <string.h>

FA_BOTH uint64_t fa_narrow_f64(double x, int exponent_bits, int fraction_bits) {
  const int64_t bias = (1 << (exponent_bits - 1)) - 1, drop = 52 - fraction_bits;
  const uint64_t infinity = ((1ull << exponent_bits) - 1) << fraction_bits;
  uint64_t u, sum;
  memcpy(&u, &x, sizeof u);
  const uint64_t sign = u >> 48 & 0x8000u, magnitude = u & 0x7fffffffffffffffu,
                 fraction = u & 0xfffffffffffffu;
  const int64_t exponent =
      (int64_t)(magnitude >> 52) - 1023; /* a double subnormal is far below t's range and becomes 0 */
  const int64_t normal = exponent < 1 - bias ? 1 - bias : exponent; /* subnormals share the least exponent */
  /* A sum with 2^(normal + drop) has its last bit where t has, so the addition rounds to nearest, ties to even. What
   * it adds to the bits of that power is the significand in units of t's last place. (Shifts would do, but not in
   * loops that compilers vectorise.) */
  const uint64_t power = (uint64_t)(normal + drop + 1023) << 52;
  double large, size;
  memcpy(&large, &power, sizeof large);
  memcpy(&size, &magnitude, sizeof size);
  size += large;
  memcpy(&sum, &size, sizeof sum);
  const uint64_t rounded = sum - power;
  /* A normal significand holds the implicit one, which is worth one exponent step. A carry out of the fraction moves
   * into the exponent, and from the largest finite value to infinity. */
  const uint64_t base = (uint64_t)(normal + bias - 1) << fraction_bits;
  const uint64_t quiet = infinity | 1ull << (fraction_bits - 1) | fraction >> drop;
  uint64_t y = base + rounded;
  y = exponent > bias ? infinity : y;
  y = magnitude > 0x7ff0000000000000u ? quiet : y;
  return sign | y;
}

#endif
