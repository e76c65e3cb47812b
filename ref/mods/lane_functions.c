/* Functions of expressions whose errors need a case of their own, and their derivatives. */
#include "ref/mods/lane.h"

static const double slope_of_erf = 1.1283791670955126; /* 2 / sqrt(pi) */

/* The smallest size of a number in the interval. */
static double nearest_zero(fa_lane a) {
  return fmax(0, fabs(a.v) - a.e);
}

fa_lane fa_lane_step(double (*step)(double), fa_lane a) {
  const double y = step(a.v);
  if (isinf(a.v) || a.e == 0) return (fa_lane){y, a.e, 0};
  return (fa_lane){y, fmax(step(a.v + a.e) - y, y - step(a.v - a.e)), 0};
}

/* ---- erf ---- */

/* The slope falls with the size of the argument, so that it is largest where the interval comes nearest to 0. */
fa_lane fa_lane_erf(fa_lane a, int node) {
  const fa_ref_function_error f = fa_ref_function_error_of(FA_EXPR_ERF, false);
  const double near = nearest_zero(a);
  return fa_lane_float(erf(a.v), fmin(2, fa_lane_times(a.e, slope_of_erf * exp(-near * near))), f.eps, true,
                       node);
}

/* c exp(-x^2), whose own slope is -2 x times it. A kernel rounds x^2 first, and multiplies by log2(e). */
fa_lane fa_lane_erf_slope(fa_lane a) {
  const double near = nearest_zero(a), v = slope_of_erf * exp(-a.v * a.v);
  if (a.e == INFINITY) return (fa_lane){v, slope_of_erf, 0};
  const double moved =
      fmin(slope_of_erf, a.e * fmin(1, 2 * (fabs(a.v) + a.e) * slope_of_erf * exp(-near * near)));
  const double eps = 0x1p-21 + 4 * FA_LANE_U * (1 + a.v * a.v);
  return (fa_lane){v, moved + (v > 0 ? fmin(2 * slope_of_erf, eps * (v + moved)) : 0) + FA_LANE_TINY, 0};
}

/* ---- sigmoid ---- */

/* The slope s (1 - s) changes by a factor of at most exp(e) over e. The rounding of the exponent counts as far as
 * exp(-x) does beside 1. */
fa_lane fa_lane_sigmoid(fa_lane a, int node) {
  const fa_ref_function_error f = fa_ref_function_error_of(FA_EXPR_SIGMOID, false);
  const double y = 1 / (1 + exp(-a.v)), rest = 1 / (1 + exp(a.v));
  const double moved = fmin(1, fa_lane_times(a.e, fmin(0.25, y * rest * exp(fmin(a.e, 700)))));
  const double rounded = isinf(a.v) ? 0 : 2 * FA_LANE_U * fabs(a.v) * rest;
  return fa_lane_float(y, moved, f.eps + rounded, true, node);
}

fa_lane fa_lane_sigmoid_slope(fa_lane y) {
  const double v = y.v * (1 - y.v);
  return (fa_lane){v, fa_lane_times(y.e, 1 + y.e) + FA_LANE_U * y.v + 4 * FA_LANE_U * v + FA_LANE_TINY, 0};
}

/* ---- pow ---- */

static bool is_whole(fa_lane b) {
  return b.e == 0 && b.v == rint(b.v);
}

/* How far (a')^(b') may be from a^b, as a factor: |ln a' - ln a| is at most by; a' and a have one sign. */
static double moved_by(fa_lane a, fa_lane b) {
  const double by = -log1p(-a.e / fabs(a.v));
  return expm1(fa_lane_times(fabs(b.v) + b.e, by) + fa_lane_times(b.e, fabs(log(fabs(a.v)))));
}

/* The base may be 0. */
static fa_lane pow_near_zero(fa_lane a, fa_lane b, int node) {
  const fa_ref_function_error f = fa_ref_function_error_of(FA_EXPR_POW, false);
  const fa_lane unknown = {0, INFINITY, 0};
  const bool both_signs = a.v - a.e < 0;
  if (a.e == 0 && b.e == 0) return fa_lane_float(pow(a.v, b.v), 0, f.eps, false, node);
  if (b.v - b.e <= 0 || (both_signs && !is_whole(b))) return unknown;
  if (a.e == 0) return (fa_lane){0, 0, 0};
  const double v = a.v < 0 && !is_whole(b) ? 0 : pow(a.v, b.v);
  const double reach = fabs(a.v) + a.e, most = fmax(pow(reach, b.v + b.e), pow(reach, b.v - b.e));
  return fa_lane_float(v, most + fabs(v), f.eps, false, node);
}

fa_lane fa_lane_pow(fa_lane a, fa_lane b, int node) {
  const fa_ref_function_error f = fa_ref_function_error_of(FA_EXPR_POW, false);
  const double v = pow(a.v, b.v);
  if (b.v == 0 && b.e == 0) return (fa_lane){1, 0, 0};
  if (isinf(a.v) || isinf(b.v))
    return a.e + b.e > 0 ? (fa_lane){0, INFINITY, 0} : fa_lane_float(v, 0, 0, true, node);
  if (!(fabs(a.v) > a.e)) return pow_near_zero(a, b, node);
  if (a.v < 0 && b.e > 0) return (fa_lane){0, INFINITY, 0};
  if (isnan(v) || isinf(v)) return fa_lane_float(v, 0, f.eps, false, node);
  return fa_lane_float(v, a.e + b.e == 0 ? 0 : fa_lane_times(v == 0 ? FA_LANE_TINY : fabs(v), moved_by(a, b)),
                       f.eps, false, node);
}

/* A product of two factors and its error; kernels round it a few times. */
static fa_lane product(fa_lane a, fa_lane b) {
  const double v = a.v * b.v;
  const double e = fa_lane_times(fabs(a.v), b.e) + fa_lane_times(fabs(b.v), a.e) + fa_lane_times(a.e, b.e);
  return (fa_lane){v, v == 0 && e == 0 ? 0 : e + 0x1p-21 * (fabs(v) + e) + FA_LANE_TINY, 0};
}

/* b a^(b - 1); 0 where b is 0, as PyTorch has it. */
fa_lane fa_lane_pow_by_base(fa_lane a, fa_lane b) {
  const double less = b.v - 1;
  if (b.v == 0 && b.e == 0) return (fa_lane){0, 0, 0};
  const bool exact = b.e == 0 && (double)(float)less == less;
  const fa_lane exponent = {less, exact ? 0 : b.e + FA_LANE_U * (fabs(less) + b.e), 0};
  const fa_lane y = fa_lane_pow(a, exponent, 0);
  if (y.fault) return (fa_lane){isnan(pow(a.v, less)) ? NAN : INFINITY, 0, 0}; /* no derivative in f32 */
  return product(b, y);
}

/* a^b ln a; 0 where a is 0, as PyTorch has it. */
fa_lane fa_lane_pow_by_exponent(fa_lane a, fa_lane b, fa_lane y, bool fast) {
  if (a.v == 0 && a.e == 0) return (fa_lane){b.v < 0 ? INFINITY : 0, 0, 0};
  const fa_lane log_a = fa_lane_float_unary(FA_EXPR_LOG, a, fast, 0);
  if (log_a.fault) return (fa_lane){NAN, 0, 0};
  return product(y, log_a);
}
