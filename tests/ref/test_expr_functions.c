/* Bounds of the functions of expressions that have a case of their own, against long double and float32 at numbers
 * drawn from the intervals of their arguments, and of their derivatives. */
#include "cases/base/rng.h"
#include "ref/mods/lane_ints.h"
#include "ref/mods/lane_slopes.h"
#include "tests/support/check.h"

#include <float.h>
#include <math.h>

typedef long double real;

static int64_t n_judged, n_lost;

static double uniform(fa_rng *r) {
  return (double)fa_rng_below(r, 1 << 24) / (1 << 24);
}

/* A number of many sizes, and at times a whole one or 0. */
static double draw(fa_rng *r, double most) {
  const int64_t kind = fa_rng_below(r, 8);
  const double size = most * pow(uniform(r), 4);
  if (kind == 0) return 0;
  if (kind == 1) return (double)fa_rng_range(r, -4, 4);
  return (double)(float)(fa_rng_below(r, 2) ? size : -size);
}

static double draw_error(fa_rng *r, double v) {
  const int64_t kind = fa_rng_below(r, 4);
  if (kind < 2) return 0;
  return kind == 2 ? 1e-6 * (fabs(v) + 1) : uniform(r) * (fabs(v) + 0.1);
}

/* An f32 in the interval; its ends and its middle are likely. */
static double pick(fa_rng *r, fa_lane a) {
  const int64_t kind = fa_rng_below(r, 4);
  const double at = kind == 0 ? 0 : kind == 1 ? -1 : kind == 2 ? 1 : 2 * uniform(r) - 1;
  const double x = (double)(float)(a.v + at * a.e);
  return a.e > 0 && fabs(x - a.v) <= a.e ? x : a.v;
}

static void judge(const char *what, fa_lane a, fa_lane b, fa_lane bound, double x, double y, real exact,
                  real f32) {
  if (bound.fault || bound.e == INFINITY || !(fabs(bound.v) + bound.e <= FLT_MAX)) {
    ++n_lost;
    return;
  }
  ++n_judged;
  CHECK_MSG(fabsl(exact - bound.v) <= bound.e * (1 + 1e-9L) + 1e-300L &&
                fabsl(f32 - bound.v) <= bound.e * (1 + 1e-9L) + 0x1p-126L,
            "%s at %.9g +- %.3g, %.9g +- %.3g is %.9g +- %.3g; at %.9g, %.9g it is %.12Lg, in f32 %.9Lg",
            what, a.v, a.e, b.v, b.e, bound.v, bound.e, x, y, exact, f32);
}

static const real slope_of_erf = 1.12837916709551257389615890312154517L;

static float f32_sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}

static void test_one_argument(fa_rng *r) {
  const fa_lane a = {draw(r, 100), 0, 0}, none = {0, 0, 0};
  const fa_lane in = {a.v, draw_error(r, a.v), 0};
  const fa_lane y = fa_lane_sigmoid(in, 0), erfs = fa_lane_erf(in, 0);
  for (int k = 0; k < 8; ++k) {
    const double x = pick(r, in);
    const float f = (float)x, s = f32_sigmoid(f);
    const real sx = 1 / (1 + expl(-(real)x)), rest = 1 / (1 + expl((real)x));
    judge("erf", in, none, erfs, x, 0, erfl(x), erff(f));
    judge("sigmoid", in, none, y, x, 0, sx, s);
    judge("floor", in, none, fa_lane_step(FA_EXPR_FLOOR, in), x, 0, floorl(x), floorf(f));
    judge("ceil", in, none, fa_lane_step(FA_EXPR_CEIL, in), x, 0, ceill(x), ceilf(f));
    judge("slope of erf", in, none, fa_lane_erf_slope(in), x, 0, slope_of_erf * expl(-(real)x * (real)x),
          (float)slope_of_erf * expf(-(f * f)));
    judge("slope of sigmoid", in, none, fa_lane_sigmoid_slope(y), x, 0, sx * rest, s * (1 - s));
    const fa_lane whole = fa_lane_to_int(in, 0);
    if (!whole.fault && whole.e == 0) CHECK_MSG(trunc(x) == whole.v, "int of %.9g +- %.3g", in.v, in.e);
  }
}

static void test_pow(fa_rng *r) {
  const fa_lane a0 = {draw(r, 30), 0, 0}, b0 = {draw(r, 6), 0, 0};
  const fa_lane a = {a0.v, draw_error(r, a0.v), 0},
                b = {b0.v, fa_rng_below(r, 3) ? 0 : draw_error(r, b0.v), 0};
  const fa_lane y = fa_lane_pow(a, b, 0), by_base = fa_lane_pow_by_base(a, b),
                by_exponent = fa_lane_pow_by_exponent(a, b, y, false);
  for (int k = 0; k < 8; ++k) {
    const double x = pick(r, a), p = pick(r, b);
    const float fx = (float)x, fp = (float)p;
    judge("pow", a, b, y, x, p, powl(x, p), powf(fx, fp));
    if (!y.fault)
      judge("pow by base", a, b, by_base, x, p, p == 0 ? 0 : (real)p * powl(x, (real)p - 1),
            fp == 0 ? 0 : fp * powf(fx, fp - 1));
    if (!y.fault && y.e < INFINITY)
      judge("pow by exponent", a, b, by_exponent, x, p, x == 0 ? 0 : powl(x, p) * logl(x),
            fx == 0 ? 0 : powf(fx, fp) * logf(fx));
  }
}

int main(void) {
  fa_rng r = fa_rng_make(51, 0);
  for (int round = 0; round < 100000; ++round) test_one_argument(&r);
  const int64_t before = n_judged;
  for (int round = 0; round < 200000; ++round) test_pow(&r);
  printf("%lld of one argument and %lld of pow judged, %lld without a bound\n", (long long)before,
         (long long)(n_judged - before), (long long)n_lost);
  CHECK(before > 4000000 && n_judged - before > 2000000);
  return check_done();
}
