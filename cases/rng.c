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
  uint64_t h = mix(seed + GOLDEN);
  h = mix((h ^ stream) + GOLDEN);
  return mix((h ^ index) + GOLDEN);
}

/* 52 bits and a half: exact in a double, symmetric about 1/2, never 0 or 1. */
static double to_uniform(uint64_t u) {
  return ((double)(u >> 12) + 0.5) * 0x1p-52;
}

double fa_rng_uniform(uint64_t seed, uint64_t stream, uint64_t index) {
  return to_uniform(fa_rng_u64(seed, stream, index));
}

/* log x for x in (0, 1), to about 2^-50: log m = 2 atanh((m-1)/(m+1)), m in [1/sqrt2, sqrt2). */
static double natural_log(double x) {
  uint64_t u = fa_f64_bits(x);
  int exponent = (int)(u >> 52) - 1023;
  double m = fa_f64_from_bits((u & 0xfffffffffffffu) | 0x3ff0000000000000u);
  if (m > 1.4142135623730951) m *= 0.5, ++exponent;
  static const double odd[11] = {1,       1. / 3,  1. / 5,  1. / 7,  1. / 9, 1. / 11,
                                 1. / 13, 1. / 15, 1. / 17, 1. / 19, 1. / 21};
  const double s = (m - 1) / (m + 1), z = s * s;
  double sum = 0;
  for (int k = 10; k >= 0; --k) sum = sum * z + odd[k];
  return exponent * 0.69314718055994531 + 2 * s * sum;
}

/* cos(2 pi x) for x in (0, 1), to about 2^-50: fold into [0, 1/8], then Taylor. */
static double cos_turns(double x) {
  x = x > 0.5 ? 1 - x : x;
  const double sign = x > 0.25 ? -1 : 1;
  x = x > 0.25 ? 0.5 - x : x;
  const int swap = x > 0.125; /* cos(a) = sin(pi/2 - a) */
  const double a = 6.2831853071795865 * (swap ? 0.25 - x : x), z = -a * a;
  static const double taylor[2][8] = {/* z^k / (2k)!, and for the sine z^k / (2k+1)! */
                                      {1. / 2, 1. / 24, 1. / 720, 1. / 40320, 1. / 3628800, 1. / 479001600,
                                       1. / 87178291200, 1. / 20922789888000},
                                      {1. / 6, 1. / 120, 1. / 5040, 1. / 362880, 1. / 39916800,
                                       1. / 6227020800, 1. / 1307674368000, 1. / 355687428096000}};
  double sum = 0;
  for (int k = 7; k >= 0; --k) sum = z * (taylor[swap][k] + sum);
  return sign * (1 + sum) * (swap ? a : 1);
}

double fa_rng_normal(uint64_t seed, uint64_t stream, uint64_t index) {
  const uint64_t u = fa_rng_u64(seed, stream, index);
  return sqrt(-2 * natural_log(to_uniform(u))) * cos_turns(to_uniform(mix(u + GOLDEN)));
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
