/* The formulas of the bounds, of many drawn arguments: what tests/ref/recorded/formula.txt holds. A bound is a sum of terms of which
 * one is the largest in nearly all cases, so that a slip in another shows in none; here each of them is the largest for some draws,
 * as all but a few are 0 there.
 *
 * usage: test_ref_formula [--write]    (from the top of the source tree)
 * After an intended change: test_ref_formula --write, and the commit says what became larger or smaller, and why. */
#include "ref/bounds/gradient_formula.h"
#include "tests/held/drawn.h"
#include "tests/held/tally.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

enum { DRAWS = 4000 };

/* A call: its numbers, and what they were drawn for. */
typedef struct made {
  fa_profile profile;
  fa_problem problem;
  fa_ref_call call;
} made;

static double limit(const drawn *d, int at) {
  return drawn_yes(d, at, 0.5) ? INFINITY : drawn_power(d, at, -16, 4);
}

static void draw_roundings(const drawn *d, fa_profile *p) {
  double *const units[] = {&p->u_p,          &p->u_ds,       &p->u_p_in_ds,    &p->u_dropout,
                           &p->u_operand,    &p->eps_exp,    &p->eps_log,      &p->eps_tanh,
                           &p->u_scores,     &p->u_dp,       &p->u_delta,      &p->truncated_p,
                           &p->truncated_ds, &p->u_partials, &p->u_o_descaled, &p->u_lse};
  double *const floors[] = {&p->floor_dq,      &p->floor_dkv,      &p->floor_dbias,     &p->floor_p,
                            &p->floor_operand, &p->floor_scores,   &p->floor_dp,        &p->floor_ds,
                            &p->floor_delta,   &p->floor_partials, &p->floor_o_descaled};
  double *const limits[] = {&p->max_p, &p->max_scores, &p->max_dp, &p->max_weight, &p->max_partials};
  for (size_t i = 0; i < sizeof units / sizeof *units; ++i) *units[i] = drawn_maybe(d, 1000 + (int)i, 3, 25);
  for (size_t i = 0; i < sizeof floors / sizeof *floors; ++i)
    *floors[i] = drawn_maybe(d, 1100 + (int)i, 8, 150);
  for (size_t i = 0; i < sizeof limits / sizeof *limits; ++i) *limits[i] = limit(d, 1200 + (int)i);
}

static void draw_products(const drawn *d, fa_profile *p) {
  for (int i = 0; i < FA_N_PRODUCTS; ++i) {
    const int at = 1300 + 8 * i;
    p->accumulator[i] = (fa_accumulator)drawn_below(d, at, FA_ACCUMULATOR_BF16 + 1);
    p->operand[i] = drawn_maybe(d, at + 1, 3, 25);
    p->operand_floor[i] = drawn_maybe(d, at + 2, 8, 150);
    p->operand_step[i] = drawn_maybe(d, at + 3, 3, 25);
    p->operand_max[i] = limit(d, at + 4);
  }
}

static void draw_profile(const drawn *d, fa_profile *p) {
  draw_roundings(d, p);
  draw_products(d, p);
  p->mma_block = (const int[]){0, 4, 8, 16}[drawn_below(d, 1, 4)];
  p->mma_extra_bits = (int)drawn_below(d, 2, 4);
  p->block_n = (const int[]){0, 1, 16, 64, 128, 176}[drawn_below(d, 3, 6)];
  p->block_m = (const int[]){1, 16, 64, 128}[drawn_below(d, 4, 4)];
  p->max_splits = (const int[]){1, 1, 2, 8, 128}[drawn_below(d, 5, 5)];
  p->accumulator_keys = (const int[]){0, 0, 128, 512}[drawn_below(d, 6, 4)];
  bool *const flags[] = {&p->max_rounded, &p->exp_scaled,   &p->dkv_atomic, &p->p_kept,
                         &p->ds_scaled,   &p->operands_cut, &p->p_descaled, &p->descales};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; ++i) *flags[i] = drawn_yes(d, 1400 + (int)i, 0.3);
}

static void make(const drawn *d, made *m) {
  static char some_expression[] = "x";
  memset(m, 0, sizeof *m);
  draw_profile(d, &m->profile);
  fa_problem *p = &m->problem;
  p->scale = (drawn_yes(d, 7, 0.3) ? -1 : 1) * drawn_power(d, 8, -3, 12) * !drawn_yes(d, 9, 0.05);
  p->softcap = drawn_power(d, 10, -7, 3);
  p->dropout.p = drawn_yes(d, 11, 0.5) ? 0 : drawn_share(d, 12);
  p->alibi.present = drawn_yes(d, 13, 0.1), p->bias.present = drawn_yes(d, 14, 0.1),
  p->sinks.present = drawn_yes(d, 15, 0.3);
  p->score_mod = drawn_yes(d, 16, 0.1) ? some_expression : NULL;
  m->call = (fa_ref_call){.p = p,
                          .profile = &m->profile,
                          .generic = drawn_yes(d, 17, 0.6),
                          .lambda = 1 + 4 * drawn_share(d, 18),
                          .group = 1 + drawn_below(d, 19, 8),
                          .d = 1 + drawn_below(d, 20, 300),
                          .dv = 1 + drawn_below(d, 21, 300),
                          .v_descale_least = drawn_power(d, 22, -3, 3),
                          .v_descale_most = drawn_power(d, 23, -3, 3)};
}

static int64_t some_number(const drawn *d, int at) {
  return (int64_t)drawn_power(d, at, -12, 0);
}

static void add_sums(tally *t, const drawn *d, const made *m) {
  const fa_ref_call *c = &m->call;
  const int64_t n = some_number(d, 501);
  for (int which = 0; which < FA_N_PRODUCTS; ++which) {
    tally_add(t, "gamma", fa_bound_gamma(c, (fa_product)which, n));
    tally_add(t, "sum_floor", fa_bound_sum_floor(c, (fa_product)which, n));
    tally_add(t, "sum_limit", fa_bound_sum_limit(c, (fa_product)which));
    tally_add(t, "coarse_operands", fa_bound_coarse_operands(&m->profile, (fa_product)which));
  }
  tally_add(t, "lost", fa_bound_lost(n, drawn_power(d, 24, -5, 89)));
  tally_add(t, "unit_of", fa_bound_unit_of(drawn_maybe(d, 25, -1040, 1060)));
  tally_add(t, "unit_of_others",
            fa_bound_unit_of(drawn_yes(d, 26, 0.3)   ? NAN
                             : drawn_yes(d, 27, 0.3) ? INFINITY
                                                     : -1));
  tally_add(t, "sum", fa_bound_sum(c, n));
  tally_add(t, "blocks", fa_bound_blocks(&m->profile, n, m->profile.mma_block));
  tally_add(t, "may_overflow", fa_bound_may_overflow(c));
  tally_add(t, "unit", fa_bound_unit(m->profile.u_p));
  tally_add(t, "changes", fa_bound_changes(c, n));
  const double least = fa_bound_least_spread(c, drawn_maybe(d, 28, 3, 12), n, drawn_yes(d, 29, 0.5));
  const fa_bound_spread spread = {.n = n, .sum = least * (double)n * 2 * drawn_share(d, 30)};
  tally_add(t, "least_spread", least);
  tally_add(t, "is_alike", fa_bound_is_alike(&spread, least));
}

/* Few profiles have nothing that overflows: each of what may is there alone. */
static void add_overflows(tally *t, const drawn *d, const made *m) {
  fa_profile p = {.max_weight = INFINITY, .max_partials = INFINITY};
  const fa_ref_call c = {.p = &m->problem, .profile = &p};
  for (int i = 0; i < FA_N_PRODUCTS; ++i) p.operand_max[i] = INFINITY;
  const int which = (int)drawn_below(d, 31, FA_N_PRODUCTS);
  switch (drawn_below(d, 32, 7)) {
  case 0:
    p.u_scores = drawn_power(d, 33, 3, 12);
    break;
  case 1:
    p.u_dp = drawn_power(d, 34, 3, 12);
    break;
  case 2:
    p.max_weight = drawn_power(d, 35, -9, 0);
    break;
  case 3:
    p.max_partials = drawn_power(d, 36, -16, 0);
    break;
  case 4:
    p.operand_max[which] = drawn_power(d, 37, -16, 0);
    break;
  case 5:
    p.accumulator[which] = (fa_accumulator)drawn_below(d, 38, FA_ACCUMULATOR_BF16 + 1);
    break;
  default:
    break;
  }
  tally_add(t, "one_overflow", fa_bound_may_overflow(&c));
}

static void add_scores(tally *t, const drawn *d, const made *m) {
  const fa_ref_call *c = &m->call;
  const bool from_lse = drawn_yes(d, 39, 0.5);
  bool kept = true;
  tally_add(
      t, "alibi_error",
      fa_bound_alibi_error(drawn_power(d, 40, -2, 9), drawn_maybe(d, 41, -12, 0), drawn_maybe(d, 42, -6, 6)));
  const fa_bound_cap cap = fa_bound_softcap(c, 2 * drawn_share(d, 43) - 1, (float)drawn_maybe(d, 44, -3, 30));
  tally_add(t, "softcap.e", cap.e);
  tally_add(t, "softcap.slope", cap.slope);
  tally_add(t, "softcap.error", cap.error);
  tally_add(t, "lost_scores",
            fa_bound_lost_scores(c, drawn_power(d, 45, -70, 20), drawn_power(d, 46, -70, 20)));
  fa_problem large = m->problem;
  large.scale *= drawn_yes(d, 47, 0.1) ? 0x1p90 : 1;
  const fa_ref_call scaled = {.p = &large, .profile = &m->profile, .d = c->d};
  tally_add(t, "lost_scores_of_large_scales",
            fa_bound_lost_scores(&scaled, drawn_power(d, 48, 3, 20), drawn_power(d, 49, 3, 20)));
  const fa_bound_exponents x =
      fa_bound_exponents_of(c, 9 - drawn_power(d, 50, -7, 9), from_lse, drawn_maybe(d, 51, 9, 30));
  tally_add(t, "exponents.a", x.a);
  tally_add(t, "exponents.s", x.s);
  tally_add(t, "exponents.k", x.k);
  const float e = (float)drawn_power(d, 52, -6, 3);
  tally_add(t, "large_exponent",
            fa_bound_large_exponent(e, -drawn_power(d, 53, -8, 2), drawn_maybe(d, 54, -6, 3), &kept));
  tally_add(t, "large_exponent.kept", kept);
}

static fa_bound_row row_of(const drawn *d) {
  fa_bound_row r;
  fa_bound_row_begin(some_number(d, 502), 30 * (0.5 - drawn_share(d, 55)), drawn_maybe(d, 56, -12, 3), &r);
  if (drawn_yes(d, 57, 0.3))
    r.sink = (fa_bound_sink){.share = drawn_share(d, 58), .error = drawn_maybe(d, 59, 1, 25)};
  r.most = drawn_yes(d, 60, 0.2) ? 3 : 1;
  r.lifted = drawn_maybe(d, 61, 9, 25);
  r.error_sum = drawn_maybe(d, 62, 1, 25);
  r.widest = drawn_maybe(d, 63, -2, 20);
  r.kept = !drawn_yes(d, 64, 0.1);
  r.overflows = drawn_yes(d, 65, 0.05);
  r.max_v = (float)drawn_maybe(d, 66, -12, 3);
  return r;
}

static void add_terms(tally *t, const char *of, const fa_settle_terms *x) {
  const struct {
    const char *name;
    double value;
  } all[] = {{"unit", x->unit},         {"lambda", x->lambda},     {"exact", x->exact},
             {"u_narrow", x->u_narrow}, {"u_noise", x->u_noise},   {"by_errors", x->by_errors},
             {"gamma", x->gamma},       {"by_value", x->by_value}, {"add", x->add},
             {"zero", x->zero}};
  char name[48];
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    snprintf(name, sizeof name, "%s.%s", of, all[i].name);
    tally_add(t, name, all[i].value);
  }
}

static void add_rows(tally *t, const drawn *d, const made *m) {
  const fa_ref_call *c = &m->call;
  fa_bound_row r = row_of(d), begun;
  fa_bound_row_begin(1, 0, 1, &begun);
  tally_add(t, "row_begin.log_l", r.log_l);
  tally_add(t, "row_begin.most", begun.most);
  tally_add(t, "row_begin.kept", begun.kept);
  tally_add(t, "row_begin.max", r.max);
  fa_bound_row_extra(c, &r);
  tally_add(t, "row_extra.changes", r.changes);
  tally_add(t, "row_extra.least", r.least);
  tally_add(t, "row_extra.most", r.spread.most);
  tally_add(t, "row_extra.last", r.spread.last);
  tally_add(t, "row_extra.rounds", r.rounds);
  tally_add(t, "row_extra", r.extra);
  r.spread.n = r.n, r.spread.sum = 2.4 * r.least * (double)r.n * drawn_share(d, 67);
  const double sum = drawn_power(d, 68, -12, 3), unit_v = drawn_power(d, 69, -12, 40),
               sum_error = fa_bound_row_sum_error(c, &r);
  const fa_bound_rounding rounding = fa_bound_row_rounding(c, r.most, sum);
  tally_add(t, "rounding.floor", rounding.floor);
  tally_add(t, "rounding.per_u", rounding.per_u);
  tally_add(t, "rounding.top", rounding.top);
  tally_add(t, "rounding.at_top", rounding.at_top);
  tally_add(t, "row_sum_error", sum_error);
  tally_add(t, "row_shift", fa_bound_row_shift(&r, sum_error));
  tally_add(t, "row_lse",
            fa_bound_row_lse(c, &r, drawn_maybe(d, 70, 1, 20), drawn_maybe(d, 71, -9, 3), sum_error));
  tally_add(t, "row_sum", fa_bound_row_sum(&r, sum_error));
  tally_add(t, "lost_values", fa_bound_lost_values(c, r.n, unit_v));
  tally_add(t, "row_overflows", fa_bound_row_overflows(c, &r, unit_v, sum));
  tally_add(t, "row_has_squares", fa_bound_row_has_squares(c, &r));
  const fa_settle_terms o = fa_bound_row_o(c, &r, unit_v, sum, drawn_yes(d, 72, 0.3), sum_error);
  add_terms(t, "o", &o);
}

static void add_gradients(tally *t, const drawn *d, const made *m) {
  const fa_ref_call *c = &m->call;
  const double unit = drawn_power(d, 73, -12, 40);
  tally_add(t, "dp_error", fa_bound_dp_error(c));
  tally_add(t, "floor_of_ds", fa_bound_floor_of_ds(c));
  tally_add(t, "least_spread_of_ds",
            fa_bound_least_spread_of_ds(c, some_number(d, 503), drawn_maybe(d, 74, -3, 30)));
  tally_add(t, "delta_products", fa_bound_delta_products(c, drawn_maybe(d, 75, -3, 150)));
  tally_add(t, "lost_dp", fa_bound_lost_dp(c, drawn_power(d, 76, -5, 80), drawn_power(d, 77, -5, 80)));
  tally_add(
      t, "e_delta",
      fa_bound_e_delta(drawn_maybe(d, 78, -3, 30), drawn_maybe(d, 79, -3, 30), drawn_power(d, 80, -5, 89)));
  tally_add(t, "u_dp", fa_bound_u_dp(c));
  tally_add(t, "tiny_ds", fa_bound_tiny_ds(drawn_power(d, 81, -89, 20)));
  tally_add(t, "most_ds", fa_bound_most_ds(c, unit));
  tally_add(t, "greatest_ds", fa_bound_greatest_ds(c, unit));
  const fa_product which = (fa_product)drawn_below(d, 82, FA_N_PRODUCTS);
  fa_bound_sums s = fa_bound_sums_of(c, which, some_number(d, 504), unit, drawn_maybe(d, 83, 3, 20),
                                     drawn_maybe(d, 84, 3, 20), drawn_power(d, 85, -5, 5));
  s.exact = drawn_maybe(d, 86, 3, 20), s.by_value = drawn_maybe(d, 87, 3, 26);
  tally_add(t, "sums.raw", s.raw);
  tally_add(t, "sums.limit", s.limit);
  fa_bound_add_in_memory(c, some_number(d, 505), 1 - drawn_power(d, 88, -3, 3), &s);
  const fa_settle_terms terms = fa_bound_settle_terms(c, &s);
  add_terms(t, "gradient", &terms);
}

int main(int argc, char **argv) {
  static tally t;
  const double zeros[] = {0.2, 0.6, 0.93};
  for (uint64_t number = 0; number < DRAWS; ++number) {
    const drawn d = {.number = number, .zeros = zeros[number % 3]};
    made m;
    make(&d, &m);
    add_sums(&t, &d, &m);
    add_overflows(&t, &d, &m);
    add_rows(&t, &d, &m);
    add_gradients(&t, &d, &m);
    add_scores(&t, &d, &m);
  }
  tally_hold(&t, "tests/ref/recorded/formula.txt", argc > 1 && strcmp(argv[1], "--write") == 0);
  return check_done();
}
