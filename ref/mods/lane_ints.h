/* Ints and conditions of expressions. */
#ifndef FA_REF_MODS_LANE_INTS_H
#define FA_REF_MODS_LANE_INTS_H

#include "ref/mods/lane.h"

/* An int that may be beyond 32 bits: then it has no value. */
FA_SHARED fa_lane fa_lane_int(double v, double e, int node) {
  const bool fits = v >= INT32_MIN && v <= INT32_MAX;
  return fa_lane_of(fits ? v : 0, e, fits || e != 0 ? 0 : node + 1);
}

FA_SHARED fa_lane fa_lane_int_unary(fa_expr_op op, fa_lane a, int node) {
  if (op == FA_EXPR_BITNOT) return fa_lane_of(-1 - a.v, a.e, 0);
  return fa_lane_int(op == FA_EXPR_NEG ? -a.v : fabs(a.v), a.e, node);
}

FA_SHARED fa_lane no_value(double e, int node) {
  return fa_lane_of(0, e, e != 0 ? 0 : node + 1);
}

/* Divisions. The quotient of two ints of 32 bits, rounded to f64, has the floor and the integer part of the exact
 * one. */
FA_SHARED fa_lane int_divide(fa_expr_op op, fa_lane a, fa_lane b, int node) {
  const double e = fmax(a.e, b.e);
  if (b.v == 0) return no_value(e, node);
  const double rest = fmod(a.v, b.v);
  switch (op) {
  case FA_EXPR_DIV:
    return fa_lane_int(trunc(a.v / b.v), e, node);
  case FA_EXPR_FLOORDIV:
    return fa_lane_int(floor(a.v / b.v), e, node);
  case FA_EXPR_FLOORMOD:
    return fa_lane_int(rest != 0 && (rest < 0) != (b.v < 0) ? rest + b.v : rest, e, node);
  default:
    return fa_lane_int(rest, e, node);
  }
}

/* Shifts by 0 .. 31 and bit by bit. What a shift to the left pushes out of 32 bits has no value. */
FA_SHARED fa_lane int_bits(fa_expr_op op, fa_lane a, fa_lane b, int node) {
  const double e = fmax(a.e, b.e);
  const int64_t x = (int64_t)a.v, y = (int64_t)b.v;
  if (op == FA_EXPR_BITAND) return fa_lane_of((double)(x & y), e, 0);
  if (op == FA_EXPR_BITXOR) return fa_lane_of((double)(x ^ y), e, 0);
  if (op == FA_EXPR_BITOR) return fa_lane_of((double)(x | y), e, 0);
  if (y < 0 || y > 31) return no_value(e, node);
  return fa_lane_int(op == FA_EXPR_SHL ? ldexp(a.v, (int)y) : floor(ldexp(a.v, -(int)y)), e, node);
}

FA_SHARED fa_lane fa_lane_int_binary(fa_expr_op op, fa_lane a, fa_lane b, int node) {
  const double e = fmax(a.e, b.e);
  switch (op) {
  case FA_EXPR_ADD:
    return fa_lane_int(a.v + b.v, e, node);
  case FA_EXPR_SUB:
    return fa_lane_int(a.v - b.v, e, node);
  case FA_EXPR_MUL: /* inexact only far out of range */
    return fa_lane_int(a.v * b.v, e, node);
  case FA_EXPR_MIN:
    return fa_lane_of(fmin(a.v, b.v), e, 0);
  case FA_EXPR_MAX:
    return fa_lane_of(fmax(a.v, b.v), e, 0);
  default:
    break;
  }
  return op >= FA_EXPR_SHL ? int_bits(op, a, b, node) : int_divide(op, a, b, node);
}

FA_SHARED fa_lane fa_lane_compare(fa_expr_op op, fa_lane a, fa_lane b, bool floats) {
  const double d = a.v - b.v, e = a.e + b.e; /* inf - inf: equal */
  const bool less = a.v < b.v, equal = a.v == b.v;
  const bool v = op == FA_EXPR_LT   ? less
                 : op == FA_EXPR_LE ? less || equal
                 : op == FA_EXPR_GT ? !less && !equal
                 : op == FA_EXPR_GE ? !less
                 : op == FA_EXPR_EQ ? equal
                                    : !equal;
  const bool unsure = floats ? e > 0 && !(fabs(d) > e) : e > 0;
  return fa_lane_of(v, unsure, 0);
}

/* If one side surely decides alone (false for &&, true for ||), the other does not count, not even its faults. */
FA_SHARED fa_lane fa_lane_logical(fa_expr_op op, fa_lane a, fa_lane b) {
  const double alone = op == FA_EXPR_OR;
  if (a.fault) return a;
  if (a.v == alone && a.e == 0) return fa_lane_of(alone, 0, 0);
  if (b.fault) return a.e == 0 ? b : fa_lane_of(a.v, 1, 0);
  if (b.v == alone && b.e == 0) return fa_lane_of(alone, 0, 0);
  return fa_lane_of(op == FA_EXPR_OR ? a.v != 0 || b.v != 0 : a.v != 0 && b.v != 0, fmax(a.e, b.e), 0);
}

/* & ^ | of conditions. */
FA_SHARED fa_lane fa_lane_bits(fa_expr_op op, fa_lane a, fa_lane b) {
  if (op == FA_EXPR_BITXOR) return fa_lane_of(a.v != b.v, fmax(a.e, b.e), 0);
  return fa_lane_logical(op == FA_EXPR_BITAND ? FA_EXPR_AND : FA_EXPR_OR, a, b);
}

/* The branch that the condition selects. If rounding may decide, the error covers the other branch. */
FA_SHARED fa_lane fa_lane_select(fa_lane c, fa_lane yes, fa_lane no, bool is_float) {
  const fa_lane taken = c.v != 0 ? yes : no, other = c.v != 0 ? no : yes;
  if (c.fault) return c;
  if (c.e == 0 || taken.fault) return taken;
  const bool same = taken.v == other.v && !other.fault;
  if (!is_float) return fa_lane_of(taken.v, same ? fmax(taken.e, other.e) : 1, 0);
  const double apart = same ? 0 : fabs(taken.v - other.v);
  return fa_lane_of(taken.v, other.fault ? INFINITY : fmax(taken.e, apart + other.e), 0);
}

#endif
