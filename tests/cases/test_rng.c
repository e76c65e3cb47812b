/* Known answers, agreement of the normal draws with libm, and statistics that a broken mixer fails. */
#include "cases/base/rng.h"
#include "tests/support/check.h"

#include <math.h>
#include <stdint.h>

/* From an independent Python program:
 *   M = 2**64 - 1; G = 0x9e3779b97f4a7c15
 *   def mix(z):
 *     z = ((z ^ (z >> 30)) * 0xbf58476d1ce4e5b9) & M
 *     z = ((z ^ (z >> 27)) * 0x94d049bb133111eb) & M
 *     return z ^ (z >> 31)
 *   def u64(seed, stream, index):
 *     h = mix((seed + G) & M); h = mix(((h ^ stream) + G) & M); return mix(((h ^ index) + G) & M)
 *   uniform = lambda u: ((u >> 12) + 0.5) * 2.0**-52
 *   a, b = uniform(u), uniform(mix((u + G) & M))
 *   normal = sqrt(-2 * log(a)) * cos(2 * pi * b)                                                        */
static const struct {
  uint64_t seed, stream, index, u64;
  double normal;
} known[] = {
    {0x0u, 0x0u, 0x0u, 0x238275bc38fcbe91u, 1.363862200362063},
    {0x1u, 0x2u, 0x3u, 0xd0734750fde362b3u, 0.5771604572669078},
    {0xdeadbeefcafef00du, 0xffffffffffffffffu, 0x8000000000000000u, 0x4f258a5358e43a3bu,
     -0.36681294884369187},
    {0x7u, 0x100000005u, 0xc00000000u, 0xd5e3297f87474559u, 0.23066063671868453},
};

static void test_known(void) {
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
    const uint64_t s = known[i].seed, t = known[i].stream, x = known[i].index;
    CHECK_MSG(fa_rng_u64(s, t, x) == known[i].u64, "%zu: %llx", i, (unsigned long long)fa_rng_u64(s, t, x));
    CHECK_MSG(fabs(fa_rng_normal(s, t, x) - known[i].normal) < 1e-14, "%zu: %.17g", i,
              fa_rng_normal(s, t, x));
    CHECK(fa_rng_uniform(s, t, x) == ((double)(known[i].u64 >> 12) + 0.5) * 0x1p-52);
  }
  fa_rng r = fa_rng_make(1, 2);
  for (uint64_t i = 0; i < 10; ++i) CHECK(fa_rng_next(&r) == fa_rng_u64(1, 2, i));
}

/* The same formula with libm. */
static double libm_normal(uint64_t seed, uint64_t stream, uint64_t index) {
  const uint64_t u = fa_rng_u64(seed, stream, index);
  uint64_t z = u + 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  const double a = ((double)(u >> 12) + 0.5) * 0x1p-52, b = ((double)(z >> 12) + 0.5) * 0x1p-52;
  return sqrt(-2 * log(a)) * cos(2 * 3.14159265358979323846 * b);
}

static void test_normal_accuracy(void) {
  double worst = 0;
  for (uint64_t i = 0; i < 1000000; ++i) {
    const double got = fa_rng_normal(3, 4, i), want = libm_normal(3, 4, i);
    const double err = fabs(got - want);
    if (!(err <= worst)) worst = err;
  }
  CHECK_MSG(worst < 1e-14, "%g", worst);
}

static void test_moments(void) {
  const int n = 1000000;
  double sum[5] = {0}, beyond = 0, u1 = 0, u2 = 0;
  int bins[64] = {0};
  for (int i = 0; i < n; ++i) {
    const double x = fa_rng_normal(5, 6, (uint64_t)i), u = fa_rng_uniform(5, 7, (uint64_t)i);
    double power = 1;
    for (int k = 1; k <= 4; ++k) sum[k] += power *= x;
    beyond += fabs(x) > 3;
    CHECK(u > 0 && u < 1);
    u1 += u;
    u2 += u * u;
    ++bins[(int)(u * 64)];
  }
  /* five standard deviations of each estimate */
  CHECK_MSG(fabs(sum[1] / n) < 5e-3, "%g", sum[1] / n);
  CHECK_MSG(fabs(sum[2] / n - 1) < 7.1e-3, "%g", sum[2] / n);
  CHECK_MSG(fabs(sum[3] / n) < 2e-2, "%g", sum[3] / n);
  CHECK_MSG(fabs(sum[4] / n - 3) < 4.9e-2, "%g", sum[4] / n);
  CHECK_MSG(fabs(beyond / n - 0.0026998) < 2.6e-4, "%g", beyond / n);
  CHECK(fabs(u1 / n - 0.5) < 1.5e-3 && fabs(u2 / n - 1.0 / 3) < 1.5e-3);
  double chi2 = 0;
  for (int b = 0; b < 64; ++b) chi2 += (bins[b] - n / 64.0) * (bins[b] - n / 64.0) / (n / 64.0);
  CHECK_MSG(chi2 < 63 + 5 * sqrt(126), "%g", chi2);
}

/* Neighbouring indices, streams and seeds must be uncorrelated, because they distinguish elements, heads,
 * tensors and cases. */
static void test_independence(void) {
  const int n = 200000;
  double c[5] = {0};
  int flips[64] = {0};
  for (int i = 0; i < n; ++i) {
    const uint64_t k = (uint64_t)i;
    const double x = fa_rng_normal(1, 1, k);
    c[0] += x * fa_rng_normal(1, 1, k + 1);
    c[1] += x * fa_rng_normal(1, 2, k);
    c[2] += x * fa_rng_normal(2, 1, k);
    c[3] += x * fa_rng_normal(1, 1, k + ((uint64_t)1 << 34)); /* the next row of a tensor */
    c[4] += x * fa_rng_normal(1, 1 + ((uint64_t)1 << 32), k); /* the next batch index */
    const uint64_t changed = fa_rng_u64(1, 1, k) ^ fa_rng_u64(1, 1, k ^ (uint64_t)1 << i % 64);
    for (int b = 0; b < 64; ++b) flips[b] += (int)(changed >> b & 1);
  }
  for (int k = 0; k < 5; ++k) CHECK_MSG(fabs(c[k]) < 5 * sqrt(n), "%d: %g", k, c[k]);
  for (int b = 0; b < 64; ++b)
    CHECK_MSG(fabs(flips[b] - n / 2.0) < 5 * sqrt(n / 4.0), "bit %d flips %d of %d times", b, flips[b], n);
}

static void test_ranges(void) {
  fa_rng r = fa_rng_make(9, 9);
  int count[6] = {0}, hits = 0;
  for (int i = 0; i < 60000; ++i) {
    const int64_t x = fa_rng_below(&r, 6);
    REQUIRE(x >= 0 && x < 6);
    ++count[x];
    hits += fa_rng_chance(&r, 0.25);
  }
  for (int i = 0; i < 6; ++i) CHECK_MSG(abs(count[i] - 10000) < 5 * 92, "%d: %d", i, count[i]);
  CHECK_MSG(abs(hits - 15000) < 5 * 107, "%d", hits);
  CHECK(fa_rng_below(&r, 1) == 0 && fa_rng_range(&r, -7, -7) == -7);
  CHECK(!fa_rng_chance(&r, 0) && fa_rng_chance(&r, 1));
  int lo = 0, hi = 0;
  for (int i = 0; i < 1000; ++i) {
    const int64_t x = fa_rng_range(&r, -2, 2), big = fa_rng_range(&r, INT64_MIN / 2, INT64_MAX / 2 - 1);
    REQUIRE(x >= -2 && x <= 2);
    lo += x == -2;
    hi += x == 2;
    CHECK(big >= INT64_MIN / 2 && big < INT64_MAX / 2);
  }
  CHECK(lo > 100 && hi > 100);
  /* 3 * 2^61: with the remainder alone, the lowest third of the range would be twice as likely as the
   * rest. */
  int low = 0;
  for (int i = 0; i < 30000; ++i) low += fa_rng_below(&r, (int64_t)3 << 61) < (int64_t)1 << 61;
  CHECK_MSG(abs(low - 10000) < 5 * 82, "%d", low);
}

int main(void) {
  test_known();
  test_normal_accuracy();
  test_moments();
  test_independence();
  test_ranges();
  return check_done();
}
