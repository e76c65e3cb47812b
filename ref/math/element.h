/* One pair of a row and a key, or one element of an output: what the loops over rows (ref/math/rows_body.h) and the judge
 * on a device (ref/cuda) both compute. docs/reference/bounds.md has the formulas. */
#ifndef FA_REF_MATH_ELEMENT_H
#define FA_REF_MATH_ELEMENT_H

#include "cases/base/both.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The smallest P whose square is distinguishable from 0 next to operands down to FA_LEAST_OPERAND. */
#define FA_LEAST_WEIGHT 0x1p-32f
#define FA_LEAST_OPERAND 0x1p-28f
/* A term's size includes this much of the error of its derivative factor. What that error may cost is then
 * below what the vacuity check resolves (relative_resolution), and an unknown derivative does not make a case
 * vacuous. */
#define FA_UNSURE_SLOPE 1024.0f
#define FA_TINY_WEIGHT 0x1p-100f
#define FA_GREATEST_WEIGHT 0x1p50f /* clamps infinities and NaN, so that squares stay finite */

/* exp by x = k ln2 + r, |r| <= ln2 / 2, Taylor to r^13 (next term 4e-18 relative). ln2 is split in two parts,
 * the first with 21 trailing zero bits, so that k * part is exact. Branch-free, so that it vectorises;
 * explicit fma, so that every instruction set gives the same bits. */
FA_BOTH double fa_element_exp(double x) {
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

/* e = absolute error of x, before its exponential exp(x - c). */
FA_BOTH float fa_element_logit_error(float e, double x, double c, double a, double b, double k) {
  double v = e + (a * fabs(x - c) + b * fabs(x) + k);
  return x == -INFINITY ? 0.0f : (float)v;
}

FA_BOTH float fa_element_product_error(float e, double x, double k, double a, double b) {
  return (float)(k * e + a * fabs(x) + b);
}

FA_BOTH float fa_element_magnitude(double x, double by) {
  return (float)fabs(x * by);
}

/* The square of a magnitude, of nonzero ones at least that of FA_LEAST_OPERAND. */
FA_BOTH float fa_element_square(float to) {
  float x = to > 0.0f && to < FA_LEAST_OPERAND ? FA_LEAST_OPERAND : to;
  return x * x;
}

/* P as a float; tiny ones are raised, so that no product with one is subnormal (slow, and inexact). */
FA_BOTH float fa_element_weight(double p) {
  float tiny = p > 0 ? FA_TINY_WEIGHT : 0.0f, f = p < FA_GREATEST_WEIGHT ? (float)p : FA_GREATEST_WEIGHT;
  return f > tiny ? f : tiny;
}

/* The size x for which rounding to nearest, with relative error 1 / per_u, gives this value's error: below
 * `floor` the error stays that of floor, but is never more than the value itself (the kernel can always round
 * to 0). */
FA_BOTH float fa_element_rounded_like(float x, float at_most, float floor, float per_u) {
  float whole = at_most * per_u, raised = whole < floor ? whole : floor;
  return x > raised ? x : raised;
}

/* A pair's terms of the bounds of O: p is P, z dropout's factor, e the relative error of p. */
typedef struct fa_pair_weights {
  float w, we; /* p z as it is rounded, p z e */
  float pe;    /* p e */
} fa_pair_weights;

FA_BOTH fa_pair_weights fa_element_weights(double p, float z, float e, float floor, float per_u) {
  fa_pair_weights out;
  float pj = fa_element_weight(p), pz = pj * z;
  out.pe = pj > 0.0f ? pj * e + FA_TINY_WEIGHT : 0.0f;
  out.we = out.pe * z;
  out.w = fa_element_rounded_like(pz, pz + out.we, floor, per_u);
  return out;
}

/* What the square of w, as fa_element_rounded_like returned it for this floor, counts. A rounding's error squared is 0.18 of
 * its worst case's square in the mean over mantissas (ref/compare/stats.c); below the normal range errors are uniform up to
 * half a step, 1/3 of it, and what is less than half a step is lost whole. */
FA_BOTH float fa_element_below_normal(float w, float floor) {
  const float uniform = (float)(1 / 3.0 / 0.18), lost = (float)(1 / 0.18);
  return w < floor ? lost : w == floor ? uniform : 1.0f;
}

FA_BOTH float fa_element_weight_square(float w, double p, float top, float at_top, float floor) {
  float v = w > 0.0f && w < FA_LEAST_WEIGHT ? FA_LEAST_WEIGHT : w;
  v = (float)p >= top ? v * at_top : v;
  return v * v * fa_element_below_normal(w, floor);
}

/* What all pairs of a row of the backward have in common: rows.h, fa_row_gradient. */
typedef struct fa_pair_limits {
  float floor_p, floor_ds, per_u_p, per_u_ds, tiny, k_d, e_delta, u_dp, size_delta;
  double per_unit, scaled; /* scaled: delta / unit */
} fa_pair_limits;

/* A pair's terms of the bounds of the gradients. part: its share of the row's and the key's sum of terms. */
typedef struct fa_pair_gradient {
  float w, we, g, ge, part;
} fa_pair_gradient;

/* dropped: there is dropout, with factor z; capped: there is a softcap, with derivative and its error. Both are constants
 * where this is called, so that no loop tests them for every element. */
FA_BOTH fa_pair_gradient fa_element_gradient(const fa_pair_limits *r, double p, double dp, float e, float d,
                                             bool dropped, double z, bool capped, float derivative,
                                             float derivative_err) {
  const float most = FA_GREATEST_WEIGHT;
  fa_pair_gradient out;
  float pj = fa_element_weight(p), zj = dropped ? (float)z : 1.0f;
  float pe = pj > 0.0f ? pj * e + FA_TINY_WEIGHT : 0.0f;
  float y = (float)fabs((dropped ? z : 1.0) * dp * r->per_unit - r->scaled);
  float size = zj * (float)fabs(dp * r->per_unit) + r->size_delta;
  float ey = zj * r->k_d * d + r->e_delta + r->u_dp * size;
  float pz = pj * zj, ds = pj * y, eds = pe * y + pj * y * 0x1p-22f + (pj + pe) * ey;
  float lost = capped ? r->tiny * (1.0f + derivative) : r->tiny, part = pj * size;
  eds = eds * derivative + (ds + eds) * derivative_err + (pj > 0.0f ? lost : 0.0f);
  ds = ds * derivative;
  part = capped ? part * (derivative + FA_UNSURE_SLOPE * derivative_err) : part;
  out.part = part;
  out.we = pe * zj;
  out.w = fa_element_rounded_like(pz, pz + out.we, r->floor_p, r->per_u_p);
  out.g = fa_element_rounded_like(ds > most ? most : ds, ds + eds, r->floor_ds, r->per_u_ds);
  out.ge = eds;
  return out;
}

/* Of a row whose P is already narrow when dS = P (Z dP - delta) is formed. */
typedef struct fa_lost_weights {
  double per_unit, k_d, e_delta, u_dp, delta; /* as in fa_pair_limits */
  double floor;                               /* what a P below the normal range loses */
} fa_lost_weights;

/* What that is: times the difference, which has errors of its own, and the slope of the score chain. */
FA_BOTH float fa_element_lost_weight(const fa_lost_weights *r, double p, double dp, float e, float d,
                                     double z, double slope) {
  const double size = (z * fabs(dp) + fabs(r->delta)) * r->per_unit;
  const double by = fabs(z * dp - r->delta) * r->per_unit;
  const double error = z * r->k_d * d + r->e_delta + r->u_dp * size;
  const double lost = fmin(r->floor, p * (1 + e));
  return (float)(lost * (by + error) * slope * 1.0001);
}

typedef struct fa_pair_squares {
  float w2, g2, exact; /* exact: what w2 lacks because p is near 1 */
} fa_pair_squares;

/* near: 0, or 1 / u of a P that is rounded to nearest, and exactly representable at 1. */
FA_BOTH fa_pair_squares fa_element_gradient_squares(double p, float w, float we, float g, float near,
                                                    float floor_p, float floor_ds) {
  const float least = FA_LEAST_WEIGHT;
  fa_pair_squares out;
  float a = w > 0.0f && w < least ? least : w, b = g > 0.0f && g < least ? least : g;
  /* 1 is representable: rounding to nearest never costs more than the distance to it. */
  float at_most = near * ((float)fabs(1.0 - p) + we);
  bool less = (near > 0.0f) & (at_most < a);
  out.exact = less ? a * a : 0.0f;
  a = less ? at_most : a;
  out.w2 = a * a * fa_element_below_normal(w, floor_p);
  out.g2 = b * b * fa_element_below_normal(g, floor_ds);
  return out;
}

/* What half an ulp of an output type is: biased exponents of a double that are its normal range, and by how many powers of
 * two it is below the binade. */
typedef struct fa_ulp {
  int low, high, shift;
} fa_ulp;

/* fa_half_ulp of an output type, for finite x. */
FA_BOTH double fa_element_half_ulp(double x, const fa_ulp *t) {
  const int64_t low = t->low, high = t->high;
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  int64_t exponent = (int64_t)(bits >> 52 & 0x7ff);
  exponent = exponent < low ? low : exponent;
  exponent = exponent > high ? high : exponent;
  const uint64_t u = (uint64_t)(exponent - t->shift) << 52; /* a normal double for every output type */
  double y;
  memcpy(&y, &u, sizeof y);
  return y;
}

/* One element of the statistics (ref/compare/internal.h, fa_stats_add). */
typedef struct fa_statistic_part {
  double part, square;
  bool used, diffuse;
} fa_statistic_part;

/* e: got - want; h: half an ulp of want. */
FA_BOTH fa_statistic_part fa_element_statistic(bool counts, double e, double h, float quant, float accum,
                                               double narrow) {
  fa_statistic_part out;
  const double third = accum / 3.0, inner = 0.18 * narrow * narrow, outer = h * h / 3 + third * third;
  const bool several = quant > 2 * narrow, lone = (8 * inner > outer) & !several;
  out.used = counts & (inner + outer > 0) & !lone;
  const double variance = out.used ? inner + outer : 1, of = out.used ? e : 0;
  out.part = of / sqrt(variance);
  out.square = of * of / variance;
  out.diffuse = out.used & (inner > 2 * outer) & several;
  return out;
}

FA_BOTH double fa_element_lesser(double x, double y) {
  return x < y ? x : y;
}

/* An element's part of its row's print, which is the xor of all that are compared: rows in which the same numbers were got, and
 * wanted, have the same, and so the same errors. Want is rounded, since another sum of the same terms has other last bits. */
FA_BOTH uint64_t fa_element_print(double got, double want, int64_t column) {
  const double rounded = (float)want;
  uint64_t x, y;
  memcpy(&x, &got, sizeof x);
  memcpy(&y, &rounded, sizeof y);
  x ^= y << 32 | y >> 32;
  x = (x ^ ((uint64_t)column + 1) * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  return (x ^ x >> 29) * 0x94d049bb133111ebu;
}

/* What all elements of a row of an output have in common: rows.h, fa_row_settle. */
typedef struct fa_settle_terms {
  double unit;              /* of the sums, and of what float32 sums may lose */
  double lambda, exact;     /* exact: what squares omits from the partial sums */
  double u_narrow, u_noise; /* of narrow roundings: worst case, and of squares */
  double by_errors, gamma, by_value, add;
  double zero; /* 0: where there are no terms and no value, there is no bound either; else 1 */
} fa_settle_terms;

typedef struct fa_settled {
  float quant, noise, accum;
} fa_settled;

/* squared: squares holds; all_squared: they are of all terms (exact is 0). */
FA_BOTH fa_settled fa_element_settle(const fa_settle_terms *t, double value, float worst, bool squared,
                                     float squares, bool all_squared, float errors) {
  fa_settled out;
  const double size = fabs(value), l1 = worst * t->unit;
  const double root = squared ? sqrt((double)squares) : 0, l2 = squared ? root * t->unit : l1;
  const double whole = squared && !all_squared ? sqrt(squares + t->exact) : root;
  const double g = squared ? fa_element_lesser(l1, size + 4 * whole * t->unit) : l1;
  const double any = ((worst == 0) & (errors == 0) & (size == 0)) ? t->zero : 1;
  const double a = (errors * t->by_errors + t->gamma * g + size * t->by_value + t->add) * any;
  out.quant = (float)(t->u_narrow * fa_element_lesser(l1, t->lambda * l2) * any);
  out.noise = (float)(t->u_noise * l2 * any);
  out.accum = (float)a;
  return out;
}

#endif
