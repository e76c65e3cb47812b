#include "cases/base/dtype.h"

#include "cases/base/bits.h"
#include "cases/base/dtype_narrow.h"
#include "cases/base/status.h"

/* A binary floating point format: 1 sign bit, exponent bits, fraction bits. finite: it has no infinity, and its largest
 * exponent belongs to numbers, of which the last is NaN if it has one. */
typedef struct format {
  int exponent_bits, fraction_bits;
  bool finite, has_nan;
} format;

static const struct {
  const char *name;
  size_t size;
  format f; /* {0,0} = not a float */
} types[FA_N_DTYPES] = {
    [FA_F16] = {"f16", 2, {5, 10, false, true}},
    [FA_BF16] = {"bf16", 2, {8, 7, false, true}},
    [FA_F32] = {"f32", 4, {8, 23, false, true}},
    [FA_I32] = {"i32", 4, {0}},
    [FA_U8] = {"u8", 1, {0}},
    [FA_F64] = {"f64", 8, {11, 52, false, true}},
    [FA_I64] = {"i64", 8, {0}},
    [FA_BOOL] = {"bool", 1, {0}},
    [FA_E4M3] = {"e4m3", 1, {4, 3, true, true}},
    [FA_E5M2] = {"e5m2", 1, {5, 2, false, true}},
    [FA_I8] = {"i8", 1, {0}},
    [FA_E2M1] = {"e2m1", 1, {2, 1, true, false}},
};

size_t fa_dtype_size(fa_dtype t) {
  FA_ASSERT((unsigned)t < FA_N_DTYPES);
  return types[t].size;
}

const char *fa_dtype_name(fa_dtype t) {
  FA_ASSERT((unsigned)t < FA_N_DTYPES);
  return types[t].name;
}

bool fa_dtype_from_name(const char *name, fa_dtype *out) {
  for (int t = 0; t < FA_N_DTYPES; ++t)
    if (strcmp(name, types[t].name) == 0) return *out = (fa_dtype)t, true;
  return false;
}

bool fa_dtype_is_float(fa_dtype t) {
  FA_ASSERT((unsigned)t < FA_N_DTYPES);
  return types[t].f.exponent_bits != 0;
}

bool fa_dtype_is_float8(fa_dtype t) {
  return t == FA_E4M3 || t == FA_E5M2;
}

/* ---- widening: exact, NaN payloads kept ---- */

float fa_f16_to_f32(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 31u;
  uint32_t fraction = h & 0x3ffu;
  if (exponent == 31) return fa_f32_from_bits(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0) return fa_f32_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
  if (fraction == 0) return fa_f32_from_bits(sign);
  /* Subnormal: fraction * 2^-24. Shift the leading one up to bit 10, where it becomes the implicit one. */
  const int up = __builtin_clz(fraction) - 21;
  fraction = fraction << up & 0x3ffu;
  return fa_f32_from_bits(sign | (uint32_t)(113 - up) << 23 | fraction << 13);
}

float fa_bf16_to_f32(uint16_t h) {
  return fa_f32_from_bits((uint32_t)h << 16);
}

/* ---- narrowing ---- */

uint16_t fa_f32_to_f16(float x) {
  const uint32_t u = fa_f32_bits(x), magnitude = u & 0x7fffffffu;
  const uint16_t sign = (uint16_t)(u >> 16 & 0x8000u);
  if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u; /* 65520 and up: ties to even is infinity */
  if (magnitude >= 0x38800000u) {                      /* 2^-14 and up: normal in both */
    const uint32_t even = magnitude >> 13 & 1u;
    return (uint16_t)(sign | (magnitude - 0x38000000u + 0xfffu + even) >> 13);
  }
  if (magnitude <= 0x33000000u) return sign; /* 2^-25 is the tie between 0 and the smallest subnormal */
  /* Subnormal result: significand * 2^(e - 150) in units of 2^-24. */
  const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
  const int shift = 126 - (int)(magnitude >> 23);
  const uint32_t q = significand >> shift, rest = significand & ((1u << shift) - 1), half = 1u << (shift - 1);
  return (uint16_t)(sign | (q + (rest > half || (rest == half && (q & 1)))));
}

uint16_t fa_f32_to_bf16(float x) {
  const uint32_t u = fa_f32_bits(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40u);
  return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

uint16_t fa_f64_to_f16(double x) {
  return (uint16_t)fa_narrow_f64(x, 5, 10);
}
uint16_t fa_f64_to_bf16(double x) {
  return (uint16_t)fa_narrow_f64(x, 8, 7);
}
float fa_f64_to_f32(double x) {
  return (float)x;
}

/* ---- 8 bits ---- */

/* Both are the upper bits of an f16; e4m3's exponents are 8 less. */
float fa_e4m3_to_f32(uint8_t bits) {
  const uint16_t sign = (uint16_t)((bits & 0x80u) << 8), magnitude = bits & 0x7fu;
  if (magnitude == 0x7fu) return fa_f16_to_f32(sign | 0x7e00u);
  return 256 * fa_f16_to_f32((uint16_t)(sign | magnitude << 7));
}

float fa_e5m2_to_f32(uint8_t bits) {
  return fa_f16_to_f32((uint16_t)(bits << 8));
}

/* The sign and magnitude bits of what narrowing to a 16-bit word made; NaN, and what is larger than the largest. */
static uint8_t eight_bits(double x, uint64_t narrow, uint64_t largest, uint8_t beyond) {
  const uint8_t sign = (uint8_t)(narrow >> 8 & 0x80u);
  const uint64_t magnitude = narrow & 0x7fffu;
  if (x != x) return sign | 0x7fu;
  return magnitude > largest ? sign | beyond : (uint8_t)(sign | magnitude);
}

/* The last binade is infinity's in a format that has one: there half of x is rounded, one step of the exponent lower. */
uint8_t fa_f64_to_e4m3(double x, fa_overflow beyond) {
  const bool high = x >= 128 || x <= -128;
  const uint64_t narrow = fa_narrow_f64(high ? x / 2 : x, 4, 3) + (high ? 8 : 0);
  return eight_bits(x, narrow, 0x7eu, beyond == FA_OVERFLOW_SATURATES ? 0x7eu : 0x7fu);
}

uint8_t fa_f64_to_e5m2(double x, fa_overflow beyond) {
  return eight_bits(x, fa_narrow_f64(x, 5, 2), 0x7bu, beyond == FA_OVERFLOW_SATURATES ? 0x7bu : 0x7cu);
}

/* ---- 4 bits ---- */

float fa_e2m1_to_f32(uint8_t bits) {
  static const float magnitude[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  const float x = magnitude[bits & 7u];
  return bits & 8u ? -x : x;
}

/* As of e4m3: half of what the last binade has. */
uint8_t fa_f64_to_e2m1(double x) {
  const bool high = x >= 2 || x <= -2;
  const uint64_t narrow = fa_narrow_f64(high ? x / 2 : x, 2, 1) + (high ? 2 : 0),
                 magnitude = narrow & 0x7fffu;
  if (x != x) return 7;
  return (uint8_t)((narrow >> 12 & 8u) | (magnitude > 7 ? 7 : magnitude));
}

/* ---- properties of the formats ---- */

/* 2^e for -1074 <= e <= 1023, without libm. */
static double power_of_two(int e) {
  return e < -1022 ? fa_f64_from_bits(1ull << (e + 1074)) : fa_f64_from_bits((uint64_t)(e + 1023) << 52);
}

static int bias_of(fa_dtype t) {
  return (1 << (types[t].f.exponent_bits - 1)) - 1;
}

/* Exponent of the largest number. */
static int top_of(fa_dtype t) {
  return bias_of(t) + types[t].f.finite;
}

double fa_half_ulp(fa_dtype t, double x) {
  if (t == FA_F64 || !fa_dtype_is_float(t)) return 0;
  if (x != x) return x;
  const int bias = bias_of(t), top = top_of(t);
  int exponent = (int)(fa_f64_bits(x) >> 52 & 0x7ffu) - 1023;
  if (exponent < 1 - bias) exponent = 1 - bias;
  if (exponent > top) exponent = top;
  return power_of_two(exponent - types[t].f.fraction_bits - 1);
}

double fa_dtype_max(fa_dtype t) {
  if (t == FA_I32) return INT32_MAX;
  if (t == FA_U8) return UINT8_MAX;
  if (t == FA_I64) return 0x1p63 - 1024; /* the largest that a double holds */
  if (t == FA_BOOL) return 1;
  if (t == FA_I8) return INT8_MAX;
  const double last = power_of_two((types[t].f.finite && types[t].f.has_nan) - types[t].f.fraction_bits);
  return (2 - last) * power_of_two(top_of(t));
}

double fa_dtype_min_subnormal(fa_dtype t) {
  if (!fa_dtype_is_float(t)) return 1;
  return power_of_two(1 - bias_of(t) - types[t].f.fraction_bits);
}

double fa_dtype_unit_roundoff(fa_dtype t) {
  return fa_dtype_is_float(t) ? power_of_two(-types[t].f.fraction_bits - 1) : 0;
}
