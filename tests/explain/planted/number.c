#include "tests/explain/planted/number.h"

#include <math.h>
#include <string.h>

/* Stored fraction bits, exponent of the smallest normal number, largest number. */
static const struct {
  int fraction, lowest;
  double largest;
} formats[] = {
    [PL_F16] = {10, -14, 65504.0},
    [PL_BF16] = {7, -126, 0x1.fep127},
    [PL_F32] = {23, -126, 0x1.fffffep127},
    [PL_TF32] = {10, -126, 0x1.ffcp127},
    [PL_E4M3] = {3, -6, 448.0},
    [PL_E5M2] = {2, -14, 57344.0},
};

double pl_round(double x, pl_format f, bool cut) {
  if (!isfinite(x) || x == 0.0) return x;
  int e;
  frexp(x, &e); /* x is in [2^(e-1), 2^e) */
  const int lowest = formats[f].lowest, exponent = e - 1 < lowest ? lowest : e - 1;
  const double step = ldexp(1.0, exponent - formats[f].fraction);
  const double y = step * (cut ? trunc(x / step) : nearbyint(x / step));
  if (fabs(y) <= formats[f].largest) return y;
  return copysign(f == PL_E4M3 || cut ? formats[f].largest : INFINITY, x);
}

pl_format pl_format_of(int dtype) {
  return dtype == FA_PLUGIN_F16 ? PL_F16 : dtype == FA_PLUGIN_BF16 ? PL_BF16 : PL_F32;
}

static double half_value(uint16_t bits) {
  const int e = bits >> 10 & 31, fraction = bits & 1023;
  const double size = e == 0    ? ldexp(fraction, -24)
                      : e == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                                : ldexp(1024 + fraction, e - 25);
  return bits & 0x8000 ? -size : size;
}

/* x is a number of the format already. */
static uint16_t half_bits(double x) {
  const uint16_t sign = signbit(x) ? 0x8000 : 0;
  if (isnan(x)) return 0x7e01;
  if (isinf(x)) return sign | 0x7c00;
  if (fabs(x) < 0x1p-14) return sign | (uint16_t)ldexp(fabs(x), 24);
  int e;
  const double fraction = frexp(fabs(x), &e); /* in [1/2, 1) */
  return (uint16_t)(sign | ((e + 14) << 10) | ((int)ldexp(fraction, 11) - 1024));
}

double pl_load(const fa_plugin_tensor *t, int64_t at) {
  if (t->dtype == FA_PLUGIN_F32) return ((const float *)t->data)[at];
  if (t->dtype == FA_PLUGIN_I32) return ((const int32_t *)t->data)[at];
  const uint16_t bits = ((const uint16_t *)t->data)[at];
  if (t->dtype == FA_PLUGIN_F16) return half_value(bits);
  const uint32_t wide = (uint32_t)bits << 16;
  float f;
  memcpy(&f, &wide, sizeof f);
  return f;
}

void pl_store(const fa_plugin_tensor *t, int64_t at, double x, bool cut) {
  const float y = (float)pl_round(x, pl_format_of(t->dtype), cut);
  if (t->dtype == FA_PLUGIN_F32) {
    ((float *)t->data)[at] = y;
  } else if (t->dtype == FA_PLUGIN_F16) {
    ((uint16_t *)t->data)[at] = half_bits(y);
  } else {
    uint32_t wide;
    memcpy(&wide, &y, sizeof wide);
    ((uint16_t *)t->data)[at] = (uint16_t)(wide >> 16);
  }
}
