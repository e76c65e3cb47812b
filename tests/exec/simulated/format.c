#include "tests/exec/simulated/format.h"

#include "gpu/plugin.h"

#include <math.h>
#include <string.h>

typedef union bits {
  float f;
  uint32_t u;
} bits;

/* fraction: stored fraction bits; lowest: exponent of the smallest normal number. */
typedef struct shape {
  int fraction, lowest;
  float largest;
  bool saturates;
} shape;

static const shape shapes[SIM_N_FORMATS] = {
    [SIM_TF32] = {10, -126, 0x1.ffcp127f, false}, [SIM_F16] = {10, -14, 65504.0f, false},
    [SIM_BF16] = {7, -126, 0x1.fep127f, false},   [SIM_E4M3] = {3, -6, 448.0f, true},
    [SIM_E5M2] = {2, -14, 57344.0f, true},
};

/* Below the smallest normal number the spacing is constant: a float of the size of `magic` has that spacing. */
static float round_subnormal(float x, const shape *s, bool truncate) {
  const float step = ldexpf(1.0f, s->lowest - s->fraction);
  if (truncate) return truncf(x / step) * step;
  if (s->lowest == -126) return rintf(x / step) * step;
  return copysignf(rintf(fabsf(x) / step) * step, x);
}

static float round_normal(float x, const shape *s, bool truncate) {
  const int cut = 23 - s->fraction;
  const uint32_t mask = (UINT32_C(1) << cut) - 1;
  bits b = {.f = x};
  if (!truncate) b.u += (mask >> 1) + (b.u >> cut & 1); /* a carry goes on into the exponent, as it should */
  b.u &= ~mask;
  return b.f;
}

float sim_round(float x, sim_format format, bool truncate) {
  const shape *s = &shapes[format];
  if (s->fraction == 0 || !isfinite(x) || x == 0.0f) return x;
  const bool subnormal = fabsf(x) < ldexpf(1.0f, s->lowest);
  const float y = subnormal ? round_subnormal(x, s, truncate) : round_normal(x, s, truncate);
  if (fabsf(y) <= s->largest) return y;
  return s->saturates || truncate ? copysignf(s->largest, x) : copysignf(INFINITY, x);
}

void sim_round_int8(float *x, int64_t n, int64_t block) {
  for (int64_t from = 0; from < n; from += block) {
    const int64_t to = from + block < n ? from + block : n;
    float largest = 0.0f;
    for (int64_t i = from; i < to; ++i) largest = fmaxf(largest, fabsf(x[i]));
    const float step = largest / 127.0f;
    for (int64_t i = from; i < to && step > 0.0f; ++i) x[i] = rintf(x[i] / step) * step;
  }
}

sim_format sim_format_of(int dtype) {
  if (dtype == FA_PLUGIN_E4M3 || dtype == FA_PLUGIN_E5M2)
    return dtype == FA_PLUGIN_E4M3 ? SIM_E4M3 : SIM_E5M2;
  return dtype == FA_PLUGIN_F16 ? SIM_F16 : dtype == FA_PLUGIN_BF16 ? SIM_BF16 : SIM_F32;
}

static float from_f16(uint16_t h) {
  const int exponent = h >> 10 & 31;
  const float fraction = (float)(h & 1023), sign = h >> 15 ? -1.0f : 1.0f;
  if (exponent == 31) return h & 1023 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * ldexpf(fraction, -24);
  return sign * ldexpf(fraction + 1024.0f, exponent - 25);
}

/* x is a number of the format already. */
static uint16_t to_f16(float x) {
  const uint16_t sign = signbit(x) ? 0x8000 : 0;
  int exponent = 0;
  if (isnan(x)) return 0x7e00;
  if (isinf(x)) return sign | 0x7c00;
  if (fabsf(x) < 0x1p-14f) return sign | (uint16_t)(fabsf(x) * 0x1p24f);
  const float m = frexpf(fabsf(x), &exponent); /* in [1/2, 1) */
  return sign | (uint16_t)(((exponent + 14) << 10) + (int)(m * 2048.0f) - 1024);
}

/* Its own reading of the two formats: fraction bits, bias, and what is left of them for NaN and infinity. */
static float from_eight(uint8_t x, int fraction, int bias, int top) {
  const int size = x & 127, exponent = size >> fraction, part = size & ((1 << fraction) - 1);
  const float sign = x >> 7 ? -1.0f : 1.0f;
  if (size > top) return fraction == 2 && part == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * ldexpf((float)part, 1 - bias - fraction);
  return sign * ldexpf((float)(part + (1 << fraction)), exponent - bias - fraction);
}

float sim_load(const void *data, int dtype, int64_t at) {
  if (dtype == FA_PLUGIN_F32) return ((const float *)data)[at];
  if (dtype == FA_PLUGIN_I8) return ((const int8_t *)data)[at];
  if (dtype == FA_PLUGIN_E4M3) return from_eight(((const uint8_t *)data)[at], 3, 7, 126);
  if (dtype == FA_PLUGIN_E5M2) return from_eight(((const uint8_t *)data)[at], 2, 15, 123);
  const uint16_t h = ((const uint16_t *)data)[at];
  if (dtype == FA_PLUGIN_F16) return from_f16(h);
  return (bits){.u = (uint32_t)h << 16}.f;
}

void sim_store(void *data, int dtype, int64_t at, float x) {
  if (dtype == FA_PLUGIN_F32) {
    ((float *)data)[at] = x;
    return;
  }
  const float y = sim_round(x, sim_format_of(dtype), false);
  ((uint16_t *)data)[at] = dtype == FA_PLUGIN_F16 ? to_f16(y)
                           : isnan(y)             ? 0x7fc0
                                                  : (uint16_t)((bits){.f = y}.u >> 16);
}

int64_t sim_load_int(const void *data, int64_t at) {
  return ((const int32_t *)data)[at];
}
