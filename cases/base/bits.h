/* Bit casts between floats and integers.
 *
 * The empty asm makes the integer opaque for a moment. Without it gcc 12.2 (-O1 and above) loses the branch
 * in `u = bits(x); if (d == 1) u &= 0xffff0000u; y = from_bits(u);` when both casts are memcpy:
 * tests/cases/test_dtype.c keeps that pattern. */
#ifndef FA_CASES_BASE_BITS_H
#define FA_CASES_BASE_BITS_H

#include <stdint.h>
#include <string.h>

static inline uint32_t fa_f32_bits(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  __asm__("" : "+r"(u));
  return u;
}

static inline float fa_f32_from_bits(uint32_t u) {
  __asm__("" : "+r"(u));
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}

static inline uint64_t fa_f64_bits(double x) {
  uint64_t u;
  memcpy(&u, &x, sizeof u);
  __asm__("" : "+r"(u));
  return u;
}

static inline double fa_f64_from_bits(uint64_t u) {
  __asm__("" : "+r"(u));
  double x;
  memcpy(&x, &u, sizeof x);
  return x;
}

#endif
