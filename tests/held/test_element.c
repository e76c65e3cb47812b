/* One pair's and one element's terms, of many drawn arguments: what tests/ref/recorded/element.txt holds, and exp as libm has it.
 *
 * usage: test_ref_element [--write]    (from the top of the source tree)
 * After an intended change: test_ref_element --write, and the commit says what became larger or smaller, and why. */
#include "ref/compare/internal.h"
#include "ref/math/element.h"
#include "tests/held/drawn.h"
#include "tests/held/tally.h"
#include "tests/support/check.h"

enum { DRAWS = 6000 };

/* Up to two units in the last place, down to subnormal results. */
static void check_exp(const drawn *d) {
  const double x =
      drawn_yes(d, 1, 0.2) ? -720 - 60 * drawn_share(d, 2) : drawn_sign(d, 3) * drawn_power(d, 4, -9.4, 30);
  const double is = fa_element_exp(x), want = x < -745.2 ? 0 : exp(x < 709.8 ? x : 709.8);
  CHECK_MSG(fabs(is - want) <= 5e-16 * want + 0x1p-1074, "exp(%.17g) = %.17g, not %.17g", x, is, want);
}

/* The last term counts where the series is farthest from its middle and the result has the smallest unit. */
static void check_exp_far_from_a_power_of_two(void) {
  for (double x = -0.3465; x < -0.34; x += 1.1e-6) {
    const long double is = fa_element_exp(x), want = expl((long double)x);
    CHECK_MSG(fabsl(is - want) < 0x1p-53L, "exp(%.17g) is %Lg units off", x, (is - want) * 0x1p53L);
  }
}

static void add_errors(tally *t, const drawn *d) {
  const float e = (float)drawn_maybe(d, 5, -3, 30);
  const double x = drawn_yes(d, 6, 0.05) ? -INFINITY : drawn_sign(d, 7) * drawn_maybe(d, 8, -7, 3),
               by = drawn_power(d, 9, -20, 20);
  tally_add(t, "logit_error",
            fa_element_logit_error(e, x, drawn_sign(d, 10) * drawn_maybe(d, 11, -7, 3),
                                   drawn_maybe(d, 12, 3, 25), drawn_maybe(d, 13, 3, 25),
                                   drawn_maybe(d, 14, 3, 25)));
  tally_add(t, "product_error",
            fa_element_product_error(e, x == -INFINITY ? 1 : x, drawn_maybe(d, 15, -3, 3),
                                     drawn_maybe(d, 16, 3, 25), drawn_maybe(d, 17, 3, 25)));
  tally_add(t, "magnitude", fa_element_magnitude(x, by));
  tally_add(t, "square", fa_element_square((float)drawn_maybe(d, 18, 0, 40)));
  tally_add(t, "weight", fa_element_weight(drawn_maybe(d, 19, -80, 160)));
  tally_add(t, "rounded_like",
            fa_element_rounded_like((float)drawn_maybe(d, 20, -3, 30), (float)drawn_power(d, 21, -3, 30),
                                    (float)drawn_maybe(d, 22, 0, 20), (float)drawn_power(d, 23, -12, 0)));
  tally_add(t, "lesser", fa_element_lesser(drawn_power(d, 24, -3, 3), drawn_power(d, 25, -3, 3)));
}

static void add_weights(tally *t, const drawn *d) {
  const double p = drawn_maybe(d, 26, 0, 150);
  const fa_pair_weights w =
      fa_element_weights(p, (float)drawn_maybe(d, 27, -2, 0), (float)drawn_maybe(d, 28, -6, 25),
                         (float)drawn_maybe(d, 29, 0, 20), (float)drawn_power(d, 30, -12, 0));
  tally_add(t, "weights.w", w.w);
  tally_add(t, "weights.we", w.we);
  tally_add(t, "weights.pe", w.pe);
  tally_add(t, "weight_square",
            fa_element_weight_square((float)drawn_maybe(d, 31, 0, 40), drawn_power(d, 32, 0, 1),
                                     (float)drawn_power(d, 33, 0, 1), (float)drawn_power(d, 34, 0, 12),
                                     (float)drawn_maybe(d, 201, 0, 20)));
}

static void add_gradient(tally *t, const drawn *d) {
  const fa_pair_limits r = {.floor_p = (float)drawn_maybe(d, 35, 3, 40),
                            .floor_ds = (float)drawn_maybe(d, 36, 3, 40),
                            .per_u_p = (float)drawn_power(d, 37, -12, 0),
                            .per_u_ds = (float)drawn_power(d, 38, -12, 0),
                            .tiny = (float)drawn_maybe(d, 39, 20, 120),
                            .k_d = (float)drawn_maybe(d, 40, 3, 25),
                            .e_delta = (float)drawn_maybe(d, 41, 3, 25),
                            .u_dp = (float)drawn_maybe(d, 42, 3, 25),
                            .size_delta = (float)drawn_maybe(d, 43, 0, 12),
                            .per_unit = drawn_power(d, 44, -5, 5),
                            .scaled = drawn_sign(d, 45) * drawn_maybe(d, 46, 0, 12)};
  const double p = drawn_yes(d, 47, 0.05) ? drawn_power(d, 48, -80, 0) : drawn_maybe(d, 49, 0, 120);
  const fa_pair_gradient g = fa_element_gradient(
      &r, p, drawn_sign(d, 50) * drawn_maybe(d, 51, -3, 12), (float)drawn_maybe(d, 52, -3, 25),
      (float)drawn_maybe(d, 53, -3, 12), drawn_yes(d, 54, 0.5), drawn_maybe(d, 55, -2, 0),
      drawn_yes(d, 56, 0.5), (float)drawn_maybe(d, 57, 0, 12), (float)drawn_maybe(d, 58, 3, 25));
  tally_add(t, "gradient.part", g.part);
  tally_add(t, "gradient.w", g.w);
  tally_add(t, "gradient.we", g.we);
  tally_add(t, "gradient.g", g.g);
  tally_add(t, "gradient.ge", g.ge);
  const double near_one = drawn_yes(d, 59, 0.5) ? 1 - drawn_maybe(d, 60, 2, 30) : p;
  const fa_pair_squares s = fa_element_gradient_squares(
      near_one, (float)drawn_maybe(d, 61, 0, 40), (float)drawn_maybe(d, 62, 2, 30),
      (float)drawn_maybe(d, 63, 0, 40), (float)drawn_maybe(d, 64, -12, 0), (float)drawn_maybe(d, 202, 0, 20),
      (float)drawn_maybe(d, 203, 0, 20));
  tally_add(t, "squares.w2", s.w2);
  tally_add(t, "squares.g2", s.g2);
  tally_add(t, "squares.exact", s.exact);
}

static void add_elements(tally *t, const drawn *d) {
  static const fa_ulp types[] = {{1009, 1038, 11}, {897, 1150, 8}, {897, 1150, 24}};
  tally_add(
      t, "half_ulp",
      fa_element_half_ulp(drawn_sign(d, 65) * drawn_maybe(d, 66, -140, 160), &types[drawn_below(d, 67, 3)]));
  const double h = drawn_maybe(d, 68, 3, 24), narrow = drawn_maybe(d, 69, 3, 24);
  const fa_statistic_part s = fa_element_statistic(
      drawn_yes(d, 70, 0.8), drawn_sign(d, 71) * drawn_maybe(d, 72, 3, 24), h,
      (float)(narrow * drawn_power(d, 73, -3, 1)), (float)(h * drawn_maybe(d, 74, -4, 4)), narrow);
  tally_add(t, "statistic.part", s.part);
  tally_add(t, "statistic.square", s.square);
  tally_add(t, "statistic.used", s.used);
  tally_add(t, "statistic.diffuse", s.diffuse);
}

static void add_settled(tally *t, const drawn *d) {
  const bool squared = drawn_yes(d, 75, 0.6), nothing = drawn_yes(d, 76, 0.1);
  const fa_settle_terms terms = {.unit = drawn_power(d, 77, -12, 40),
                                 .lambda = 1 + 4 * drawn_share(d, 78),
                                 .exact = drawn_maybe(d, 79, 3, 20),
                                 .u_narrow = drawn_maybe(d, 80, 3, 25),
                                 .u_noise = drawn_maybe(d, 81, 3, 25),
                                 .by_errors = drawn_maybe(d, 82, -12, 40),
                                 .gamma = drawn_maybe(d, 83, 3, 25),
                                 .by_value = drawn_maybe(d, 84, 3, 25),
                                 .add = drawn_maybe(d, 85, 9, 60),
                                 .zero = drawn_yes(d, 86, 0.5)};
  const float worst = (float)drawn_maybe(d, 87, -3, 20), errors = (float)drawn_maybe(d, 88, 3, 30);
  const double value = drawn_sign(d, 89) * drawn_maybe(d, 90, -12, 30);
  const fa_settled s = fa_element_settle(&terms, nothing ? 0 : value, nothing ? 0 : worst, squared,
                                         (float)(worst * worst * drawn_power(d, 91, 0, 12)),
                                         drawn_yes(d, 92, 0.5), nothing ? 0 : errors);
  tally_add(t, "settled.quant", s.quant);
  tally_add(t, "settled.noise", s.noise);
  tally_add(t, "settled.accum", s.accum);
}

/* A weight that is the top one already counts as such. */
static void check_edges(void) {
  CHECK(fa_element_weight_square(0.5f, 0.5, 0.5f, 0.25f, 0) == 0.015625f);
  CHECK(fa_element_weight_square(0.5f, 0.25, 0.5f, 0.25f, 0) == 0.25f);
}

/* Of what nothing is known the error counts, as 0. */
static void check_unknown(void) {
  const fa_statistic_part s = fa_element_statistic(true, 1, 0x1p-11, 1, INFINITY, INFINITY);
  fa_stats_row row = {0};
  fa_stats_add(&row, 1, 0x1p-11, INFINITY, 1, INFINITY);
  CHECK(s.used && !s.diffuse && s.part == 0 && s.square == 0 && row.n == 1 && row.n_diffuse == 0);
}

int main(int argc, char **argv) {
  static tally t;
  check_edges();
  check_unknown();
  check_exp_far_from_a_power_of_two();
  const double zeros[] = {0.1, 0.4, 0.85};
  for (uint64_t number = 0; number < DRAWS; ++number) {
    const drawn d = {.number = number, .zeros = zeros[number % 3]};
    check_exp(&d);
    add_errors(&t, &d);
    add_weights(&t, &d);
    add_gradient(&t, &d);
    add_elements(&t, &d);
    add_settled(&t, &d);
  }
  tally_hold(&t, "tests/ref/recorded/element.txt", argc > 1 && strcmp(argv[1], "--write") == 0);
  return check_done();
}
