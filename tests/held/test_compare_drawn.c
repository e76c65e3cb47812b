/* The statistics' verdict, of drawn errors and at the edges of its bands, and from which size on a wrong answer counts as another one, of drawn problems: what
 * tests/ref/recorded/compare.txt holds.
 *
 * usage: test_compare_drawn [--write]    (from the top of the source tree) */
#include "ref/compare/internal.h"
#include "ref/compare/verdict.h"
#include "tests/held/drawn.h"
#include "tests/held/tally.h"
#include "tests/support/check.h"

#include <string.h>

enum { DRAWS = 3000, ROWS = 12 };

/* Of a kernel that does little that others do not, and of one that does something; named so or so. */
static fa_profile some_profile(const drawn *d) {
  static const char *const names[] = {"mma-hopper", "simt-f32", "recorded", NULL};
  fa_profile p = {.name = names[drawn_below(d, 0, 4)],
                  .max_splits = 1 + drawn_below(d, 1, 2),
                  .block_n = 64,
                  .block_m = 48};
  double *const some[] = {&p.u_p,          &p.u_ds,      &p.u_scores, &p.u_dp,      &p.truncated_p,
                          &p.truncated_ds, &p.u_operand, &p.eps_exp,  &p.u_partials};
  for (int i = 0; i < 9; ++i)
    *some[i] = drawn_yes(d, 10 + i, i < 2 ? 0.7 : 0.07) ? drawn_power(d, 10 + i, 7, 26) : 0;
  for (int i = 0; i < FA_N_PRODUCTS; ++i) {
    p.accumulator[i] =
        (fa_accumulator)(drawn_yes(d, 20 + i, 0.05) ? FA_ACCUMULATOR_F16 : drawn_below(d, 20 + i, 2));
    p.operand_step[i] = drawn_yes(d, 30 + i, 0.03) ? 0.01 : 0;
    p.operand[i] = drawn_yes(d, 40 + i, 0.2) ? drawn_power(d, 40 + i, 3, 24) : 0;
  }
  p.operands_cut = drawn_yes(d, 2, 0.05), p.descales = drawn_yes(d, 3, 0.3),
  p.dkv_atomic = drawn_yes(d, 4, 0.5);
  p.floor_p = drawn_maybe(d, 50, 20, 100), p.floor_operand = drawn_maybe(d, 51, 20, 100);
  p.floor_dq = drawn_maybe(d, 52, 20, 100), p.floor_dkv = drawn_maybe(d, 53, 20, 100);
  return p;
}

static fa_problem some_problem(const drawn *d) {
  fa_problem p = {.batch = 1 + drawn_below(d, 60, 4), .heads_kv = 1 + drawn_below(d, 61, 3)};
  p.heads_q = p.heads_kv * (1 + drawn_below(d, 62, 4));
  p.seqlen_q = 1 + drawn_below(d, 63, 500), p.seqlen_k = 1 + drawn_below(d, 64, 500);
  p.head_dim = 1 + drawn_below(d, 65, 200), p.head_dim_v = 1 + drawn_below(d, 66, 200);
  p.scale = drawn_sign(d, 67) * drawn_power(d, 67, -3, 9);
  p.softcap = drawn_yes(d, 68, 0.3) ? drawn_power(d, 68, -9, 3) : 0;
  p.dropout.p = drawn_yes(d, 69, 0.4) ? drawn_share(d, 69) : 0;
  return p;
}

static fa_tensor_id some_output(const drawn *d, int at) {
  static const fa_tensor_id ids[] = {FA_T_O, FA_T_DQ, FA_T_DK, FA_T_DV, FA_T_DBIAS, FA_T_LSE};
  return ids[drawn_below(d, at, 6)];
}

/* ---- statistics ---- */

/* Rows near an edge of a band, alike or apart, now and then too few of them or of their elements. */
static fa_stats some_stats(const drawn *d) {
  fa_stats s;
  const double rms = drawn_share(d, 100) * 1.8,
               bias = drawn_sign(d, 101) * drawn_share(d, 101) * drawn_share(d, 102),
               apart = drawn_maybe(d, 103, 0, 8), diffuse = drawn_share(d, 104) * 1.3;
  memset(&s, 0, sizeof s);
  const int rows = ROWS - 6 * drawn_yes(d, 105, 0.1);
  for (int r = 0; r < rows; ++r) {
    const double by = 1 + apart * (drawn_share(d, 110 + r) - 0.5);
    const int64_t n = drawn_yes(d, 106, 0.1) ? 300 : 400 + drawn_below(d, 130 + r, 500);
    const int64_t n_diffuse = drawn_yes(d, 107, 0.2) ? 20 : n - drawn_below(d, 150 + r, 40);
    const fa_stats_row row = {.n = n,
                              .n_diffuse = n_diffuse,
                              .sum = bias * by * (double)n,
                              .sum_squares = rms * rms * by * (double)n,
                              .diffuse_squares = diffuse * diffuse * by * (double)n_diffuse};
    fa_stats_add_row(&s, &row);
  }
  return s;
}

static void add_statistics(tally *t, const drawn *d) {
  const fa_profile profile = some_profile(d);
  const fa_problem p = some_problem(d);
  const fa_stats s = some_stats(d);
  const fa_compare_options opt = {.generic = !drawn_yes(d, 200, 0.05),
                                  .foreign = drawn_yes(d, 201, 0.5),
                                  .profile = drawn_yes(d, 202, 0.05) ? NULL : &profile,
                                  .doubt = drawn_yes(d, 203, 0.3) ? 1e-3 : 0};
  fa_verdict v = {.id = some_output(d, 204)};
  fa_stats_judge(&s, &p, &opt, &v);
  tally_add(t, "n_stat", (double)v.n_stat);
  tally_add(t, "rms", v.rms);
  tally_add(t, "bias", v.bias);
  tally_add(t, "stat_bad", v.stat_bad);
  tally_add(t, "finer", v.finer);
  tally_add(t, "finer_why", (double)strlen(v.finer_why));
  tally_add(t, "stat_which", v.stat_which);
  tally_add(t, "stat_count", (double)v.stat_count);
  tally_add(t, "stat_value", v.stat_value);
  tally_add(t, "stat_low", v.stat_low);
  tally_add(t, "stat_high", v.stat_high);
}

/* Eight rows of errors, which are just enough, in units of sigma. uneven: one has squares by which nothing is sure of all. */
typedef struct edge {
  fa_profile profile;
  bool foreign, uneven;
  fa_tensor_id id;
  fa_dtype dtype;
  double mean, square;
  fa_statistic which;
} edge;

static fa_verdict judge_edge(const edge *x) {
  enum { ROWS_OF_EDGE = 8, N = 600 };
  static fa_stats s;
  const fa_compare_options opt = {.generic = true, .foreign = x->foreign, .profile = &x->profile};
  const fa_problem p = {0};
  fa_verdict v = {.id = x->id, .dtype = x->dtype};
  memset(&s, 0, sizeof s);
  for (int r = 0; r < ROWS_OF_EDGE; ++r)
    fa_stats_add_row(&s, &(fa_stats_row){.n = N,
                                         .n_diffuse = N,
                                         .sum = x->mean * N,
                                         .sum_squares = x->square * N * (x->uneven && r == 0 ? 1000 : 1),
                                         .diffuse_squares = x->square * N});
  fa_stats_judge(&s, &p, &opt, &v);
  return v;
}

/* What is just inside of a band or just outside of it, and the numbers from which on another band holds. */
static void test_edges(void) {
  const fa_tensor_id O = FA_T_O;
  const fa_dtype F16 = FA_F16;
  const fa_statistic BIAS = FA_STATISTIC_BIAS, HIGH = FA_STATISTIC_RMS_HIGH;
  static const fa_profile
      narrow = {.u_p = 0x1p-8},
      wider = {.u_p = 0x1p-7}, mma = {.name = "mma-x", .u_p = 0x1p-8},
      like_mma = {.name = "mmax", .u_p = 0x1p-8}, cut = {.truncated_p = 0.1},
      exact_v = {.name = "mma-x", .u_p = 0x1p-8, .descales = true, .operand = {[FA_PRODUCT_PV] = 0x1p-20}},
      rounded_v = {.name = "mma-x", .u_p = 0x1p-8, .descales = true, .operand = {[FA_PRODUCT_PV] = 0x1p-19}},
      narrow_sums = {.accumulator = {[FA_PRODUCT_QK] = FA_ACCUMULATOR_NARROW}};
  const edge all[] = {
      {narrow, true, false, O, F16, 0, 1.96, HIGH},
      {wider, true, false, O, F16, 0, 1.96, FA_STATISTIC_FINE},
      {mma, false, false, O, F16, 0, 1.96, HIGH},
      {like_mma, false, false, O, F16, 0, 1.96, FA_STATISTIC_FINE},
      {like_mma, false, false, O, F16, 0, 2.25, FA_STATISTIC_FINE}, /* an edge is in its band */
      {exact_v, true, false, O, F16, 0.625, 0.64, BIAS},
      {rounded_v, true, false, O, F16, 0.625, 0.64, FA_STATISTIC_FINE},
      {rounded_v, true, true, O, F16, 3.5, 12.25, BIAS},
      {exact_v, false, false, O, F16, 0, 0.04, FA_STATISTIC_RMS_LOW},
      {rounded_v, false, false, O, F16, 0, 0.04, FA_STATISTIC_FINE},
      {cut, true, false, O, F16, 0, 16, HIGH},
      {cut, true, true, O, F16, 3.5, 12.25, BIAS},
      {narrow_sums, true, false, FA_T_LSE, FA_F32, 0, 25, HIGH},
      {narrow_sums, true, true, FA_T_LSE, FA_F32, 4.5, 20.25, BIAS},
      {mma, false, false, O, FA_E4M3, 0, 3.24, FA_STATISTIC_FINE},
      {mma, false, false, O, FA_E4M3, 0, 6.25, HIGH},
      {mma, false, true, O, FA_E4M3, 3.5, 12.25, BIAS},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    const fa_verdict v = judge_edge(&all[i]);
    CHECK_MSG(v.stat_which == all[i].which && v.stat_bad == (all[i].which != FA_STATISTIC_FINE),
              "edge %d: %s, rms %g, bias %g", (int)i, fa_statistic_name(v.stat_which), v.rms, v.bias);
  }
}

/* What is said of a band that was left: its figure, and between which numbers it would be. */
static void test_figures(void) {
  const fa_verdict v =
      judge_edge(&(edge){{.name = "mma-x", .u_p = 0x1p-8}, false, false, FA_T_O, FA_F16, 0, 4, 0});
  char text[FA_STATISTIC_TEXT];
  fa_statistic_figures(&v, text);
  CHECK_MSG(strcmp(text, "rms of err / sigma is 2 over 4,800 elements (allowed 0.5 .. 1.25)") == 0, "%s", text);
}

/* The same numbers of which as many count are one row, until another one takes its place. */
static void test_alike(void) {
  static fa_stats s;
  const fa_stats_row row = {.n = 4, .print = 7}, more = {.n = 5, .print = 7},
                     beside = {.n = 4, .print = 7 ^ (uint64_t)1 << 31};
  fa_stats_add_row(&s, &row);
  fa_stats_add_row(&s, &more);
  CHECK(s.error.n == 9);
  fa_stats_add_row(&s, &row);
  CHECK(s.error.n == 9);
  fa_stats_add_row(&s, &beside);
  fa_stats_add_row(&s, &row);
  CHECK(s.error.n == 17);
}

/* ---- vacuity ---- */

enum { WIDTH = 3, N_INPUTS = 5 };

typedef struct scene {
  fa_problem p;
  fa_profile profile;
  fa_tensors in;
  float data[N_INPUTS][2 * WIDTH];
  double value[WIDTH];
  float quant[WIDTH], accum[WIDTH], scale;
  fa_want_span span; /* as of a sample, so that zeros are the only wrong answer that is tried */
  fa_want want;
  fa_compare_options opt;
} scene;

static void make_inputs(const drawn *d, scene *s) {
  static const fa_tensor_id ids[N_INPUTS] = {FA_T_Q, FA_T_K, FA_T_V, FA_T_DO, FA_T_DLSE};
  for (int i = 0; i < N_INPUTS; ++i) {
    const int rank = ids[i] == FA_T_DLSE ? 3 : 4;
    fa_tensor *t = &s->in.t[ids[i]];
    *t = (fa_tensor){.dtype = FA_F32, .rank = rank, .data = (char *)s->data[i]};
    for (int a = 0; a < rank; ++a)
      t->shape[a] = a == rank - 1 ? WIDTH : a == 1 ? 2 : 1, t->stride[a] = a == rank - 1 ? 1 : WIDTH;
    const double size = drawn_power(d, 300 + i, -6, 6);
    for (int e = 0; e < 2 * WIDTH; ++e)
      s->data[i][e] = (float)(size * (drawn_share(d, 310 + 8 * i + e) - 0.5));
    if (drawn_yes(d, 360 + i, 0.1)) s->data[i][1] = NAN; /* poison that nobody reads */
  }
}

static void make_scene(const drawn *d, fa_tensor_id id, scene *s) {
  const int rank = id == FA_T_LSE ? 3 : 4;
  memset(s, 0, sizeof *s);
  s->p = some_problem(d);
  s->profile = some_profile(d);
  make_inputs(d, s);
  s->span = (fa_want_span){.first = 0, .n = WIDTH};
  s->scale = (float)drawn_maybe(d, 370, -3, 30);
  s->want = (fa_want){.dtype = drawn_yes(d, 371, 0.5) ? FA_F16 : FA_F32,
                      .rank = rank,
                      .n = WIDTH,
                      .value = s->value,
                      .quant = s->quant,
                      .accum = s->accum,
                      .scale = &s->scale,
                      .span = &s->span,
                      .n_spans = 1,
                      .steepest = drawn_yes(d, 372, 0.5) ? 1 : drawn_power(d, 372, -6, 0)};
  for (int a = 0; a < rank; ++a) s->want.shape[a] = a == rank - 1 ? WIDTH : 1;
  s->opt = (fa_compare_options){.profile = drawn_yes(d, 373, 0.2) ? NULL : &s->profile};
  for (int e = 0; e < WIDTH; ++e) s->quant[e] = 0x1p120f; /* everything is inside */
}

static bool is_other(scene *s, fa_tensor_id id, double size) {
  fa_verdict v = {.id = id};
  for (int e = 0; e < WIDTH; ++e) s->value[e] = size * (e + 1) / WIDTH;
  fa_vacuous_judge(&s->p, &s->in, &s->want, &s->opt, &v);
  return v.vacuous[0] != 0;
}

/* Zeros are another answer than elements from this size on. */
static void add_vacuity(tally *t, const drawn *d, fa_tensor_id id, const char *name) {
  scene s;
  double low = -1000, high = 100;
  make_scene(d, id, &s);
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    if (is_other(&s, id, exp2(middle)))
      high = middle;
    else
      low = middle;
  }
  tally_add(t, name, exp2(high));
}

/* Elements of which nothing is known, infinities, and one that its bound excludes. */
static void add_classes(tally *t, const drawn *d) {
  const double some[] = {NAN, INFINITY, -INFINITY, 0, 1e30, 0x1p125};
  scene s;
  fa_verdict v = {.id = FA_T_O};
  make_scene(d, FA_T_O, &s);
  for (int e = 0; e < WIDTH; ++e)
    s.value[e] = drawn_yes(d, 380 + e, 0.5) ? 1e30 : some[drawn_below(d, 390 + e, 6)];
  fa_vacuous_judge(&s.p, &s.in, &s.want, &s.opt, &v);
  tally_add(t, "classes", v.vacuous[0] != 0);
  double x[] = {drawn_share(d, 400), drawn_share(d, 401), drawn_share(d, 402), drawn_share(d, 403)};
  tally_add(t, "median", fa_median(x, drawn_below(d, 404, 5)));
  tally_add(t, "tightness", fa_tightness(&s.want));
}

int main(int argc, char **argv) {
  static tally t;
  test_edges();
  test_figures();
  test_alike();
  for (uint64_t number = 0; number < DRAWS; ++number) {
    const drawn d = {.number = number, .zeros = number % 2 ? 0.3 : 0.8};
    add_statistics(&t, &d);
    add_classes(&t, &d);
    if (number % 4) continue;
    add_vacuity(&t, &d, FA_T_O, "floor_of_o");
    add_vacuity(&t, &d, FA_T_LSE, "floor_of_lse");
    add_vacuity(&t, &d, FA_T_DQ, "floor_of_dq");
    add_vacuity(&t, &d, FA_T_DK, "floor_of_dk");
    add_vacuity(&t, &d, FA_T_DV, "floor_of_dv");
    add_vacuity(&t, &d, FA_T_DBIAS, "floor_of_dbias");
    add_vacuity(&t, &d, FA_T_DSINKS, "floor_of_dsinks");
    add_vacuity(&t, &d, FA_T_DBUFFER_0, "floor_of_dbuffer");
  }
  tally_hold(&t, "tests/ref/recorded/compare.txt", argc > 1 && strcmp(argv[1], "--write") == 0);
  return check_done();
}
