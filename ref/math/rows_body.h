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
    for (int t = 0; t < 8; ++t) x[j + t] = x[j + t] == -INFINITY ? 0.0 : fa_element_exp(x[j + t] - shift);
    for (int t = 0; t < 8; ++t) sum[t] += x[j + t];
  }
  for (int t = 0; j < n; ++j, ++t) {
    x[j] = x[j] == -INFINITY ? 0.0 : fa_element_exp(x[j] - shift);
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
  for (int64_t j = 0; j < n; ++j) e[j] = fa_element_logit_error(e[j], x[j], c, a, b, k);
  return rows_greatest(e, n);
}

static float rows_grow(float *e, int64_t n) {
  for (int64_t j = 0; j < n; ++j) e[j] += e[j] * e[j];
  return rows_greatest(e, n);
}

static void rows_product_error(float *restrict e, const double *restrict x, int64_t n, double k, double a,
                               double b) {
  for (int64_t j = 0; j < n; ++j) e[j] = fa_element_product_error(e[j], x[j], k, a, b);
}

static void rows_magnitudes(const double *restrict from, int64_t n, double by, float *restrict to,
                            float *restrict to2) {
  for (int64_t i = 0; i < n; ++i) to[i] = fa_element_magnitude(from[i], by);
  if (!to2) return;
  for (int64_t i = 0; i < n; ++i) to2[i] = fa_element_square(to[i]);
}

static double rows_weights(const fa_row_probabilities *r, int64_t n, bool squares) {
  const double *restrict p = r->p, *restrict z = r->z;
  const float *restrict e = r->e;
  float *restrict w = r->w, *restrict w2 = r->w2, *restrict we = r->we;
  const float floor = r->floor, per_u = r->per_u, top = r->top, at_top = r->at_top;
  float sum[8] = {0};
  INDEPENDENT
  for (int64_t j = 0; j < n; ++j) {
    const fa_pair_weights pair = fa_element_weights(p[j], z ? (float)z[j] : 1.0f, e[j], floor, per_u);
    we[j] = pair.we;
    w[j] = pair.w;
    w2[j] = pair.pe; /* summed below */
  }
  int64_t j = 0;
  for (; j + 8 <= n; j += 8)
    for (int t = 0; t < 8; ++t) sum[t] += w2[j + t];
  for (int t = 0; j < n; ++j, ++t) sum[t] += w2[j];
  if (squares) {
    INDEPENDENT
    for (int64_t i = 0; i < n; ++i) w2[i] = fa_element_weight_square(w[i], p[i], top, at_top, floor);
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
  const double scaled = r->delta * r->per_unit;
  const fa_pair_limits limits = {r->floor_p, r->floor_ds, r->per_u_p,           r->per_u_ds, r->tiny, r->k_d,
                                 r->e_delta, r->u_dp,     fabsf((float)scaled), r->per_unit, scaled};
  INDEPENDENT
  for (int64_t j = 0; j < n; ++j) {
    const fa_pair_gradient pair =
        fa_element_gradient(&limits, p[j], dp[j], e[j], d[j], z != NULL, z ? z[j] : 1, cap != NULL,
                            cap ? cap[j] : 1.0f, cap ? cap_err[j] : 0.0f);
    terms[j] += pair.part;
    w2[j] = pair.part; /* summed below */
    we[j] = pair.we;
    w[j] = pair.w;
    g[j] = pair.g;
    ge[j] = pair.ge;
  }
}

static void gradient_squares(const fa_row_gradient *r, int64_t n) {
  const double *restrict p = r->p;
  const float *restrict w = r->w, *restrict we = r->we, *restrict g = r->g;
  float *restrict w2 = r->w2, *restrict g2 = r->g2, *restrict exact = r->exact;
  const float near = r->one_is_exact ? r->per_u_p : 0.0f, floor_p = r->floor_p, floor_ds = r->floor_ds;
  INDEPENDENT
  for (int64_t j = 0; j < n; ++j) {
    const fa_pair_squares pair =
        fa_element_gradient_squares(p[j], w[j], we[j], g[j], near, floor_p, floor_ds);
    exact[j] += pair.exact;
    w2[j] = pair.w2;
    g2[j] = pair.g2;
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

static inline __attribute__((always_inline)) void settle_row(const fa_row_settle *r, int64_t n,
                                                             const float *squares, bool all_squared) {
  const double *restrict value = r->value;
  const float *worst = r->worst, *errors = r->errors;
  float *quant = r->quant, *noise = r->noise, *accum = r->accum;
  const fa_settle_terms terms = r->terms;
  INDEPENDENT
  for (int64_t j = 0; j < n; ++j) {
    const fa_settled e = fa_element_settle(&terms, value[j], worst[j], squares != NULL,
                                           squares ? squares[j] : 0, all_squared, errors[j]);
    quant[j] = e.quant;
    noise[j] = e.noise;
    accum[j] = e.accum;
  }
}

static void rows_settle(const fa_row_settle *r, int64_t n) {
  if (r->squares && r->terms.exact == 0) /* most rows: one root, not two, which is what costs time here */
    settle_row(r, n, r->squares, true);
  else if (r->squares)
    settle_row(r, n, r->squares, false);
  else
    settle_row(r, n, NULL, true);
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
