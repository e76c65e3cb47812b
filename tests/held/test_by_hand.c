/* Formulas of the bounds against values worked out by hand; test_formula.c has drawn ones. */
#include "cases/base/rng.h"
#include "ref/bounds/below_normal.h"
#include "ref/bounds/gradient_formula.h"
#include "ref/bounds/sink_formula.h"
#include "ref/tiles/lse.h"
#include "tests/support/check.h"

#include <math.h>

/* Where a comparison decides, on both sides of it. */
static void check_edges(void) {
  const fa_profile exact = {.operand = {[FA_PRODUCT_DP] = 0x1p-20}},
                   above = {.operand = {[FA_PRODUCT_DP] = 0x1.01p-20}};
  CHECK(!fa_bound_coarse_operands(&exact, FA_PRODUCT_DP) && fa_bound_coarse_operands(&above, FA_PRODUCT_DP));
}

/* A dS at its floor stands for errors that are uniform, one below it is lost whole, one above it is as noisy as it was. */
static void check_below_normal(void) {
  fa_below_normal above = {0, 0}, at = {0, 0}, below = {0, 0};
  CHECK(fa_below_normal_factor(&above) == 1);
  fa_below_normal_add(&above, 3, 9, 2);
  fa_below_normal_add(&at, 2, 4, 2);
  fa_below_normal_add(&below, 1, 1, 2);
  CHECK(fa_below_normal_factor(&above) == 1);
  CHECK(fabs(0.18 * pow(fa_below_normal_factor(&at), 2) - 1 / 3.0) < 1e-6);
  CHECK(fabs(0.18 * pow(fa_below_normal_factor(&below), 2) - 1) < 1e-6);
  fa_below_normal_join(&below, &above);
  CHECK(below.all == 10 && fabs(below.more - (1 / 0.18 - 1)) < 1e-5);
}

/* Only where dS is narrow, and has a floor to speak of, and only for statistics. */
static void check_where_it_matters(void) {
  fa_profile f = {.u_ds = 0x1p-11, .floor_ds = 0x1p-25};
  fa_ref_call c = {.profile = &f, .generic = true};
  CHECK(fa_below_normal_matters(&c));
  f.floor_ds = 0x1p-134;
  CHECK(!fa_below_normal_matters(&c));
  f = (fa_profile){.floor_ds = 0x1p-25};
  CHECK(!fa_below_normal_matters(&c));
  f.u_ds = 0x1p-11, c.generic = false;
  CHECK(!fa_below_normal_matters(&c));
}

/* The least that is stored of a magnitude lies below what it was rounded from, if not far. */
static void check_magnitude(void) {
  static const fa_ulp f16 = {1024 - 15, 1023 + 15, 11};
  const double off = 1 + 0x1p-20, before = 0.4 / (off * off), least = before - 0x1p-13;
  const fa_bound_magnitude m = fa_bound_magnitude_of(0.4f, 0, true, &f16);
  CHECK_MSG(m.least < least && m.least > least * (1 - 0x1p-19), "%.9g, below %.9g", m.least, least);
}

/* A sink's share, made from an LSE that holds it; of none, or in a row without keys, nothing. */
static void check_sink(void) {
  static const fa_problem p;
  const fa_profile profile = {.eps_exp = 0x1p-9};
  const fa_ref_call c = {.p = &p, .profile = &profile};
  const fa_ref_lse lse = {-100, 0.25};
  const fa_bound_sink none = fa_bound_sink_of_lse(&c, -INFINITY, lse, 1),
                      some = fa_bound_sink_of_lse(&c, -103, lse, 0x1p-10);
  const double eta = FA_F32_UNIT * (2 * 3 + 103 + 300) + 0x1p-9 + 0x1p-10;
  const fa_bound_sink hidden = fa_bound_sink_of_maxima(&(fa_bound_maxima){.m = -3, .l = 1}, -3, 1);
  CHECK(none.share == 0 && none.error == 0 && hidden.share == 0 && hidden.error == 0);
  CHECK_MSG(some.share == exp(-3.25) && some.error == fa_bound_sink_grown(eta), "%g, %g", some.share,
            some.error);
}

/* A sum of two doubles is exact in two parts. Where the exponents are this near, a long double holds it. */
static void check_lse(void) {
  for (uint64_t n = 0; n < 2000; ++n) {
    const double max = 8 + 7 * fa_rng_uniform(3, 4, n), sum = 1.5 + fa_rng_uniform(3, 5, n);
    const fa_ref_lse lse = fa_ref_lse_of(max, sum);
    CHECK((long double)lse.value + lse.rest == (long double)max + log(sum));
  }
}

int main(void) {
  check_edges();
  check_below_normal();
  check_where_it_matters();
  check_magnitude();
  check_sink();
  check_lse();
  return check_done();
}
