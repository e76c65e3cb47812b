/* Elements of any type in memory as doubles, one at a time or a row. */
#include "cases/base/dtype.h"
#include "cases/base/row_loops.h"
#include "cases/base/status.h"

#include <string.h>

/* memcpy: p may be unaligned (views into files). */
#define LOAD_LOOP(type, expression)                                                                          \
  for (int64_t i = 0; i < n; ++i) {                                                                          \
    type e;                                                                                                  \
    memcpy(&e, (const char *)p + i * stride * (int64_t)sizeof e, sizeof e);                                  \
    out[i] = (double)(expression);                                                                           \
  }                                                                                                          \
  return

void fa_load_row(fa_dtype t, const void *p, int64_t stride, int64_t n, double *out) {
  switch (t) {
  case FA_F16:
    LOAD_LOOP(uint16_t, fa_f16_to_f32(e));
  case FA_BF16:
    LOAD_LOOP(uint16_t, fa_bf16_to_f32(e));
  case FA_F32:
    LOAD_LOOP(float, e);
  case FA_I32:
    LOAD_LOOP(int32_t, e);
  case FA_U8:
    LOAD_LOOP(uint8_t, e);
  case FA_F64:
    LOAD_LOOP(double, e);
  case FA_I64:
    LOAD_LOOP(int64_t, e);
  case FA_BOOL:
    LOAD_LOOP(uint8_t, e != 0);
  case FA_E4M3:
    LOAD_LOOP(uint8_t, fa_e4m3_to_f32(e));
  case FA_E5M2:
    LOAD_LOOP(uint8_t, fa_e5m2_to_f32(e));
  case FA_I8:
    LOAD_LOOP(int8_t, e);
  case FA_E2M1:
    LOAD_LOOP(uint8_t, fa_e2m1_to_f32(e));
  case FA_N_DTYPES:
    break;
  }
  FA_ASSERT(!"a dtype");
}

double fa_load(fa_dtype t, const void *p) {
  uint16_t h;
  float f;
  double value;
  switch (t) { /* types that are loaded by the million, one at a time */
  case FA_F16:
    memcpy(&h, p, sizeof h);
    return (double)fa_f16_to_f32(h);
  case FA_BF16:
    memcpy(&h, p, sizeof h);
    return (double)fa_bf16_to_f32(h);
  case FA_F32:
    memcpy(&f, p, sizeof f);
    return (double)f;
  default:
    fa_load_row(t, p, 1, 1, &value);
    return value;
  }
}

static int64_t saturate(double x, int64_t lo, int64_t hi) {
  if (!(x > (double)lo)) return x != x ? 0 : lo;
  return x >= (double)hi ? hi : (int64_t)x;
}

void fa_store(fa_dtype t, void *p, double x) {
  fa_store_row(t, p, 1, 1, &x);
}

#define STORE_LOOP(type, expression)                                                                         \
  for (int64_t i = 0; i < n; ++i) {                                                                          \
    const double x = in[i];                                                                                  \
    const type e = (type)(expression);                                                                       \
    memcpy((char *)p + i * stride * (int64_t)sizeof e, &e, sizeof e);                                        \
  }                                                                                                          \
  return

void fa_store_row(fa_dtype t, void *p, int64_t stride, int64_t n, const double *in) {
  if (stride == 1 && n >= 8 && (t == FA_F16 || t == FA_BF16)) {
    fa_row_loops_best()->narrow(in, n, t == FA_BF16, p);
    return;
  }
  switch (t) {
  case FA_F16:
    STORE_LOOP(uint16_t, fa_f64_to_f16(x));
  case FA_BF16:
    STORE_LOOP(uint16_t, fa_f64_to_bf16(x));
  case FA_F32:
    STORE_LOOP(float, fa_f64_to_f32(x));
  case FA_I32:
    STORE_LOOP(int32_t, saturate(x, INT32_MIN, INT32_MAX));
  case FA_U8:
    STORE_LOOP(uint8_t, saturate(x, 0, UINT8_MAX));
  case FA_F64:
    STORE_LOOP(double, x);
  case FA_I64:
    STORE_LOOP(int64_t, saturate(x, INT64_MIN, INT64_MAX));
  case FA_BOOL:
    STORE_LOOP(uint8_t, x == x && x != 0);
  case FA_E4M3:
    STORE_LOOP(uint8_t, fa_f64_to_e4m3(x, FA_OVERFLOW_SATURATES));
  case FA_E5M2:
    STORE_LOOP(uint8_t, fa_f64_to_e5m2(x, FA_OVERFLOW_SATURATES));
  case FA_I8:
    STORE_LOOP(int8_t, saturate(x, INT8_MIN, INT8_MAX));
  case FA_E2M1:
    STORE_LOOP(uint8_t, fa_f64_to_e2m1(x));
  case FA_N_DTYPES:
    break;
  }
  FA_ASSERT(!"a dtype");
}
