#include "cases/base/dtype.h"

#include "cases/base/bits.h"
#include "cases/base/dtype_narrow.h"
#include "cases/base/status.h"

/* A binary floating point format: 1 sign bit, exponent bits, fraction bits. */
typedef struct format {
  int exponent_bits, fraction_bits;
} format;

static const struct {
  const char *name;
  size_t size;
  format f; /* {0,0} = not a float */
} types[FA_N_DTYPES] = {
    [FA_F16] = {"f16", 2, {5, 10}}, [FA_BF16] = {"bf16", 2, {8, 7}}, [FA_F32] = {"f32", 4, {8, 23}},
    [FA_I32] = {"i32", 4, {0, 0}},  [FA_U8] = {"u8", 1, {0, 0}},     [FA_F64] = {"f64", 8, {11, 52}},
    [FA_I64] = {"i64", 8, {0, 0}},  [FA_BOOL] = {"bool", 1, {0, 0}},
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

/* ---- properties of the formats ---- */

/* 2^e for -1074 <= e <= 1023, without libm. */
static double power_of_two(int e) {
  return e < -1022 ? fa_f64_from_bits(1ull << (e + 1074)) : fa_f64_from_bits((uint64_t)(e + 1023) << 52);
}

double fa_half_ulp(fa_dtype t, double x) {
  if (t == FA_F64 || !fa_dtype_is_float(t)) return 0;
  if (x != x) return x;
  const int bias = (1 << (types[t].f.exponent_bits - 1)) - 1;
  int exponent = (int)(fa_f64_bits(x) >> 52 & 0x7ffu) - 1023;
  if (exponent < 1 - bias) exponent = 1 - bias;
  if (exponent > bias) exponent = bias;
  return power_of_two(exponent - types[t].f.fraction_bits - 1);
}

double fa_dtype_max(fa_dtype t) {
  if (t == FA_I32) return INT32_MAX;
  if (t == FA_U8) return UINT8_MAX;
  if (t == FA_I64) return 0x1p63 - 1024; /* the largest that a double holds */
  if (t == FA_BOOL) return 1;
  const int bias = (1 << (types[t].f.exponent_bits - 1)) - 1;
  return (2 - power_of_two(-types[t].f.fraction_bits)) * power_of_two(bias);
}

double fa_dtype_min_subnormal(fa_dtype t) {
  if (!fa_dtype_is_float(t)) return 1;
  const int bias = (1 << (types[t].f.exponent_bits - 1)) - 1;
  return power_of_two(1 - bias - types[t].f.fraction_bits);
}

double fa_dtype_unit_roundoff(fa_dtype t) {
  return fa_dtype_is_float(t) ? power_of_two(-types[t].f.fraction_bits - 1) : 0;
}
