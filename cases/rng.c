#include "cases/rng.h"

#include "cases/bits.h"
#include "cases/status.h"

#include <math.h>

#define GOLDEN 0x9e3779b97f4a7c15u

static uint64_t mix(uint64_t z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

/* For one (seed, stream) a bijection of the index: no value comes twice in 2^64 draws. */
uint64_t fa_rng_u64(uint64_t seed, uint64_t stream, uint64_t index) {
  return fa_rng_key_u64(fa_rng_key(seed, stream), index);
}

uint64_t fa_rng_key(uint64_t seed, uint64_t stream) {
  return mix((mix(seed + GOLDEN) ^ stream) + GOLDEN);
}

uint64_t fa_rng_key_u64(uint64_t key, uint64_t index) {
  return mix((key ^ index) + GOLDEN);
}

/* 52 bits and a half: exact in a double, symmetric about 1/2, never 0 or 1. */
static double to_uniform(uint64_t u) {
  return ((double)(u >> 12) + 0.5) * 0x1p-52;
}

double fa_rng_uniform(uint64_t seed, uint64_t stream, uint64_t index) {
  return to_uniform(fa_rng_u64(seed, stream, index));
}

/* Two functions to about 2^-50 each, without branches on their argument: it is random, so every branch would
 * be mispredicted half of the time. Polynomials in two interleaved Horner chains, for the same reason of
 * speed. */

/* log x for x in (0, 1). x = m 2^e with m in [1/sqrt 2, sqrt 2): subtracting the bits of 1/sqrt 2 makes the
 * exponent field round the right way. log m = 2 atanh s, s = (m-1)/(m+1). */
static double natural_log(double x) {
  const uint64_t u = fa_f64_bits(x);
  const int64_t exponent = (int64_t)(u - 0x3fe6a09e667f3bcdu) >> 52;
  const double m = fa_f64_from_bits(u - ((uint64_t)exponent << 52));
  const double s = (m - 1) / (m + 1), z = s * s, zz = z * z;
  double even = 1. / 21, odd = 1. / 19;
  even = even * zz + 1. / 17, odd = odd * zz + 1. / 15;
  even = even * zz + 1. / 13, odd = odd * zz + 1. / 11;
  even = even * zz + 1. / 9, odd = odd * zz + 1. / 7;
  even = even * zz + 1. / 5, odd = odd * zz + 1. / 3;
  even = even * zz + 1;
  return (double)exponent * 0.69314718055994531 + 2 * s * (even + z * odd);
}

/* cos(2 pi x) for x in (0, 1). With the nearest quarter turn k/4 taken off, the rest is at most 1/8 turn: a
 * cosine for even k, a sine for odd k, negative for k = 1 and 2. */
static double cos_turns(double x) {
  static const double taylor[2][8] = {/* 1 / (2k)!, and for the sine 1 / (2k+1)! */
                                      {1. / 2, 1. / 24, 1. / 720, 1. / 40320, 1. / 3628800, 1. / 479001600,
                                       1. / 87178291200, 1. / 20922789888000},
                                      {1. / 6, 1. / 120, 1. / 5040, 1. / 362880, 1. / 39916800,
                                       1. / 6227020800, 1. / 1307674368000, 1. / 355687428096000}};
  static const double sign[5] = {1, -1, -1, 1, 1};
  const int k = (int)(4 * x + 0.5);
  const double a = 6.2831853071795865 * (x - 0.25 * k), z = -a * a, zz = z * z, *t = taylor[k & 1];
  const double first[2] = {1, a};
  const double even = ((t[6] * zz + t[4]) * zz + t[2]) * zz + t[0];
  const double odd = ((t[7] * zz + t[5]) * zz + t[3]) * zz + t[1];
  return sign[k] * first[k & 1] * (1 + z * (even + z * odd));
}

double fa_rng_key_normal(uint64_t key, uint64_t index) {
  const uint64_t u = fa_rng_key_u64(key, index);
  return sqrt(-2 * natural_log(to_uniform(u))) * cos_turns(to_uniform(mix(u + GOLDEN)));
}

double fa_rng_normal(uint64_t seed, uint64_t stream, uint64_t index) {
  return fa_rng_key_normal(fa_rng_key(seed, stream), index);
}

fa_rng fa_rng_make(uint64_t seed, uint64_t stream) {
  return (fa_rng){seed, stream, 0};
}

uint64_t fa_rng_next(fa_rng *r) {
  return fa_rng_u64(r->seed, r->stream, r->next++);
}

int64_t fa_rng_below(fa_rng *r, int64_t n) {
  FA_ASSERT(n >= 1);
  /* Draws past the largest multiple of n are thrown away: they would favour small results. */
  const uint64_t range = (uint64_t)n, excess = (UINT64_MAX % range + 1) % range;
  uint64_t u;
  do u = fa_rng_next(r);
  while (u > UINT64_MAX - excess);
  return (int64_t)(u % range);
}

int64_t fa_rng_range(fa_rng *r, int64_t lo, int64_t hi) {
  FA_ASSERT(lo <= hi);
  const uint64_t span = (uint64_t)hi - (uint64_t)lo;
  FA_ASSERT(span < INT64_MAX);
  return lo + fa_rng_below(r, (int64_t)span + 1);
}

double fa_rng_next_uniform(fa_rng *r) {
  return to_uniform(fa_rng_next(r));
}

int fa_rng_chance(fa_rng *r, double p) {
  return fa_rng_next_uniform(r) < p;
}
