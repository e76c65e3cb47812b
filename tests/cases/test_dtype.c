/* Conversions against an independent, slow model: tables of all values of a format made with ldexp, and
 * rounding by binary search between neighbours. Exhaustive over the 16-bit formats; random and edge values
 * into them. */
#include "cases/base/bits.h"
#include "cases/base/dtype.h"
#include "cases/base/rng.h"
#include "tests/support/check.h"
#include "tests/support/sanitized.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { N_RANDOM = FA_SANITIZED ? 1000000 : 20000000 };

/* ---- the slow model ---- */

/* value[p]: magnitude of the pattern p without its sign; value[n]: what would follow the largest finite
 * one. */
typedef struct model {
  int exponent_bits, fraction_bits;
  uint32_t n;
  double *value;
} model;

static model make_model(int exponent_bits, int fraction_bits) {
  model m = {exponent_bits, fraction_bits, ((1u << exponent_bits) - 1) << fraction_bits, NULL};
  const int bias = (1 << (exponent_bits - 1)) - 1;
  m.value = malloc((m.n + 1) * sizeof *m.value);
  REQUIRE(m.value);
  for (uint32_t p = 0; p <= m.n; ++p) {
    const int e = (int)(p >> fraction_bits), f = (int)(p & ((1u << fraction_bits) - 1));
    m.value[p] = e == 0 ? ldexp(f, 1 - bias - fraction_bits)
                        : ldexp((1 << fraction_bits) + f, e - bias - fraction_bits);
  }
  return m;
}

/* The pattern (with sign above the exponent) nearest to x, ties to even; x not NaN. */
static uint32_t slow_round(const model *m, double x) {
  const uint32_t sign = signbit(x) ? 1u << (m->exponent_bits + m->fraction_bits) : 0;
  const double a = fabs(x);
  if (a >= m->value[m->n]) return sign | m->n;
  int exponent;
  frexp(a, &exponent); /* only to start the search in the right binade */
  exponent += (1 << (m->exponent_bits - 1)) - 2;
  uint32_t lo = 0, hi = 1u << m->fraction_bits; /* value[lo] <= a < value[hi] */
  if (a > 0 && exponent > 0) lo = (uint32_t)exponent << m->fraction_bits, hi += lo;
  while (hi - lo > 1) {
    const uint32_t mid = (lo + hi) / 2;
    if (m->value[mid] <= a)
      lo = mid;
    else
      hi = mid;
  }
  /* Both exact: hi <= 2 a, or lo is 0 and the comparison is not close. */
  const double below = a - m->value[lo], above = m->value[hi] - a;
  return sign | (below < above || (below == above && lo % 2 == 0) ? lo : hi);
}

static model f16, bf16;

static void check_f64(double x) {
  const uint16_t h = fa_f64_to_f16(x), b = fa_f64_to_bf16(x);
  CHECK_MSG(h == slow_round(&f16, x), "f64 %a -> f16 %04x", x, h);
  CHECK_MSG(b == slow_round(&bf16, x), "f64 %a -> bf16 %04x", x, b);
}

static void check_f32(float x) {
  const uint16_t h = fa_f32_to_f16(x), b = fa_f32_to_bf16(x);
  CHECK_MSG(h == slow_round(&f16, x), "f32 %a -> f16 %04x", (double)x, h);
  CHECK_MSG(b == slow_round(&bf16, x), "f32 %a -> bf16 %04x", (double)x, b);
}

/* ---- exhaustive ---- */

typedef struct half_type {
  const model *m;
  fa_dtype dtype;
  float (*widen)(uint16_t);
  uint16_t (*from_f32)(float), (*from_f64)(double);
} half_type;

static void check_pattern(const half_type *t, uint16_t p) {
  const uint16_t magnitude = p & 0x7fff, infinity = (uint16_t)t->m->n;
  const float x = t->widen(p);
  const double loaded = fa_load(t->dtype, &p);
  CHECK_MSG(!!signbit(x) == p >> 15, "%04x", p);
  if (magnitude > infinity) {
    const uint16_t quiet = p | (uint16_t)(1u << (t->m->fraction_bits - 1));
    CHECK_MSG(isnan(x) && isnan(loaded), "%04x", p);
    CHECK_MSG(t->from_f32(x) == quiet && t->from_f64(x) == quiet, "%04x", p);
    return;
  }
  const double want = magnitude == infinity ? (double)INFINITY : t->m->value[magnitude];
  CHECK_MSG(fabs((double)x) == want && fabs(loaded) == want, "%04x", p);
  CHECK_MSG(t->from_f32(x) == p && t->from_f64((double)x) == p, "%04x", p);
  uint16_t stored = 0;
  fa_store(t->dtype, &stored, loaded);
  CHECK_MSG(stored == p, "%04x", p);
}

/* Near the midpoint of each pair of neighbours, where rounding twice (f64 to f32 to 16 bits) goes wrong. */
static void check_midpoints(const half_type *t) {
  int twice_differs = 0;
  for (uint32_t p = 0; p < t->m->n; ++p) {
    const double mid = t->m->value[p] + (t->m->value[p + 1] - t->m->value[p]) / 2;
    const double near[] = {mid,
                           nextafter(mid, 0),
                           nextafter(mid, INFINITY),
                           mid * (1 + 0x1p-40),
                           mid * (1 - 0x1p-40),
                           t->m->value[p] * (1 + 0x1p-50)};
    for (size_t i = 0; i < sizeof near / sizeof *near; ++i) {
      check_f64(near[i]);
      check_f64(-near[i]);
      check_f32((float)near[i]);
      check_f32(nextafterf((float)near[i], 0));
      check_f32(-nextafterf((float)near[i], INFINITY));
      twice_differs += t->from_f32((float)near[i]) != t->from_f64(near[i]);
    }
    const double half = (t->m->value[p + 1] - t->m->value[p]) / 2;
    CHECK_MSG(fa_half_ulp(t->dtype, t->m->value[p]) == half, "pattern %04x", p);
    CHECK_MSG(fa_half_ulp(t->dtype, -nextafter(t->m->value[p + 1], 0)) == half, "pattern %04x", p);
  }
  CHECK_MSG(twice_differs > 1000, "the inputs would not show a double rounding: %d", twice_differs);
}

static void test_exhaustive(void) {
  const half_type types[] = {{&f16, FA_F16, fa_f16_to_f32, fa_f32_to_f16, fa_f64_to_f16},
                             {&bf16, FA_BF16, fa_bf16_to_f32, fa_f32_to_bf16, fa_f64_to_bf16}};
  for (int i = 0; i < 2; ++i) {
    for (uint32_t p = 0; p < 65536; ++p) check_pattern(&types[i], (uint16_t)p);
    check_midpoints(&types[i]);
  }
}

/* ---- edges and random values ---- */

static void test_edges(void) {
  static const double edges[] = {0,          0x1p-24,         0x1p-25,     0x1.000002p-25, 0x1p-26,
                                 0x1.8p-24,  0x1.ffcp-15,     0x1.ffep-15, 0x1p-14,        65504,
                                 65519.996,  65520,           65536,       INFINITY,       0x1p-133,
                                 0x1p-134,   0x1.000002p-134, 0x1p-126,    0x1.fep127,     0x1.fefffep127,
                                 0x1.ffp127, 0x1.fffffep127,  0x1p-149,    0x1p-1074,      1e-300,
                                 1e300,      0x1p-1073};
  for (size_t i = 0; i < sizeof edges / sizeof *edges; ++i)
    for (int sign = -1; sign <= 1; sign += 2) {
      check_f64(sign * edges[i]);
      check_f32((float)(sign * edges[i]));
    }
  CHECK(fa_f32_to_f16(65519.996f) == 0x7bff && fa_f32_to_f16(65520) == 0x7c00);
  CHECK(fa_f64_to_f16(65519.99999999) == 0x7bff && fa_f64_to_f16(-65520) == 0xfc00);
  CHECK(fa_f32_to_bf16(0x1.fep127f) == 0x7f7f && fa_f32_to_bf16(0x1.ffp127f) == 0x7f80);
  CHECK(fa_f64_to_f16(0x1p-25) == 0 && fa_f64_to_f16(-0x1.0000000000001p-25) == 0x8001);
}

static void test_random(void) {
  fa_rng r = fa_rng_make(1, 1);
  for (int i = 0; i < N_RANDOM; ++i) {
    const uint64_t u = fa_rng_next(&r);
    uint32_t bits = (uint32_t)u; /* any f32; two thirds with an exponent near f16's range, edges included */
    if (u >> 62) bits = (bits & 0x807fffffu) | (uint32_t)(98 + (u >> 40 & 0xffff) % 50) << 23;
    if (u >> 60 & 1) bits &= ~0xfffu; /* on ties and near them */
    const float x = fa_f32_from_bits(bits);
    if (x != x) continue;
    check_f32(x);
    if (i % 8 == 0) check_f64((double)x * (1 + (double)(int)(u >> 40 & 3) * 0x1p-50));
  }
}

static void test_nan(void) {
  const uint32_t payloads[] = {0x7f800001, 0x7fc00000, 0xffffffff, 0x7fa12345, 0xff801fff};
  for (int i = 0; i < 5; ++i) {
    const float x = fa_f32_from_bits(payloads[i]);
    const uint16_t sign = (uint16_t)(payloads[i] >> 16 & 0x8000);
    CHECK(fa_f32_to_f16(x) == (sign | 0x7e00 | (payloads[i] >> 13 & 0x3ff)));
    CHECK(fa_f32_to_bf16(x) == (uint16_t)(payloads[i] >> 16 | 0x40));
  }
  const double d =
      fa_f64_from_bits(0xfff4000000000001u); /* signalling: NaN only because of bits that f32 lacks */
  CHECK(fa_f64_to_f16(d) == 0xff00 && fa_f64_to_bf16(d) == 0xffe0);
  CHECK(fa_f64_to_f16(fa_f64_from_bits(0x7ff0000000000001u)) == 0x7e00);
}

/* ---- elements and constants ---- */

static void test_elements(void) {
  int32_t n = 0;
  uint8_t c = 0;
  const double in[] = {2.9, -2.9, 3e9, -3e9, NAN, INFINITY, -INFINITY, 255.5, 2147483647.0};
  const int32_t want[] = {2, -2, INT32_MAX, INT32_MIN, 0, INT32_MAX, INT32_MIN, 255, INT32_MAX};
  for (int i = 0; i < 9; ++i) {
    fa_store(FA_I32, &n, in[i]);
    CHECK_MSG(n == want[i], "%g -> %d", in[i], n);
    fa_store(FA_U8, &c, in[i]);
    CHECK_MSG(c == (want[i] < 0 ? 0 : want[i] > 255 ? 255 : want[i]), "%g -> %d", in[i], c);
  }
  int64_t l;
  for (int i = 0; i < 9; ++i) {
    fa_store(FA_I64, &l, in[i] * 0x1p40);
    CHECK_MSG(l == (isnan(in[i])                           ? 0
                    : isinf(in[i]) || fabs(in[i]) > 0x1p23 ? (in[i] > 0 ? INT64_MAX : INT64_MIN)
                                                           : (int64_t)(in[i] * 0x1p40)),
              "%g -> %lld", in[i], (long long)l);
    fa_store(FA_BOOL, &c, in[i]);
    CHECK_MSG(c == !isnan(in[i]) && fa_load(FA_BOOL, &c) == c, "%g -> %d", in[i], c);
  }
  c = 0x40; /* any byte but 0 */
  CHECK(fa_load(FA_BOOL, &c) == 1 && (c = 0, fa_load(FA_BOOL, &c) == 0));
  l = -((int64_t)1 << 40) - 7;
  CHECK(fa_load(FA_I64, &l) == -0x1p40 - 7);
  char raw[64]; /* unaligned and strided */
  const double row[3] = {1.5, -2, 0.25};
  double back[3];
  for (int t = 0; t < FA_N_DTYPES; ++t) {
    memset(raw, 0x55, sizeof raw);
    fa_store_row((fa_dtype)t, raw + 1, 2, 3, row);
    fa_load_row((fa_dtype)t, raw + 1, 2, 3, back);
    for (int i = 0; i < 3; ++i)
      CHECK(back[i] == (t == FA_I32 || t == FA_I64 || t == FA_I8 ? (double)(int)row[i]
                        : t == FA_U8                             ? (i == 0 ? 1 : 0)
                        : t == FA_BOOL                           ? 1
                        : t == FA_E2M1                           ? (i == 2 ? 0 : row[i]) /* a tie */
                                                                 : row[i]));
    CHECK(raw[0] == 0x55 && raw[1 + fa_dtype_size((fa_dtype)t)] == 0x55); /* between two elements */
    fa_dtype found;
    CHECK(fa_dtype_from_name(fa_dtype_name((fa_dtype)t), &found) && found == (fa_dtype)t);
  }
  fa_dtype unused;
  CHECK(!fa_dtype_from_name("F16", &unused) && !fa_dtype_from_name("", &unused));
}

static void test_constants(void) {
  CHECK(fa_dtype_max(FA_F16) == 65504 && fa_dtype_max(FA_BF16) == 0x1.fep127);
  CHECK(fa_dtype_max(FA_F32) == 0x1.fffffep127 && fa_dtype_max(FA_F64) == 0x1.fffffffffffffp1023);
  CHECK(fa_dtype_min_subnormal(FA_F16) == 0x1p-24 && fa_dtype_min_subnormal(FA_BF16) == 0x1p-133);
  CHECK(fa_dtype_min_subnormal(FA_F32) == 0x1p-149 && fa_dtype_min_subnormal(FA_F64) == 0x1p-1074);
  CHECK(fa_dtype_unit_roundoff(FA_F16) == 0x1p-11 && fa_dtype_unit_roundoff(FA_BF16) == 0x1p-8);
  CHECK(fa_dtype_unit_roundoff(FA_F32) == 0x1p-24 && fa_dtype_unit_roundoff(FA_F64) == 0x1p-53);
  CHECK(fa_half_ulp(FA_F32, 1) == 0x1p-24 && fa_half_ulp(FA_F32, 0) == 0x1p-150);
  CHECK(fa_half_ulp(FA_F16, 1e9) == 16 && fa_half_ulp(FA_F16, INFINITY) == 16 &&
        isnan(fa_half_ulp(FA_F16, NAN)));
  CHECK(fa_half_ulp(FA_F64, 3) == 0 && fa_half_ulp(FA_I32, 3) == 0);
  CHECK(fa_dtype_is_float(FA_BF16) && !fa_dtype_is_float(FA_U8) && !fa_dtype_is_float(FA_I32));
}

/* ---- the compiler ---- */

static uint32_t plain_bits(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}
static float plain_from_bits(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}
__attribute__((noinline)) static float cut_guarded(float x, int d) {
  uint32_t u = fa_f32_bits(x);
  if (d == 1) u &= 0xffff0000u;
  return fa_f32_from_bits(u);
}
__attribute__((noinline)) static float cut_plain(float x, int d) {
  uint32_t u = plain_bits(x);
  if (d == 1) u &= 0xffff0000u;
  return plain_from_bits(u);
}
__attribute__((noinline)) static void cut_row(const float *in, float *out, int n, int d) {
  for (int i = 0; i < n; ++i) {
    uint32_t u = fa_f32_bits(in[i]);
    if (d == 1) u &= 0xffff0000u;
    out[i] = fa_f32_from_bits(u);
  }
}

/* gcc 12.2 drops the branch of cut_plain; the same code with fa_f32_bits must keep it. */
static void test_conditional_mask(void) {
  const float x[4] = {1.2345678f, -3.1415926f, 1e-20f, 0x1.fffffep127f};
  float row[4];
  int plain_lost = 0;
  for (int d = 0; d < 3; ++d) {
    cut_row(x, row, 4, d);
    for (int i = 0; i < 4; ++i) {
      uint32_t want, got;
      memcpy(&want, &x[i], 4);
      if (d == 1) want = want / 65536u * 65536u;
      const float y = cut_guarded(x[i], d);
      memcpy(&got, &y, 4);
      CHECK_MSG(got == want, "d %d: %08x, must be %08x", d, got, want);
      memcpy(&got, &row[i], 4);
      CHECK_MSG(got == want, "d %d, in a row: %08x, must be %08x", d, got, want);
      const float z = cut_plain(x[i], d);
      memcpy(&got, &z, 4);
      plain_lost += got != want;
    }
  }
  printf("this compiler %s the branch between two plain memcpy casts\n", plain_lost ? "LOSES" : "keeps");
}

int main(void) {
  f16 = make_model(5, 10);
  bf16 = make_model(8, 7);
  test_exhaustive();
  test_edges();
  test_random();
  test_nan();
  test_elements();
  test_constants();
  test_conditional_mask();
  free(f16.value);
  free(bf16.value);
  return check_done();
}
