/* One pair's value of a node, with its error, and what each operation makes of its arguments' (docs/reference/expressions.md,
 * "Bounds"). The judge on a device compiles the same lines. */
#ifndef FA_REF_MODS_LANE_H
#define FA_REF_MODS_LANE_H

#include "ref/mods/expr.h"

#include "cases/base/both.h"

#include <float.h>
#include <math.h>

/* Error of one rounding to f32, of flushing a subnormal, and of divisions as kernels may compute them. */
#define FA_LANE_U 0x1p-24
#define FA_LANE_TINY 0x1p-126
#define FA_LANE_EPS_DIVIDE 0x1p-22

/* A value, its error (ints and conditions: 1 if rounding may decide it), its fault: 0, or 1 + the node whose operation
 * has no value. Arguments of the functions in lane_*.h have no fault, except fa_lane_logical's and fa_lane_select's. */
typedef struct fa_lane {
  double v, e;
  int fault;
} fa_lane;

FA_SHARED fa_lane fa_lane_of(double v, double e, int fault) {
  fa_lane out;
  out.v = v;
  out.e = e;
  out.fault = fault;
  return out;
}

FA_SHARED fa_ref_function_error fa_ref_function_error_make(double eps, double floor) {
  fa_ref_function_error out;
  out.eps = eps;
  out.floor = floor;
  return out;
}

/* a b for errors: an infinite error means unknown and stays infinite. */
FA_SHARED double fa_lane_times(double a, double b) {
  return isinf(a) || isinf(b) ? INFINITY : a * b;
}

FA_SHARED fa_ref_function_error fa_lane_function_error(fa_expr_op op, bool fast) {
  const bool wave = op == FA_EXPR_SIN || op == FA_EXPR_COS;
  if (fast && op == FA_EXPR_TANH) return fa_ref_function_error_make(0x1p-11, 0);
  if (fast && op == FA_EXPR_LOG) return fa_ref_function_error_make(0x1p-21, 0x1p-21);
  if (fast && wave) return fa_ref_function_error_make(0x1p-21, 0x1p-20);
  if (op == FA_EXPR_POW || op == FA_EXPR_SIGMOID) return fa_ref_function_error_make(0x1p-20, 0);
  return fa_ref_function_error_make(0x1p-21, 0);
}

/* A result with its error so far, rounded by an operation of relative error eps. */
FA_SHARED fa_lane fa_lane_float(double v, double e, double eps, bool from_infinite, int node) {
  if (isnan(v)) return fa_lane_of(0, INFINITY, e == INFINITY ? 0 : node + 1);
  if (isinf(v)) return fa_lane_of(v, e == INFINITY ? e : 0, from_infinite ? 0 : node + 1);
  if (v == 0 && e == 0) return fa_lane_of(v, 0, 0);
  e += eps * (fabs(v) + e) + FA_LANE_TINY;
  if (fabs(v) > FLT_MAX) return fa_lane_of(0, INFINITY, node + 1);
  if (!(fabs(v) + e <= FLT_MAX)) e = INFINITY;
  return fa_lane_of(v, e, 0);
}

/* The value of exact arguments, about which nothing is known. */
FA_SHARED fa_lane fa_lane_lost(fa_lane r) {
  return fa_lane_of(r.fault ? 0 : r.v, INFINITY, 0);
}

#endif
