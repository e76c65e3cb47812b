/* One pair's value of a node, with its error, and what each operation makes of its arguments' (docs/reference/expressions.md,
 * "Bounds"). */
#ifndef FA_REF_MODS_LANE_H
#define FA_REF_MODS_LANE_H

#include "ref/mods/expr.h"

#include <math.h>

/* Error of one rounding to f32, of flushing a subnormal, and of divisions as kernels may compute them. */
#define FA_LANE_U 0x1p-24
#define FA_LANE_TINY 0x1p-126
#define FA_LANE_EPS_DIVIDE 0x1p-22

/* A value, its error (ints and conditions: 1 if rounding may decide it), its fault: 0, or 1 + the node whose operation
 * has no value. Arguments of the functions below have no fault, except fa_lane_logical's and fa_lane_select's. */
typedef struct fa_lane {
  double v, e;
  int fault;
} fa_lane;

/* a b for errors: an infinite error means unknown and stays infinite. */
static inline double fa_lane_times(double a, double b) {
  return isinf(a) || isinf(b) ? INFINITY : a * b;
}

/* ---- lane_ints.c: ints and conditions ---- */

/* An int that may be beyond 32 bits: then it has no value. */
fa_lane fa_lane_int(double v, double e, int node);
fa_lane fa_lane_int_unary(fa_expr_op op, fa_lane a, int node);
fa_lane fa_lane_int_binary(fa_expr_op op, fa_lane a, fa_lane b, int node);
/* & ^ | of conditions. */
fa_lane fa_lane_bits(fa_expr_op op, fa_lane a, fa_lane b);
fa_lane fa_lane_compare(fa_expr_op op, fa_lane a, fa_lane b, bool floats);
/* If one side surely decides alone (false for &&, true for ||), the other does not count, not even its faults. */
fa_lane fa_lane_logical(fa_expr_op op, fa_lane a, fa_lane b);
/* The branch that the condition selects. If rounding may decide, the error covers the other branch. */
fa_lane fa_lane_select(fa_lane c, fa_lane yes, fa_lane no, bool is_float);

/* ---- lane_floats.c ---- */

/* A result with its error so far, rounded by an operation of relative error eps. */
fa_lane fa_lane_float(double v, double e, double eps, bool from_infinite, int node);
/* The value of exact arguments, about which nothing is known. */
fa_lane fa_lane_lost(fa_lane r);
fa_lane fa_lane_float_unary(fa_expr_op op, fa_lane a, bool fast, int node);
fa_lane fa_lane_float_binary(fa_expr_op op, fa_lane a, fa_lane b, int node);
/* An int or a condition as a float, and a float as an int, truncated. */
fa_lane fa_lane_to_float(fa_lane a);
fa_lane fa_lane_to_int(fa_lane a, int node);

/* ---- lane_functions.c: functions with bounds of their own ---- */

fa_lane fa_lane_pow(fa_lane a, fa_lane b, int node);
fa_lane fa_lane_erf(fa_lane a, int node);
fa_lane fa_lane_sigmoid(fa_lane a, int node);
/* floor and ceil: steps of the argument, without a rounding. */
fa_lane fa_lane_step(double (*step)(double), fa_lane a);

/* Derivatives, as value and error without a fault: of pow by its base and by its exponent, of erf, and of a sigmoid
 * whose value is y. */
fa_lane fa_lane_pow_by_base(fa_lane a, fa_lane b);
fa_lane fa_lane_pow_by_exponent(fa_lane a, fa_lane b, fa_lane y, bool fast);
fa_lane fa_lane_erf_slope(fa_lane a);
fa_lane fa_lane_sigmoid_slope(fa_lane y);

#endif
