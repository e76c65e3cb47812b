/* Included by one source per instruction set, with FA_ROWS_NAME defined. */
#include "ref/math/rows.h"

#include <math.h>
#include <string.h>

/* Put before a loop over arrays that a struct points to: no iteration writes what another one reads. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* loops do not vectorise under sanitizers */
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

enum { LANES = 8 }; /* of sums and maxima, whatever the vector length */

/* exp by x = k ln2 + r, |r| <= ln2 / 2, Taylor to r^13 (next term 4e-18 relative). ln2 is split in two parts,
 * the first with 21 trailing zero bits, so that k * part is exact. Branch-free, so that it vectorises;
 * explicit fma, so that every instruction set gives the same bits. */
static inline double exp_one(double x) {
  const double log2e = 0x1.71547652b82fep0, ln2_hi = 0x1.62e42feep-1, ln2_lo = 0x1.a39ef35793c76p-33;
  const double magic = 0x1.8p52;
  double y = x < -745.2 ? -745.2 : x > 709.8 ? 709.8 : x;
  double shifted = fma(y, log2e, magic), k = shifted - magic;
  double r = fma(-k, ln2_lo, fma(-k, ln2_hi, y));
  double p = 1.6059043836821613e-10;
  p = fma(p, r, 2.08767569878681e-09);
  p = fma(p, r, 2.505210838544172e-08);
  p = fma(p, r, 2.755731922398589e-07);
  p = fma(p, r, 2.7557319223985893e-06);
  p = fma(p, r, 2.48015873015873e-05);
  p = fma(p, r, 0.0001984126984126984);
  p = fma(p, r, 0.001388888888888889);
  p = fma(p, r, 0.008333333333333333);
  p = fma(p, r, 0.041666666666666664);
  p = fma(p, r, 0.16666666666666666);
  p = fma(p, r, 0.5);
  p = fma(p, r * r, r) + 1.0;
  /* 2^k in two factors: results may be subnormal */
  int64_t bits, n, half;
  memcpy(&bits, &shifted, sizeof bits);
  n = (bits & 0xfffffffffffff) - 0x8000000000000; /* the mantissa holds 2^51 + k */
  half = (n + 4096) / 2 - 2048;
  uint64_t b1 = (uint64_t)(half + 1023) << 52, b2 = (uint64_t)(n - half + 1023) << 52;
  double f1, f2;
  memcpy(&f1, &b1, sizeof f1);
  memcpy(&f2, &b2, sizeof f2);
  double e = p * f1 * f2;
  return x < -745.2 ? 0.0 : e;
}

static double rows_max(const double *x, int64_t n) {
  double m[8], best = -INFINITY;
  for (int t = 0; t < 8; ++t) m[t] = -INFINITY;
  int64_t j = 0;
  for (; j + 8 <= n; j += 8)
    for (int t = 0; t < 8; ++t) m[t] = x[j + t] > m[t] ? x[j + t] : m[t];
  for (; j < n; ++j) m[0] = x[j] > m[0] ? x[j] : m[0];
  for (int t = 0; t < 8; ++t) best = m[t] > best ? m[t] : best;
  return best;
}

static double rows_exp(double *x, int64_t n, double shift) {
  double sum[8] = {0};
  int64_t j = 0;
  for (; j + 8 <= n; j += 8) {
    for (int t = 0; t < 8; ++t) x[j + t] = x[j + t] == -INFINITY ? 0.0 : exp_one(x[j + t] - shift);
    for (int t = 0; t < 8; ++t) sum[t] += x[j + t];
  }
  for (int t = 0; j < n; ++j, ++t) {
    x[j] = x[j] == -INFINITY ? 0.0 : exp_one(x[j] - shift);
    sum[t] += x[j];
  }
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

static void rows_scale(double *x, int64_t n, double by) {
  for (int64_t j = 0; j < n; ++j) x[j] *= by;
}

static void rows_multiply(double *restrict x, const double *restrict y, int64_t n) {
  for (int64_t j = 0; j < n; ++j) x[j] *= y[j];
}

static void rows_add(double *restrict to, const double *restrict x, int64_t n) {
  for (int64_t j = 0; j < n; ++j) to[j] += x[j];
}

static void rows_add_bounds(float *restrict to, const float *restrict x, int64_t n) {
  for (int64_t j = 0; j < n; ++j) to[j] += x[j];
}

static void rows_dscore(double *restrict p, double *restrict dp, const double *restrict z, double delta,
                        int64_t n) {
  if (!z) {
    for (int64_t j = 0; j < n; ++j) dp[j] = p[j] * (dp[j] - delta);
    return;
  }
  for (int64_t j = 0; j < n; ++j) {
    dp[j] = p[j] * (z[j] * dp[j] - delta);
    p[j] *= z[j];
  }
}

static void rows_dsoftcap(double *restrict ds, const double *restrict th, int64_t n) {
  for (int64_t j = 0; j < n; ++j) ds[j] *= (1 - th[j]) * (1 + th[j]);
}

static float rows_greatest(const float *x, int64_t n) {
  float most[LANES] = {0}, best = 0;
  int64_t j = 0;
  for (; j + LANES <= n; j += LANES)
    for (int t = 0; t < LANES; ++t) most[t] = x[j + t] > most[t] ? x[j + t] : most[t];
  for (; j < n; ++j) most[0] = x[j] > most[0] ? x[j] : most[0];
  for (int t = 0; t < LANES; ++t) best = most[t] > best ? most[t] : best;
  return best;
}

static float rows_logit_error(float *restrict e, const double *restrict x, int64_t n, double c, double a,
                              double b, double k) {
  for (int64_t j = 0; j < n; ++j) {
    double v = e[j] + (a * fabs(x[j] - c) + b * fabs(x[j]) + k);
    e[j] = x[j] == -INFINITY ? 0.0f : (float)v;
  }
  return rows_greatest(e, n);
}

static float rows_grow(float *e, int64_t n) {
  for (int64_t j = 0; j < n; ++j) e[j] += e[j] * e[j];
  return rows_greatest(e, n);
}

static void rows_product_error(float *restrict e, const double *restrict x, int64_t n, double k, double a,
                               double b) {
  for (int64_t j = 0; j < n; ++j) e[j] = (float)(k * e[j] + a * fabs(x[j]) + b);
}

static void rows_magnitudes(const double *restrict from, int64_t n, double by, float *restrict to,
                            float *restrict to2) {
  for (int64_t i = 0; i < n; ++i) to[i] = (float)fabs(from[i] * by);
  if (!to2) return;
  for (int64_t i = 0; i < n; ++i) {
    float x = to[i] > 0.0f && to[i] < FA_LEAST_OPERAND ? FA_LEAST_OPERAND : to[i];
    to2[i] = x * x;
  }
}

/* P as a float; tiny ones are raised, so that no product with one is subnormal (slow, and inexact). */
static inline float weight_of(double p) {
  float tiny = p > 0 ? FA_TINY_WEIGHT : 0.0f, f = p < FA_GREATEST_WEIGHT ? (float)p : FA_GREATEST_WEIGHT;
  return f > tiny ? f : tiny;
}

/* The size x for which rounding to nearest, with relative error 1 / per_u, gives this value's error: below
 * `floor` the error stays that of floor, but is never more than the value itself (the kernel can always round
 * to 0). */
static inline float rounded_like(float x, float at_most, float floor, float per_u) {
  float whole = at_most * per_u, raised = whole < floor ? whole : floor;
  return x > raised ? x : raised;
}

static double rows_weights(const fa_row_probabilities *r, int64_t n, bool squares) {
  const double *restrict p = r->p, *restrict z = r->z;
  const float *restrict e = r->e;
  float *restrict w = r->w, *restrict w2 = r->w2, *restrict we = r->we;
  const float floor = r->floor, per_u = r->per_u, top = r->top, at_top = r->at_top;
  float sum[8] = {0};
  INDEPENDENT
  for (int64_t j = 0; j < n; ++j) {
    float pj = weight_of(p[j]), pe = pj > 0.0f ? pj * e[j] + FA_TINY_WEIGHT : 0.0f;
    float zj = z ? (float)z[j] : 1.0f, pz = pj * zj;
    we[j] = pe * zj;
    w[j] = rounded_like(pz, pz + we[j], floor, per_u);
    w2[j] = pe; /* summed below */
  }
  int64_t j = 0;
  for (; j + 8 <= n; j += 8)
    for (int t = 0; t < 8; ++t) sum[t] += w2[j + t];
  for (int t = 0; j < n; ++j, ++t) sum[t] += w2[j];
  if (squares) {
    INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      float v = w[i] > 0.0f && w[i] < FA_LEAST_WEIGHT ? FA_LEAST_WEIGHT : w[i];
      v = (float)p[i] >= top ? v * at_top : v;
      w2[i] = v * v;
    }
  }
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

/* One function per combination of options, so that no loop tests them for every element. z and cap must be constants
 * where they are NULL: masked loads from address 0, which is what a test becomes in a loop over vectors, touch nothing
 * but take hundreds of cycles each. */
static inline __attribute__((always_inline)) void
gradient_row(const fa_row_gradient *r, int64_t n, const double *restrict z, const float *restrict cap) {
  const double *restrict p = r->p, *restrict dp = r->dp;
  const float *restrict e = r->e, *restrict d = r->d, *restrict cap_err = r->cap_err;
  float *restrict w = r->w, *restrict we = r->we, *restrict g = r->g, *restrict ge = r->ge;
  float *restrict terms = r->terms, *restrict w2 = r->w2;
  const float most = FA_GREATEST_WEIGHT, floor_p = r->floor_p, floor_ds = r->floor_ds;
  const float per_u_p = r->per_u_p, per_u_ds = r->per_u_ds, tiny = r->tiny;
  const float k_d = r->k_d, e_delta = r->e_delta, u_dp = r->u_dp;
  const double per_unit = r->per_unit, scaled = r->delta * per_unit;
  const float size_delta = fabsf((float)scaled);
  INDEPENDENT
  for (int64_t j = 0; j < n; ++j) {
    float pj = weight_of(p[j]), zj = z ? (float)z[j] : 1.0f;
    float pe = pj > 0.0f ? pj * e[j] + FA_TINY_WEIGHT : 0.0f;
    float y = (float)fabs((z ? z[j] : 1.0) * dp[j] * per_unit - scaled);
    float size = zj * (float)fabs(dp[j] * per_unit) + size_delta;
    float ey = zj * k_d * d[j] + e_delta + u_dp * size;
    float pz = pj * zj, ds = pj * y, eds = pe * y + pj * y * 0x1p-22f + (pj + pe) * ey;
    float derivative = cap ? cap[j] : 1.0f, derivative_err = cap ? cap_err[j] : 0.0f;
    float lost = cap ? tiny * (1.0f + derivative) : tiny, part = pj * size;
    eds = eds * derivative + (ds + eds) * derivative_err + (pj > 0.0f ? lost : 0.0f);
    ds = ds * derivative;
    part = cap ? part * (derivative + FA_UNSURE_SLOPE * derivative_err) : part;
    terms[j] += part;
    w2[j] = part; /* summed below */
    we[j] = pe * zj;
    w[j] = rounded_like(pz, pz + we[j], floor_p, per_u_p);
    g[j] = rounded_like(ds > most ? most : ds, ds + eds, floor_ds, per_u_ds);
    ge[j] = eds;
  }
}

static void gradient_squares(const fa_row_gradient *r, int64_t n) {
  const double *restrict p = r->p;
  const float *restrict w = r->w, *restrict we = r->we, *restrict g = r->g;
  float *restrict w2 = r->w2, *restrict g2 = r->g2, *restrict exact = r->exact;
  const float least = FA_LEAST_WEIGHT, near = r->one_is_exact ? r->per_u_p : 0.0f;
  INDEPENDENT
  for (int64_t j = 0; j < n; ++j) {
    float a = w[j] > 0.0f && w[j] < least ? least : w[j], b = g[j] > 0.0f && g[j] < least ? least : g[j];
    /* 1 is representable: rounding to nearest never costs more than the distance to it. */
    float at_most = near * ((float)fabs(1.0 - p[j]) + we[j]);
    bool less = (near > 0.0f) & (at_most < a);
    exact[j] += less ? a * a : 0.0f;
    a = less ? at_most : a;
    w2[j] = a * a;
    g2[j] = b * b;
  }
}

static void rows_gradient(fa_row_gradient *r, int64_t n) {
  double sum[LANES] = {0};
  if (r->z && r->cap)
    gradient_row(r, n, r->z, r->cap);
  else if (r->z)
    gradient_row(r, n, r->z, NULL);
  else if (r->cap)
    gradient_row(r, n, NULL, r->cap);
  else
    gradient_row(r, n, NULL, NULL);
  const float *w2 = r->w2;
  int64_t j = 0;
  for (; j + LANES <= n; j += LANES)
    for (int t = 0; t < LANES; ++t) sum[t] += w2[j + t];
  for (int t = 0; j < n; ++j, ++t) sum[t] += w2[j];
  r->sum_terms = ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
  if (r->squares) gradient_squares(r, n);
}

static inline double lesser(double x, double y) {
  return x < y ? x : y;
}

static inline __attribute__((always_inline)) void settle_row(const fa_row_settle *r, int64_t n,
                                                             const float *squares, bool all_squared) {
  const double *restrict value = r->value;
  const float *worst = r->worst, *errors = r->errors;
  float *quant = r->quant, *noise = r->noise, *accum = r->accum;
  const double unit = r->unit, lambda = r->lambda, exact = r->exact, gamma = r->gamma, add = r->add;
  const double u_narrow = r->u_narrow, u_noise = r->u_noise, by_errors = r->by_errors, by_value = r->by_value;
  const double zero = r->zero_is_exact ? 0 : 1;
  INDEPENDENT
  for (int64_t j = 0; j < n; ++j) {
    const double size = fabs(value[j]), l1 = worst[j] * unit;
    const double root = squares ? sqrt((double)squares[j]) : 0, l2 = squares ? root * unit : l1;
    const double whole = squares && !all_squared ? sqrt(squares[j] + exact) : root;
    const double g = squares ? lesser(l1, size + 4 * whole * unit) : l1;
    const double any = ((worst[j] == 0) & (errors[j] == 0) & (size == 0)) ? zero : 1;
    const double a = (errors[j] * by_errors + gamma * g + size * by_value + add) * any;
    quant[j] = (float)(u_narrow * lesser(l1, lambda * l2) * any);
    noise[j] = (float)(u_noise * l2 * any);
    accum[j] = (float)a;
  }
}

static void rows_settle(const fa_row_settle *r, int64_t n) {
  if (r->squares && r->exact == 0) /* most rows: one root, not two, which is what costs time here */
    settle_row(r, n, r->squares, true);
  else if (r->squares)
    settle_row(r, n, r->squares, false);
  else
    settle_row(r, n, NULL, true);
}

static inline uint64_t bits_of(double x) {
  uint64_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}

/* fa_half_ulp of an output type, for finite x. */
static inline double half_ulp(double x, const fa_row_check *r) {
  const int64_t low = r->exponent_low, high = r->exponent_high;
  int64_t exponent = (int64_t)(bits_of(x) >> 52 & 0x7ff);
  exponent = exponent < low ? low : exponent;
  exponent = exponent > high ? high : exponent;
  const uint64_t u = (uint64_t)(exponent - r->half_ulp) << 52; /* a normal double for every output type */
  double y;
  memcpy(&y, &u, sizeof y);
  return y;
}

#include "ref/math/rows_check_body.h"
#include "ref/math/rows_dropout_body.h"

static void rows_widen(const uint16_t *restrict bits, int64_t n, bool bf16, double *restrict out) {
  if (bf16) {
    for (int64_t i = 0; i < n; ++i) {
      const uint32_t u = (uint32_t)bits[i] << 16;
      float f;
      memcpy(&f, &u, sizeof f);
      out[i] = f;
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) { /* the product is exact, and makes subnormals normal */
    const uint32_t magnitude = bits[i] & 0x7fff, sign = (uint32_t)(bits[i] & 0x8000) << 16;
    const uint32_t shifted = magnitude << 13, special = magnitude >= 0x7c00 ? 0x7f800000u : 0;
    float f;
    memcpy(&f, &shifted, sizeof f);
    f *= 0x1p112f;
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    u |= sign | special;
    memcpy(&f, &u, sizeof f);
    out[i] = f;
  }
}

const fa_rows FA_ROWS_NAME = {.max = rows_max,
                              .exp = rows_exp,
                              .scale = rows_scale,
                              .multiply = rows_multiply,
                              .add = rows_add,
                              .add_bounds = rows_add_bounds,
                              .dscore = rows_dscore,
                              .dsoftcap = rows_dsoftcap,
                              .logit_error = rows_logit_error,
                              .grow = rows_grow,
                              .greatest = rows_greatest,
                              .product_error = rows_product_error,
                              .magnitudes = rows_magnitudes,
                              .weights = rows_weights,
                              .gradient = rows_gradient,
                              .settle = rows_settle,
                              .check = rows_check,
                              .widest_bound = rows_widest_bound,
                              .widen = rows_widen,
                              .flash_dropout = rows_flash_dropout};
