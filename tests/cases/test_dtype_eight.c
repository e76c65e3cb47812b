/* Floats of 8 bits, and of 4, against a slow model: every pattern, and numbers on and around every tie between neighbours, beyond
 * the largest too, with either rule for what is there. */
#include "cases/base/dtype.h"
#include "cases/base/rng.h"
#include "cases/tensors/nibbles.h"
#include "tests/support/check.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct model {
  const char *name;
  fa_dtype dtype;
  int exponent_bits, fraction_bits;
  uint8_t largest, nan; /* patterns: the largest number, the first NaN */
  uint8_t lost;         /* what is beyond becomes, unless it saturates */
  double beyond;        /* what would follow the largest number */
  float (*widen)(uint8_t);
  uint8_t (*narrow)(double, fa_overflow);
} model;

static const model models[] = {
    {"e4m3", FA_E4M3, 4, 3, 0x7e, 0x7f, 0x7f, 480, fa_e4m3_to_f32, fa_f64_to_e4m3},
    {"e5m2", FA_E5M2, 5, 2, 0x7b, 0x7d, 0x7c, 65536, fa_e5m2_to_f32, fa_f64_to_e5m2},
};

static double value_of(const model *m, int pattern) {
  const int e = pattern >> m->fraction_bits, f = pattern & ((1 << m->fraction_bits) - 1);
  const int bias = (1 << (m->exponent_bits - 1)) - 1;
  if (e == 0) return ldexp(f, 1 - bias - m->fraction_bits);
  return ldexp((1 << m->fraction_bits) + f, e - bias - m->fraction_bits);
}

/* Every neighbour is asked how near it is; of two that are equally near the even one wins. */
static uint8_t slow_round(const model *m, double x, fa_overflow rule) {
  const double size = fabs(x);
  const uint8_t sign = signbit(x) ? 0x80 : 0;
  if (isnan(x)) return sign | 0x7f;
  int best = 0;
  for (int p = 1; p <= m->largest + 1; ++p) {
    const double value = p <= m->largest ? value_of(m, p) : m->beyond;
    const double to_best = fabs(size - value_of(m, best)), to_this = fabs(size - value);
    if (to_this < to_best || (to_this == to_best && p % 2 == 0)) best = p;
  }
  if (best <= m->largest && size < m->beyond) return sign | (uint8_t)best;
  return sign | (rule == FA_OVERFLOW_SATURATES ? m->largest : m->lost);
}

static void check_rounding(const model *m, double x) {
  for (int sign = -1; sign <= 1; sign += 2)
    for (int rule = 0; rule < 2; ++rule) {
      const uint8_t got = m->narrow(sign * x, (fa_overflow)rule),
                    want = slow_round(m, sign * x, (fa_overflow)rule);
      CHECK_MSG(got == want, "%s %a, rule %d: %02x, must be %02x", m->name, sign * x, rule, got, want);
    }
}

static void test_patterns(const model *m) {
  for (int p = 0; p < 256; ++p) {
    const uint8_t bits = (uint8_t)p, size = bits & 0x7f;
    const float x = m->widen(bits);
    const double loaded = fa_load(m->dtype, &bits);
    if (size >= m->nan) {
      CHECK_MSG(isnan(x) && isnan(loaded), "%s %02x", m->name, p);
      continue;
    }
    CHECK_MSG(!!signbit(x) == p >> 7 && (double)x == loaded, "%s %02x", m->name, p);
    if (size > m->largest) {
      CHECK_MSG(isinf(x), "%s %02x", m->name, p);
      continue;
    }
    CHECK_MSG(fabs(loaded) == value_of(m, size), "%s %02x: %g", m->name, p, loaded);
    uint8_t stored = 0xaa;
    fa_store(m->dtype, &stored, loaded);
    CHECK_MSG(stored == bits && m->narrow(loaded, FA_OVERFLOW_IS_LOST) == bits, "%s %02x", m->name, p);
  }
}

static void test_ties(const model *m) {
  for (int p = 0; p <= m->largest; ++p) {
    const double low = value_of(m, p), high = p < m->largest ? value_of(m, p + 1) : m->beyond;
    const double tie = low + (high - low) / 2;
    const double near[] = {low,
                           tie,
                           nextafter(tie, 0),
                           nextafter(tie, INFINITY),
                           nextafterf((float)tie, 0),
                           nextafterf((float)tie, INFINITY),
                           tie * (1 + 0x1p-40),
                           nextafter(low, INFINITY)};
    for (size_t i = 0; i < sizeof near / sizeof *near; ++i) check_rounding(m, near[i]);
    CHECK_MSG(fa_half_ulp(m->dtype, low) == (high - low) / 2, "%s %02x", m->name, p);
    CHECK_MSG(fa_half_ulp(m->dtype, -nextafter(high, 0)) == (high - low) / 2, "%s %02x", m->name, p);
  }
}

static void test_beyond(const model *m) {
  const double large[] = {m->beyond, m->beyond * 1.25, 2 * m->beyond, 1e30,
                          1e300,     INFINITY,         0x1p-1074,     0x1p-30};
  for (size_t i = 0; i < sizeof large / sizeof *large; ++i) check_rounding(m, large[i]);
  CHECK(m->narrow(NAN, FA_OVERFLOW_SATURATES) << 1 == 0xfe &&
        m->narrow(NAN, FA_OVERFLOW_IS_LOST) << 1 == 0xfe);
  uint8_t stored;
  fa_store(m->dtype, &stored, -INFINITY);
  CHECK(stored == (0x80 | m->largest)); /* elements saturate */
}

static void test_random(const model *m) {
  fa_rng r = fa_rng_make(8, (uint64_t)m->dtype);
  for (int i = 0; i < 200000; ++i) {
    const uint64_t u = fa_rng_next(&r);
    check_rounding(m, ldexp((double)(u >> 12 | 1ull << 52), (int)(u % 40) - 52 - 22));
  }
}

static void test_constants(void) {
  CHECK(fa_dtype_max(FA_E4M3) == 448 && fa_dtype_max(FA_E5M2) == 57344 && fa_dtype_max(FA_I8) == 127);
  CHECK(fa_dtype_min_subnormal(FA_E4M3) == 0x1p-9 && fa_dtype_min_subnormal(FA_E5M2) == 0x1p-16);
  CHECK(fa_dtype_unit_roundoff(FA_E4M3) == 0x1p-4 && fa_dtype_unit_roundoff(FA_E5M2) == 0x1p-3);
  CHECK(fa_dtype_is_float(FA_E4M3) && fa_dtype_is_float(FA_E5M2) && !fa_dtype_is_float(FA_I8));
  CHECK(fa_dtype_size(FA_E4M3) == 1 && fa_dtype_size(FA_E5M2) == 1 && fa_dtype_size(FA_I8) == 1);
  CHECK(fa_f64_to_e4m3(464, FA_OVERFLOW_IS_LOST) == 0x7e); /* a tie with the place of NaN */
}

static void test_int8(void) {
  for (int p = -128; p < 128; ++p) {
    int8_t bits = 0;
    fa_store(FA_I8, &bits, p);
    CHECK(bits == p && fa_load(FA_I8, &bits) == p);
  }
  const double in[] = {127.9, 1e9, -128.5, -1e9, NAN, 2.9, -2.9, INFINITY};
  const int8_t want[] = {127, 127, -128, -128, 0, 2, -2, 127};
  for (int i = 0; i < 8; ++i) {
    int8_t bits = 1;
    fa_store(FA_I8, &bits, in[i]);
    CHECK_MSG(bits == want[i], "%g -> %d", in[i], bits);
  }
}

/* ---- 4 bits ---- */

static const double four[9] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, 8}; /* the last is beyond */

static uint8_t slow_four(double x) {
  const double size = fabs(x);
  int best = 0;
  if (isnan(x)) return 7;
  for (int p = 1; p < 9; ++p) {
    const double to_best = fabs(size - four[best]), to_this = fabs(size - four[p]);
    if (to_this < to_best || (to_this == to_best && p % 2 == 0)) best = p;
  }
  return (uint8_t)((signbit(x) ? 8 : 0) | (best > 7 ? 7 : best));
}

static void check_four(double x) {
  for (int sign = -1; sign <= 1; sign += 2)
    CHECK_MSG(fa_f64_to_e2m1(sign * x) == slow_four(sign * x), "%a: %x", sign * x, fa_f64_to_e2m1(sign * x));
}

static void test_four_bits(void) {
  for (int p = 0; p < 256; ++p) { /* the upper half of a byte does not matter */
    const uint8_t bits = (uint8_t)p;
    const double x = fa_load(FA_E2M1, &bits);
    CHECK(fabs(x) == four[p & 7] && !!signbit(x) == (p >> 3 & 1) && (double)fa_e2m1_to_f32(bits) == x);
    uint8_t stored = 0xaa;
    fa_store(FA_E2M1, &stored, x);
    CHECK_MSG(stored == (p & 15), "%x -> %x", p, stored);
  }
  for (int p = 0; p < 8; ++p) {
    const double low = four[p], high = four[p + 1], tie = (low + high) / 2;
    const double near[] = {
        low, tie, nextafter(tie, 0), nextafter(tie, 9), nextafter(high, 0), tie * (1 + 0x1p-40)};
    for (int i = 0; i < 6; ++i) check_four(near[i]);
    CHECK(fa_half_ulp(FA_E2M1, low) == (high - low) / 2);
    CHECK(fa_half_ulp(FA_E2M1, -nextafter(high, 0)) == (high - low) / 2);
  }
  const double large[] = {7, 8, 100, 1e300, INFINITY, 0x1p-1074, 0x1p-30, NAN};
  for (int i = 0; i < 8; ++i) check_four(large[i]);
  fa_rng r = fa_rng_make(4, 1);
  for (int i = 0; i < 200000; ++i) {
    const uint64_t u = fa_rng_next(&r);
    check_four(ldexp((double)(u >> 12 | 1ull << 52), (int)(u % 12) - 52 - 7));
  }
  CHECK(fa_dtype_max(FA_E2M1) == 6 && fa_dtype_min_subnormal(FA_E2M1) == 0.5);
  CHECK(fa_dtype_unit_roundoff(FA_E2M1) == 0.25 && fa_dtype_is_float(FA_E2M1) && fa_dtype_size(FA_E2M1) == 1);
}

/* Every pair of numbers in a byte, and every scale: each number is where it belongs and the product exact. */
static void test_nibbles(void) {
  for (int scale = 0; scale < 127; ++scale)
    for (int p = 0; p < 256; ++p) {
      char row[8], scales[1] = {(char)scale}, again[8] = {0}, scales_again[1];
      double x[16], by[1] = {fa_e4m3_to_f32((uint8_t)scale)};
      for (int i = 0; i < 8; ++i) row[i] = (char)(i % 2 ? 0x2d : p);
      fa_nibbles_load(row, scales, 16, x);
      CHECK(x[0] == fa_e2m1_to_f32((uint8_t)p) * by[0] && x[1] == fa_e2m1_to_f32((uint8_t)(p >> 4)) * by[0]);
      CHECK(x[2] == -3 * by[0] && x[3] == by[0] && x[12] == x[0] && x[15] == x[3]);
      if (scale == 0) continue;
      fa_nibbles_store(x, by, 16, again, scales_again);
      CHECK(memcmp(row, again, 8) == 0 && scales_again[0] == scales[0]);
    }
}

int main(void) {
  for (size_t i = 0; i < sizeof models / sizeof *models; ++i) {
    test_patterns(&models[i]);
    test_ties(&models[i]);
    test_beyond(&models[i]);
    test_random(&models[i]);
  }
  test_constants();
  test_int8();
  test_four_bits();
  test_nibbles();
  return check_done();
}
