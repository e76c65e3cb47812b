/* Functions of expressions whose errors need a case of their own. */
#ifndef FA_REF_MODS_LANE_FUNCTIONS_H
#define FA_REF_MODS_LANE_FUNCTIONS_H

#include "ref/mods/lane.h"

#define FA_LANE_SLOPE_OF_ERF 1.1283791670955126 /* 2 / sqrt(pi) */

/* The smallest size of a number in the interval. */
FA_SHARED double nearest_zero(fa_lane a) {
  return fmax(0.0, fabs(a.v) - a.e);
}

FA_SHARED double step_of(fa_expr_op op, double x) {
  return op == FA_EXPR_FLOOR ? floor(x) : ceil(x);
}

/* floor and ceil: steps of the argument, without a rounding. */
FA_SHARED fa_lane fa_lane_step(fa_expr_op op, fa_lane a) {
  const double y = step_of(op, a.v);
  if (isinf(a.v) || a.e == 0) return fa_lane_of(y, a.e, 0);
  return fa_lane_of(y, fmax(step_of(op, a.v + a.e) - y, y - step_of(op, a.v - a.e)), 0);
}

/* ---- erf ---- */

/* The slope falls with the size of the argument, so that it is largest where the interval comes nearest to 0. */
FA_SHARED fa_lane fa_lane_erf(fa_lane a, int node) {
  const fa_ref_function_error f = fa_lane_function_error(FA_EXPR_ERF, false);
  const double near = nearest_zero(a);
  return fa_lane_float(erf(a.v), fmin(2.0, fa_lane_times(a.e, FA_LANE_SLOPE_OF_ERF * exp(-near * near))),
                       f.eps, true, node);
}

/* ---- sigmoid ---- */

/* The slope s (1 - s) changes by a factor of at most exp(e) over e. The rounding of the exponent counts as far as
 * exp(-x) does beside 1. */
FA_SHARED fa_lane fa_lane_sigmoid(fa_lane a, int node) {
  const fa_ref_function_error f = fa_lane_function_error(FA_EXPR_SIGMOID, false);
  const double y = 1 / (1 + exp(-a.v)), rest = 1 / (1 + exp(a.v));
  const double moved = fmin(1.0, fa_lane_times(a.e, fmin(0.25, y * rest * exp(fmin(a.e, 700.0)))));
  const double rounded = isinf(a.v) ? 0 : 2 * FA_LANE_U * fabs(a.v) * rest;
  return fa_lane_float(y, moved, f.eps + rounded, true, node);
}

/* ---- pow ---- */

FA_SHARED bool is_whole(fa_lane b) {
  return b.e == 0 && b.v == rint(b.v);
}

/* How far (a')^(b') may be from a^b, as a factor: |ln a' - ln a| is at most by; a' and a have one sign. */
FA_SHARED double moved_by(fa_lane a, fa_lane b) {
  const double by = -log1p(-a.e / fabs(a.v));
  return expm1(fa_lane_times(fabs(b.v) + b.e, by) + fa_lane_times(b.e, fabs(log(fabs(a.v)))));
}

/* The base may be 0. */
FA_SHARED fa_lane pow_near_zero(fa_lane a, fa_lane b, int node) {
  const fa_ref_function_error f = fa_lane_function_error(FA_EXPR_POW, false);
  const fa_lane unknown = {0, INFINITY, 0};
  const bool both_signs = a.v - a.e < 0;
  if (a.e == 0 && b.e == 0) return fa_lane_float(pow(a.v, b.v), 0, f.eps, false, node);
  if (b.v - b.e <= 0 || (both_signs && !is_whole(b))) return unknown;
  if (a.e == 0) return fa_lane_of(0, 0, 0);
  const double v = a.v < 0 && !is_whole(b) ? 0 : pow(a.v, b.v);
  const double reach = fabs(a.v) + a.e, most = fmax(pow(reach, b.v + b.e), pow(reach, b.v - b.e));
  return fa_lane_float(v, most + fabs(v), f.eps, false, node);
}

FA_SHARED fa_lane fa_lane_pow(fa_lane a, fa_lane b, int node) {
  const fa_ref_function_error f = fa_lane_function_error(FA_EXPR_POW, false);
  const double v = pow(a.v, b.v);
  if (b.v == 0 && b.e == 0) return fa_lane_of(1, 0, 0);
  if (isinf(a.v) || isinf(b.v))
    return a.e + b.e > 0 ? fa_lane_of(0, INFINITY, 0) : fa_lane_float(v, 0, 0, true, node);
  if (!(fabs(a.v) > a.e)) return pow_near_zero(a, b, node);
  if (a.v < 0 && b.e > 0) return fa_lane_of(0, INFINITY, 0);
  if (isnan(v) || isinf(v)) return fa_lane_float(v, 0, f.eps, false, node);
  return fa_lane_float(v, a.e + b.e == 0 ? 0 : fa_lane_times(v == 0 ? FA_LANE_TINY : fabs(v), moved_by(a, b)),
                       f.eps, false, node);
}

#endif
