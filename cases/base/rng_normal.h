/* Private to rng.c, the row loops, and fills on a device: keys, words and normal numbers of an index. */
#ifndef FA_CASES_BASE_RNG_NORMAL_H
#define FA_CASES_BASE_RNG_NORMAL_H

#include "cases/base/both.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define FA_RNG_GOLDEN 0x9e3779b97f4a7c15u

FA_BOTH uint64_t fa_rng_mix(uint64_t z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

FA_BOTH uint64_t fa_rng_mix_key(uint64_t seed, uint64_t stream) {
  return fa_rng_mix((fa_rng_mix(seed + FA_RNG_GOLDEN) ^ stream) + FA_RNG_GOLDEN);
}

FA_BOTH uint64_t fa_rng_draw_u64(uint64_t key, uint64_t index) {
  return fa_rng_mix((key ^ index) + FA_RNG_GOLDEN);
}

/* 52.5 random bits: exact in a double, symmetric about 1/2, never 0 or 1. */
FA_BOTH double fa_rng_to_uniform(uint64_t u) {
  return ((double)(u >> 12) + 0.5) * 0x1p-52;
}

FA_BOTH uint64_t bits_of(double x) {
  uint64_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

FA_BOTH double from_bits(uint64_t u) {
  double x;
  memcpy(&x, &u, sizeof x);
  return x;
}

/* Two functions accurate to about 2^-50, without tables and without branches on the argument: it is random,
 * so every branch would be mispredicted half of the time, and without branches the loops vectorise. The
 * polynomials use two interleaved Horner chains, also for speed. */

/* log x for x in (0, 1). x = m 2^e with m in [1/sqrt 2, sqrt 2): subtracting the bits of 1/sqrt 2 makes the
 * exponent field round the right way. log m = 2 atanh s, s = (m-1)/(m+1). */
FA_BOTH double natural_log(double x) {
  const uint64_t u = bits_of(x);
  const int64_t exponent = (int64_t)(u - 0x3fe6a09e667f3bcdu) >> 52;
  const double m = from_bits(u - ((uint64_t)exponent << 52));
  const double s = (m - 1) / (m + 1), z = s * s, zz = z * z;
  double even = 1. / 21, odd = 1. / 19;
  even = even * zz + 1. / 17, odd = odd * zz + 1. / 15;
  even = even * zz + 1. / 13, odd = odd * zz + 1. / 11;
  even = even * zz + 1. / 9, odd = odd * zz + 1. / 7;
  even = even * zz + 1. / 5, odd = odd * zz + 1. / 3;
  even = even * zz + 1;
  return (double)exponent * 0.69314718055994531 + 2 * s * (even + z * odd);
}

/* Bitwise select: if_set where mask is all ones, otherwise where it is all zeros. */
FA_BOTH double choose(uint64_t mask, double if_set, double otherwise) {
  return from_bits((bits_of(if_set) & mask) | (bits_of(otherwise) & ~mask));
}

/* cos(2 pi x) for x in (0, 1). After subtracting the nearest quarter turn k/4, at most 1/8 turn remains: a
 * cosine for even k, a sine for odd k, negated for k = 1 and 2. Taylor coefficients 1 / (2k)! of the cosine
 * and 1 / (2k+1)! of the sine. */
FA_BOTH double cos_turns(double x) {
  const int k = (int)(4 * x + 0.5);
  const uint64_t sine = -(uint64_t)(k & 1), negative = (uint64_t)((k + 1) & 2) << 62;
  const double a = 6.2831853071795865 * (x - 0.25 * k), z = -a * a, zz = z * z;
  double even = choose(sine, 1. / 1307674368000, 1. / 87178291200);
  double odd = choose(sine, 1. / 355687428096000, 1. / 20922789888000);
  even = even * zz + choose(sine, 1. / 39916800, 1. / 3628800);
  odd = odd * zz + choose(sine, 1. / 6227020800, 1. / 479001600);
  even = even * zz + choose(sine, 1. / 5040, 1. / 720);
  odd = odd * zz + choose(sine, 1. / 362880, 1. / 40320);
  even = even * zz + choose(sine, 1. / 6, 1. / 2);
  odd = odd * zz + choose(sine, 1. / 120, 1. / 24);
  return from_bits(bits_of(choose(sine, a, 1) * (1 + z * (even + z * odd))) ^ negative);
}

FA_BOTH double fa_rng_draw_normal(uint64_t key, uint64_t index) {
  const uint64_t u = fa_rng_draw_u64(key, index);
  return sqrt(-2 * natural_log(fa_rng_to_uniform(u))) *
         cos_turns(fa_rng_to_uniform(fa_rng_mix(u + FA_RNG_GOLDEN)));
}

#endif
