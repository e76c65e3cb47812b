/* Formulas of the bounds against values worked out by hand; test_formula.c has drawn ones. */
#include "cases/base/rng.h"
#include "ref/attention/amax.h"
#include "ref/bounds/gradient_formula.h"
#include "ref/bounds/sink_formula.h"
#include "ref/math/element.h"
#include "ref/merge/row.h"
#include "ref/reference.h"
#include "ref/tiles/lse.h"
#include "tests/support/check.h"

#include <math.h>

/* Where a comparison decides, on both sides of it. */
static void check_edges(void) {
  const fa_profile exact = {.operand = {[FA_PRODUCT_DP] = 0x1p-20}},
                   above = {.operand = {[FA_PRODUCT_DP] = 0x1.01p-20}};
  CHECK(!fa_bound_coarse_operands(&exact, FA_PRODUCT_DP) && fa_bound_coarse_operands(&above, FA_PRODUCT_DP));
}

/* A number at its floor stands for an error that is uniform, one below it is lost whole, one above it has the usual error. */
static void check_below_normal(void) {
  CHECK(fa_element_below_normal(3, 2) == 1 && fa_element_below_normal(3, 0) == 1);
  CHECK(fabs(0.18 * fa_element_below_normal(2, 2) - 1 / 3.0) < 1e-6);
  CHECK(fabs(0.18 * fa_element_below_normal(1, 2) - 1) < 1e-6);
  CHECK(fa_element_weight_square(0.5f, 0.25, 0.5f, 0.25f, 0.75f) ==
        0.25f * fa_element_below_normal(0.5f, 0.75f));
  const fa_pair_squares s = fa_element_gradient_squares(0.25, 0.5f, 0, 4, 0, 0.75f, 4);
  CHECK(s.w2 == 0.25f * fa_element_below_normal(0.5f, 0.75f) && s.g2 == 16 * fa_element_below_normal(4, 4));
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

/* What a merged element may be off: each part's share by its own errors, and what is flushed, weight and product, whatever the weight. */
static void check_merged(void) {
  double lse[] = {0, -500, -INFINITY}, weight[] = {1, 0, 0}, eps[] = {0x1p-20, 0, 0}, o[] = {2, -3, 0};
  const fa_merge_row r = {.n = 3, .width = 1, .lse = lse, .weight = weight, .eps = eps, .o = o},
                     flushed = {
                         .n = 1, .width = 1, .lse = lse + 1, .weight = weight + 1, .eps = eps, .o = o + 1};
  CHECK(fa_merge_o_error(&flushed, 0, 0) == 4 * 0x1p-126);
  CHECK(fa_merge_o_error(&r, 0, 0) == 2 * (0x1p-20 + 6 * 0x1p-24));
}

/* amax_o of an O that is 0 is in doubt by what O was rounded by, unless the reference knows all of it to be 0. */
static void check_amax(void) {
  static const fa_problem p;
  static const fa_tensors in;
  static uint16_t zeros[4];
  const fa_tensor o = {.dtype = FA_F16, .rank = 1, .shape = {4}, .stride = {1}, .data = (char *)zeros};
  double value[4] = {0}, amax[] = {0};
  float accum[] = {0.5}, scale[] = {1};
  fa_wants forward = {0};
  fa_want *w = &forward.t[FA_T_AMAX_O], none = {0};
  forward.t[FA_T_O] = (fa_want){.dtype = FA_F16, .n = 4, .value = value};
  *w = (fa_want){.n = 1, .value = amax, .accum = accum, .scale = scale};
  fa_ref_amax_of_given(&p, &in, &o, &forward);
  CHECK(amax[0] == 0 && accum[0] == (float)(1.0001 * 0x1p-25));
  accum[0] = 0;
  fa_ref_amax_of_given(&p, &in, &o, &forward);
  CHECK(amax[0] == 0 && accum[0] == 0);
  w->accum = NULL;
  fa_ref_amax_of_given(&p, &in, &o, &forward);
  CHECK(amax[0] == 0);
  fa_ref_amax_set(&none, 1, (fa_bound_amax){0, 2}); /* there is none */
  /* An element that may hold anything, and does, is not looked at. */
  w->accum = accum, value[3] = NAN, zeros[3] = 0x3c00;
  fa_ref_amax_of_given(&p, &in, &o, &forward);
  CHECK(amax[0] == 0 && accum[0] == 0);
  value[3] = 0, zeros[3] = 0;
  /* An O of another shape, or beside a reference that is not finite, says nothing. */
  w->accum = accum, accum[0] = 7, amax[0] = 3;
  forward.t[FA_T_O].n = 5;
  fa_ref_amax_of_given(&p, &in, &o, &forward);
  CHECK(amax[0] == 3 && accum[0] == 7);
  forward.t[FA_T_O].n = 4, amax[0] = INFINITY;
  fa_ref_amax_of_given(&p, &in, &o, &forward);
  CHECK(amax[0] == INFINITY && accum[0] == 7);
}

/* From which exponent on a type's numbers have all their bits, the largest, and how many bits these are. */
static void check_ulp(void) {
  static const struct {
    fa_dtype t;
    int least, most, bits;
  } types[] = {{FA_E4M3, -6, 8, 4},
               {FA_E5M2, -14, 15, 3},
               {FA_F16, -14, 15, 11},
               {FA_BF16, -126, 127, 8},
               {FA_F32, -126, 127, 24}};
  for (int i = 0; i < 5; ++i) {
    const fa_ulp u = fa_want_ulp(types[i].t);
    CHECK_MSG(u.low == 1023 + types[i].least && u.high == 1023 + types[i].most && u.shift == types[i].bits,
              "%s", fa_dtype_name(types[i].t));
  }
}

int main(void) {
  check_edges();
  check_below_normal();
  check_magnitude();
  check_sink();
  check_lse();
  check_merged();
  check_amax();
  check_ulp();
  return check_done();
}
