/* What an operation of an expression makes of its arguments' values and errors, for drawn arguments: what
 * tests/ref/recorded/lanes.txt holds.
 *
 * usage: test_ref_lanes [--write]    (from the top of the source tree) */
#include "ref/mods/lane_ints.h"
#include "ref/mods/lane_slopes.h"
#include "tests/held/drawn.h"
#include "tests/held/tally.h"
#include "tests/support/check.h"

#include <float.h>
#include <string.h>

enum { DRAWS = 6000, NODE = 4 };

static void add(tally *t, const char *what, int op, fa_lane r) {
  char name[48];
  snprintf(name, sizeof name, "%s%d.v", what, op);
  tally_add(t, name, r.v);
  snprintf(name, sizeof name, "%s%d.e", what, op);
  tally_add(t, name, r.e);
  snprintf(name, sizeof name, "%s%d.fault", what, op);
  tally_add(t, name, r.fault);
}

/* Values that are exact, near the ends of f32, infinite, and others; errors of 0, small, as large as the value, unknown. */
static fa_lane some_float(const drawn *d, int at) {
  const double sign = drawn_sign(d, at), halves = (double)drawn_below(d, at + 1, 9) / 2;
  const double some[] = {
      0,       halves,  1,        drawn_power(d, at + 2, -3, 5),      drawn_power(d, at + 2, -3, 5),
      FLT_MAX, FLT_MIN, 0x1p-127, drawn_power(d, at + 2, -126, -100), INFINITY};
  const double v = sign * some[drawn_below(d, at + 3, (int)(sizeof some / sizeof *some))];
  const double errors[] = {0,       0,       drawn_power(d, at + 4, 8, 30), drawn_power(d, at + 4, -2, 4),
                           fabs(v), INFINITY};
  const double e = errors[drawn_below(d, at + 5, (int)(sizeof errors / sizeof *errors))];
  return (fa_lane){v, isinf(v) && e < INFINITY ? 0 : e, 0};
}

static fa_lane some_int(const drawn *d, int at) {
  const double some[] = {
      0, 1, -1, INT32_MAX, INT32_MIN, drawn_below(d, at, 40) - 8, drawn_below(d, at + 1, 70000) - 35000};
  return (fa_lane){some[drawn_below(d, at + 2, (int)(sizeof some / sizeof *some))], drawn_yes(d, at + 3, 0.2),
                   0};
}

static fa_lane some_bool(const drawn *d, int at) {
  return (fa_lane){drawn_yes(d, at, 0.5), drawn_yes(d, at + 1, 0.3), drawn_yes(d, at + 2, 0.15) ? NODE : 0};
}

static void add_floats(tally *t, const drawn *d) {
  static const int unary[] = {FA_EXPR_NEG,  FA_EXPR_ABS,     FA_EXPR_EXP,     FA_EXPR_LOG,   FA_EXPR_SQRT,
                              FA_EXPR_TANH, FA_EXPR_SIN,     FA_EXPR_COS,     FA_EXPR_FLOOR, FA_EXPR_CEIL,
                              FA_EXPR_ERF,  FA_EXPR_SIGMOID, FA_EXPR_AS_FLOAT},
                   binary[] = {FA_EXPR_MIN, FA_EXPR_MAX, FA_EXPR_ADD, FA_EXPR_SUB, FA_EXPR_MUL, FA_EXPR_DIV};
  const fa_lane a = some_float(d, 0), b = some_float(d, 10);
  for (size_t i = 0; i < sizeof unary / sizeof *unary; ++i)
    add(t, "unary", unary[i],
        fa_lane_float_unary((fa_expr_op)unary[i], a, drawn_yes(d, 20 + (int)i, 0.5), NODE));
  for (size_t i = 0; i < sizeof binary / sizeof *binary; ++i)
    add(t, "binary", binary[i], fa_lane_float_binary((fa_expr_op)binary[i], a, b, NODE));
  add(t, "to_int", 0, fa_lane_to_int(a, NODE));
  add(t, "to_float", 0, fa_lane_to_float(some_int(d, 40)));
  add(t, "float", 0,
      fa_lane_float(drawn_yes(d, 51, 0.1) ? NAN : a.v, a.e, drawn_power(d, 50, 8, 24), drawn_yes(d, 52, 0.5),
                    NODE));
}

/* Of moderate size, so that libm's last bit is all that machines differ by. */
static fa_lane some_base(const drawn *d, int at) {
  const double some[] = {0, 1, 2, drawn_power(d, at + 1, -4, 5), drawn_power(d, at + 1, -4, 5)};
  const double v = drawn_sign(d, at) * some[drawn_below(d, at + 2, 5)];
  const double errors[] = {0, 0, drawn_power(d, at + 3, 6, 24), drawn_power(d, at + 3, -1, 6), fabs(v)};
  return (fa_lane){v, errors[drawn_below(d, at + 4, 5)], 0};
}

static void add_powers(tally *t, const drawn *d) {
  const fa_lane a = some_base(d, 100), b = some_base(d, 110), y = fa_lane_pow(a, b, NODE);
  const fa_lane x = some_float(d, 120), whole = {drawn_below(d, 131, 7) - 2, 0, 0};
  add(t, "pow", 0, y);
  add(t, "pow_of_whole", 0, fa_lane_float_binary(FA_EXPR_POW, a, whole, NODE));
  add(t, "pow_of_any", 0, fa_lane_pow(x, whole, NODE));
  add(t, "pow_by_base", 0, fa_lane_pow_by_base(a, b));
  add(t, "pow_by_base_whole", 0, fa_lane_pow_by_base(a, whole));
  if (!y.fault) add(t, "pow_by_exponent", 0, fa_lane_pow_by_exponent(a, b, y, drawn_yes(d, 130, 0.5)));
  add(t, "erf_slope", 0, fa_lane_erf_slope(a));
  add(t, "erf_slope_unknown", 0, fa_lane_erf_slope((fa_lane){a.v, INFINITY, 0}));
  const fa_lane s = fa_lane_sigmoid(a, NODE);
  add(t, "sigmoid_slope", 0, fa_lane_sigmoid_slope(s));
}

static void add_ints(tally *t, const drawn *d) {
  const fa_lane a = some_int(d, 200), b = some_int(d, 210), c = some_bool(d, 220), e = some_bool(d, 230);
  static const int arithmetic[] = {FA_EXPR_ADD, FA_EXPR_SUB,      FA_EXPR_MUL,      FA_EXPR_MIN,  FA_EXPR_MAX,
                                   FA_EXPR_DIV, FA_EXPR_FLOORDIV, FA_EXPR_FLOORMOD, FA_EXPR_REM,  FA_EXPR_SHL,
                                   FA_EXPR_SHR, FA_EXPR_BITAND,   FA_EXPR_BITXOR,   FA_EXPR_BITOR};
  static const int unary[] = {FA_EXPR_NEG, FA_EXPR_ABS, FA_EXPR_BITNOT};
  for (size_t i = 0; i < sizeof arithmetic / sizeof *arithmetic; ++i)
    add(t, "int", arithmetic[i], fa_lane_int_binary((fa_expr_op)arithmetic[i], a, b, NODE));
  for (size_t i = 0; i < sizeof unary / sizeof *unary; ++i)
    add(t, "int_unary", unary[i], fa_lane_int_unary((fa_expr_op)unary[i], a, NODE));
  for (int op = FA_EXPR_BITAND; op <= FA_EXPR_BITOR; ++op)
    add(t, "bits", op, fa_lane_bits((fa_expr_op)op, c, e));
  for (int op = FA_EXPR_AND; op <= FA_EXPR_OR; ++op)
    add(t, "logical", op, fa_lane_logical((fa_expr_op)op, c, e));
}

static void add_choices(tally *t, const drawn *d) {
  const fa_lane c = some_bool(d, 300);
  fa_lane a = some_float(d, 310), b = drawn_yes(d, 325, 0.2) ? a : some_float(d, 320);
  const fa_lane i = some_int(d, 340), k = drawn_yes(d, 355, 0.2) ? i : some_int(d, 350);
  if (drawn_yes(d, 326, 0.3)) b.v = a.v + (drawn_yes(d, 327, 0.5) ? a.e + b.e : a.e);
  if (isnan(b.v)) b = a;
  for (int op = FA_EXPR_LT; op <= FA_EXPR_NE; ++op) {
    add(t, "compare", op, fa_lane_compare((fa_expr_op)op, a, b, true));
    add(t, "compare_ints", op, fa_lane_compare((fa_expr_op)op, i, k, false));
  }
  a.fault = drawn_yes(d, 360, 0.1) ? NODE : 0, b.fault = drawn_yes(d, 361, 0.1) ? NODE + 1 : 0;
  if (!isinf(a.v) && !isinf(b.v)) add(t, "select", 0, fa_lane_select(c, a, b, true));
  add(t, "select_int", 0, fa_lane_select(c, i, k, false));
}

int main(int argc, char **argv) {
  static tally t;
  for (uint64_t number = 0; number < DRAWS; ++number) {
    const drawn d = {.number = number};
    add_floats(&t, &d);
    add_powers(&t, &d);
    add_ints(&t, &d);
    add_choices(&t, &d);
  }
  tally_hold(&t, "tests/ref/recorded/lanes.txt", argc > 1 && strcmp(argv[1], "--write") == 0);
  return check_done();
}
