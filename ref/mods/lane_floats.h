/* Arithmetic of floats in expressions. */
#ifndef FA_REF_MODS_LANE_FLOATS_H
#define FA_REF_MODS_LANE_FLOATS_H

#include "ref/mods/lane_functions.h"
#include "ref/mods/lane_ints.h"

/* Sums and products of exact operands are exact if the result fits in f32. */
FA_SHARED bool is_exact(fa_lane a, fa_lane b, double v) {
  return a.e == 0 && b.e == 0 && fabs(v) <= FLT_MAX && (double)(float)v == v &&
         (v == 0 || fabs(v) >= FLT_MIN);
}

/* Of arguments whose errors are known. */
FA_SHARED fa_lane float_binary(fa_expr_op op, fa_lane a, fa_lane b, int node) {
  const bool infinite = isinf(a.v) || isinf(b.v);
  double v = 0, e = 0;
  switch (op) {
  case FA_EXPR_POW:
    return fa_lane_pow(a, b, node);
  case FA_EXPR_MIN:
  case FA_EXPR_MAX:
    v = op == FA_EXPR_MIN ? fmin(a.v, b.v) : fmax(a.v, b.v);
    if (infinite) return v == a.v ? a : b;
    return fa_lane_of(v, fmax(a.e, b.e), 0);
  case FA_EXPR_ADD:
  case FA_EXPR_SUB:
    v = op == FA_EXPR_ADD ? a.v + b.v : a.v - b.v;
    e = infinite ? 0 : a.e + b.e;
    break;
  case FA_EXPR_MUL:
    v = a.v * b.v;
    e = infinite ? 0
                 : fa_lane_times(fabs(a.v), b.e) + fa_lane_times(fabs(b.v), a.e) + fa_lane_times(a.e, b.e);
    break;
  default:
    v = a.v / b.v;
    if (infinite)
      e = 0;
    else if (b.e == 0)
      e = b.v == 0 ? 0 : a.e / fabs(b.v);
    else
      e = fabs(b.v) > b.e ? (a.e + fa_lane_times(fabs(v), b.e)) / (fabs(b.v) - b.e) : INFINITY;
    if (e == INFINITY && !isfinite(v)) v = 0;
    return fa_lane_float(v, e, FA_LANE_EPS_DIVIDE, infinite, node);
  }
  if (!infinite && is_exact(a, b, v)) return fa_lane_of(v, 0, 0);
  return fa_lane_float(v, e, FA_LANE_U, infinite, node);
}

FA_SHARED fa_lane fa_lane_float_binary(fa_expr_op op, fa_lane a, fa_lane b, int node) {
  if (a.e == INFINITY || b.e == INFINITY)
    return fa_lane_lost(float_binary(op, fa_lane_of(a.v, 0, 0), fa_lane_of(b.v, 0, 0), node));
  return float_binary(op, a, b, node);
}

/* float_lane for a function whose result may also have an absolute error: never exact. */
FA_SHARED fa_lane function_lane(double v, double e, fa_ref_function_error f, bool from_infinite, int node) {
  return fa_lane_float(v, isinf(v) ? e : e + f.floor, f.eps, from_infinite, node);
}

FA_SHARED fa_lane log_lane(fa_lane a, fa_ref_function_error f, int node) {
  if (a.v > 0 && a.v > a.e) return function_lane(log(a.v), -log1p(-a.e / a.v), f, isinf(a.v), node);
  if (a.e == 0 || a.v + a.e < 0) return function_lane(log(a.v), 0, f, false, node);
  return fa_lane_of(a.v > 0 ? log(a.v) : 0, INFINITY, 0);
}

FA_SHARED fa_lane sqrt_lane(fa_lane a, int node) {
  if (a.e == 0 || a.v >= a.e) { /* sqrt(x) - sqrt(x - e) */
    const double y = sqrt(a.v);
    return fa_lane_float(y, a.e == 0 ? 0 : a.e / (y + sqrt(a.v - a.e)), FA_LANE_EPS_DIVIDE, isinf(a.v), node);
  }
  if (a.v + a.e < 0) return fa_lane_float(sqrt(a.v), 0, FA_LANE_EPS_DIVIDE, false, node);
  return fa_lane_of(a.v > 0 ? sqrt(a.v) : 0, INFINITY, 0);
}

/* The same. */
FA_SHARED fa_lane float_unary(fa_expr_op op, fa_lane a, bool fast, int node) {
  const double size = fabs(a.v), e = a.e;
  const fa_ref_function_error f = fa_lane_function_error(op, fast);
  const bool infinite = isinf(a.v);
  double y;
  switch (op) {
  case FA_EXPR_NEG:
    return fa_lane_of(-a.v, e, 0);
  case FA_EXPR_ABS:
    return fa_lane_of(size, e, 0);
  case FA_EXPR_EXP: /* kernels may multiply by log2(e) first: |x| roundings of the exponent */
    y = exp(a.v);
    if (infinite) return fa_lane_float(y, e, 0, true, node);
    return fa_lane_float(y, fa_lane_times(y, expm1(e)), f.eps + 2 * FA_LANE_U * size, false, node);
  case FA_EXPR_LOG:
    return log_lane(a, f, node);
  case FA_EXPR_SQRT:
    return sqrt_lane(a, node);
  case FA_EXPR_TANH:
    y = tanh(a.v);
    return function_lane(
        y, infinite ? 0 : fmin(2.0, fa_lane_times(e, fmin(1.0, (1 - fabs(y)) * (1 + fabs(y)) + 2 * e))), f,
        true, node);
  case FA_EXPR_SIN:
    return function_lane(sin(a.v), fmin(2.0, fa_lane_times(e, fmin(1.0, fabs(cos(a.v)) + e))), f, false,
                         node);
  case FA_EXPR_COS:
    return function_lane(cos(a.v), fmin(2.0, fa_lane_times(e, fmin(1.0, fabs(sin(a.v)) + e))), f, false,
                         node);
  case FA_EXPR_ERF:
    return fa_lane_erf(a, node);
  case FA_EXPR_SIGMOID:
    return fa_lane_sigmoid(a, node);
  case FA_EXPR_AS_FLOAT:
    return a;
  default:
    return fa_lane_step(op, a);
  }
}

FA_SHARED fa_lane fa_lane_float_unary(fa_expr_op op, fa_lane a, bool fast, int node) {
  if (a.e == INFINITY) return fa_lane_lost(float_unary(op, fa_lane_of(a.v, 0, 0), fast, node));
  return float_unary(op, a, fast, node);
}

/* An int or a condition as a float, and a float as an int, truncated. */
FA_SHARED fa_lane fa_lane_to_float(fa_lane a) {
  if (a.e > 0) return fa_lane_of(a.v, INFINITY, 0);
  return fa_lane_of(a.v, (double)(float)a.v == a.v ? 0 : FA_LANE_U * fabs(a.v), 0);
}

/* An interval that ends within one int is that int. If rounding decides, the value is that of float64, as with comparisons. */
FA_SHARED fa_lane fa_lane_to_int(fa_lane a, int node) {
  const double v = trunc(a.v);
  const bool fits = v >= INT32_MIN && v <= INT32_MAX;
  if (a.e == 0) return fits ? fa_lane_of(v, 0, 0) : fa_lane_of(0, 0, node + 1);
  if (a.v - a.e > INT32_MAX || a.v + a.e < INT32_MIN) return fa_lane_of(0, 0, node + 1);
  if (a.e == INFINITY || trunc(a.v - a.e) != v || trunc(a.v + a.e) != v)
    return fa_lane_of(fits ? v : 0, 1, 0);
  return fa_lane_int(v, 0, node);
}

#endif
