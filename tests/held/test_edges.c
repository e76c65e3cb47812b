/* Small functions of the judge at the edges of their ranges, against values worked out by hand. */
#include "ref/attention/astray.h"
#include "ref/attention/coarse.h"
#include "ref/bounds/sink_formula.h"
#include "ref/compare/internal.h"
#include "ref/compare/map.h"
#include "ref/engine/dropout.h"
#include "ref/engine/geometry.h"
#include "ref/engine/sample.h"
#include "ref/mods/lane_floats.h"
#include "ref/mods/lane_slopes.h"
#include "ref/mods/tile.h"
#include "ref/reference.h"
#include "tests/held/case_of.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- expressions ---- */

static void check_lane(fa_lane got, double v, double e, int fault) {
  CHECK_MSG(got.v == v && got.e == e && got.fault == fault, "%g +- %g, fault %d; not %g +- %g, fault %d",
            got.v, got.e, got.fault, v, e, fault);
}

static void test_lanes(void) {
  const double slope = 1.1283791670955126;
  check_lane(fa_lane_float(INFINITY, 1, 0.5, false, 3), INFINITY, 0, 4);
  check_lane(fa_lane_float(INFINITY, INFINITY, 0.5, true, 3), INFINITY, INFINITY, 0);
  check_lane(fa_lane_to_int((fa_lane){-3e9, 1, 0}, 3), 0, 0, 4);
  check_lane(fa_lane_to_int((fa_lane){3e9, 1, 0}, 3), 0, 0, 4);
  check_lane(fa_lane_to_int((fa_lane){-2147483648.0, 1, 0}, 3), -2147483648.0, 1, 0);
  /* a slope that is 0 beside one that is not, 35 away: it moves, and has no rounding of its own */
  check_lane(fa_lane_erf_slope((fa_lane){40, 35, 0}), 0, 35 * fmin(1, 2 * 75 * slope * exp(-25)) + 0x1p-126,
             0);
}

/* ---- sinks and dropout ---- */

/* A head whose sink is no weight adds nothing, so that it costs nothing either. */
static void test_no_sink(void) {
  const fa_problem p = {.sinks = {.present = true}};
  const fa_profile profile = {.eps_exp = 0x1p-20};
  const fa_ref_call c = {.p = &p, .profile = &profile};
  CHECK(fa_bound_sink_joined(&c, -INFINITY, 3) == 0 && fa_bound_sink_joined(&c, 1, 3) >= 0x1p-19);
}

/* A generator with so many rounds, down to one. */
static void test_rounds(void) {
  const fa_problem p = {.family = FA_FLASH, .heads_q = 1, .dropout = {.p = 0.5, .seed = 9}};
  for (int rounds = 0; rounds <= 2; ++rounds)
    for (int64_t j = 0; j < 64; ++j)
      CHECK(fa_ref_keep(&p, rounds, 64, 0, 0, 1, j) ==
            fa_ref_flash_keep(&p.dropout, 1, rounds ? rounds : 7, 0, 0, 1, j));
}

/* So many keys has each of two packed sequences, whatever comes before it. */
static void test_dropped_keys(void) {
  static int32_t cu[] = {0, 3, 8}, used[] = {2, 4}, leftpad[] = {1, 0};
  fa_problem p = {.seqlen_k = 9};
  CHECK(fa_ref_dropout_keys(&p, 1) == 9);
  p.cu_seqlens_k = (fa_int32_array){3, cu};
  CHECK(fa_ref_dropout_keys(&p, 0) == 3 && fa_ref_dropout_keys(&p, 1) == 5);
  p.seqused_k = (fa_int32_array){2, used};
  p.leftpad_k = (fa_int32_array){2, leftpad};
  CHECK(fa_ref_dropout_keys(&p, 0) == 1 && fa_ref_dropout_keys(&p, 1) == 4);
}

/* ---- mistakes to compute with ---- */

static void test_dscore(void) {
  const fa_ref_rounding four_bits = {.bits = 4, .lowest = -6, .max = 100};
  double p[] = {0.3, 0.5, 1}, dp[] = {2, 3, -1};
  const double z[] = {2, 0, 2};
  fa_ref_astray_dscore(&four_bits, p, dp, z, 0.5, 3);
  CHECK(dp[0] == 0.3125 * 3.5 && dp[1] == 0.5 * -0.5 && dp[2] == -2.5);
  CHECK(p[0] == 0.6 && p[1] == 0 && p[2] == 2);
}

/* Of two parts of a head, the one that lies in the block, not the one that begins where it ends. */
static void test_parts(void) {
  const fa_ref_part rows[] = {{.first = 256, .n = 5}, {.first = 10, .n = 5}};
  const fa_ref_twist t = {.n_rows = 2, .rows = rows};
  const fa_ref_options opt = {.n_threads = 1, .twist = &t};
  fa_tensors in;
  fa_wants out = {0};
  fa_ref_call call;
  fa_ref_rows r;
  fa_case c = case_of("{\"seqlen_q\":300,\"seqlen_k\":20,\"head_dim\":8}", &in);
  REQUIRE(fa_ref_call_init(&call, &c.problem, &in, &opt, &out, NULL) == FA_OK);
  fa_ref_rows_init(&call, &call.entry[0], 0, 0, &r);
  CHECK(fa_ref_rows_asked(&call, &r) && r.i0 == 10 && r.n == 5 && r.j_begin == 0 && r.j_end == 20);
  fa_ref_rows_init(&call, &call.entry[0], 0, 256, &r);
  CHECK(fa_ref_rows_asked(&call, &r) && r.i0 == 256 && r.n == 5);
  fa_ref_call_free(&call);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

static void fewer_below(const fa_ref_twist *t, const fa_ref_call *c, const fa_ref_sequence *e, int64_t i,
                        int64_t *lo, int64_t *hi) {
  (void)t, (void)c, (void)e, (void)lo;
  *hi -= i;
}

/* Which rows and keys are asked for of a part whose rows' ranges are those. */
static void check_asked(fa_ref_part part, const fa_ref_twist *range, int64_t j_begin, int64_t j_end) {
  fa_ref_twist t = *range;
  t.n_rows = 1;
  t.rows = &part;
  const fa_ref_options opt = {.n_threads = 1, .twist = &t};
  fa_tensors in;
  fa_wants out = {0};
  fa_ref_call call;
  fa_ref_rows r;
  fa_case c = case_of("{\"seqlen_q\":9,\"seqlen_k\":20,\"head_dim\":8}", &in);
  REQUIRE(fa_ref_call_init(&call, &c.problem, &in, &opt, &out, NULL) == FA_OK);
  fa_ref_rows_init(&call, &call.entry[0], 0, 0, &r);
  CHECK(fa_ref_rows_asked(&call, &r) && r.i0 == part.first && r.n == part.n && r.j_begin == j_begin &&
        r.j_end == j_end);
  fa_ref_call_free(&call);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* The keys of a part reach as far as its longest row, which need not be its last. */
static void test_longest_row(void) {
  check_asked((fa_ref_part){.first = 2, .n = 5}, &(fa_ref_twist){.range = fewer_below}, 0, 18);
}

static void late_rows(const fa_ref_twist *t, const fa_ref_call *c, const fa_ref_sequence *e, int64_t i,
                      int64_t *lo, int64_t *hi) {
  (void)t, (void)c, (void)e;
  *lo = i < 4 ? *hi : i;
}

/* Rows of a part that see no key do not say where its keys begin. */
static void test_rows_without_keys(void) {
  check_asked((fa_ref_part){.first = 0, .n = 9}, &(fa_ref_twist){.range = late_rows}, 4, 20);
}

/* Scores in few bits are the product alone, whatever stood there. */
static void test_coarse_scores(void) {
  static const double q[] = {1, 2, 3, 4}, k[] = {5, 6, 7, 8};
  double s[] = {9, 9, 9, 9}, part[8];
  const fa_ref_coarse coarse = {.to = {.bits = 11, .lowest = -24, .max = 65504}, .scores = true};
  const fa_ref_product p = {FA_BLAS_N, FA_BLAS_T, 2, 2, 2, 0.5, q, 2, k, 2, s, 2};
  fa_ref_coarse_scores(&coarse, &p, part);
  CHECK(s[0] == 8.5 && s[1] == 11.5 && s[2] == 19.5 && s[3] == 26.5);
}

/* O of a case whose softcap may be applied twice. */
static double capped(const char *text, bool twice) {
  const fa_ref_twist t = {.softcap_twice = twice};
  const fa_ref_options opt = {.n_threads = 1, .twist = &t};
  fa_tensors in;
  fa_wants out = {0};
  fa_case c = case_of(text, &in);
  REQUIRE(fa_ref_forward(&c.problem, &in, &opt, &out, NULL) == FA_OK);
  const double o = out.t[FA_T_O].value[0];
  fa_wants_free(&out);
  fa_tensors_free(&in);
  fa_case_free(&c);
  return o;
}

/* Any cap twice is another one, and none twice is none. */
static void test_capped_twice(void) {
  const char *const half = "{\"seqlen_q\":3,\"seqlen_k\":9,\"head_dim\":8,\"softcap\":0.5}",
                    *const none = "{\"seqlen_q\":3,\"seqlen_k\":9,\"head_dim\":8}";
  CHECK(capped(half, true) != capped(half, false) && capped(none, true) == capped(none, false));
}

/* ---- samples ---- */

static void test_strips(void) {
  const fa_ref_place strip[] = {{0, 1, 256}, {2, 0, 0}, {2, 0, 512}};
  const fa_ref_sample s = {.n_strips = 3, .strip = strip};
  CHECK(fa_ref_strips_meet(&s, 0, 1, 0, 257) && !fa_ref_strips_meet(&s, 0, 1, 0, 256));
  CHECK(fa_ref_strips_meet(&s, 0, 1, 511, 1) && !fa_ref_strips_meet(&s, 0, 1, 512, 9));
  CHECK(!fa_ref_strips_meet(&s, 0, 0, 256, 99) && !fa_ref_strips_meet(&s, 1, 0, 0, 99));
  CHECK(!fa_ref_strips_meet(&s, 2, 1, 0, 99) && fa_ref_strips_meet(&s, 2, 0, 700, 1));
  CHECK(fa_ref_place_order(&strip[0], &strip[1]) < 0 && fa_ref_place_order(&strip[2], &strip[1]) > 0);
}

/* ---- comparing ---- */

static void test_classes(void) {
  static const struct {
    fa_dtype t;
    uint64_t infinity, sign;
  } types[] = {{FA_F16, 0x7c00, 0x8000},
               {FA_BF16, 0x7f80, 0x8000},
               {FA_F32, 0x7f800000, 0x80000000},
               {FA_F64, 0x7ff0000000000000, 0x8000000000000000}};
  for (int i = 0; i < 4; ++i) {
    const fa_dtype t = types[i].t;
    const uint64_t infinity = types[i].infinity, sign = types[i].sign;
    CHECK(fa_class_of_bits(t, infinity) == FA_CLASS_POS_INF &&
          fa_class_of_bits(t, infinity | sign) == FA_CLASS_NEG_INF);
    CHECK(fa_class_of_bits(t, infinity + 1) == FA_CLASS_NAN &&
          fa_class_of_bits(t, (infinity + 1) | sign) == FA_CLASS_NAN);
    CHECK(fa_class_of_bits(t, infinity - 1) == FA_CLASS_FINITE &&
          fa_class_of_bits(t, sign) == FA_CLASS_FINITE);
  }
}

/* Rows of doubles, of which every second element counts. */
static void test_load_doubles(void) {
  const double row[] = {1, 2, -INFINITY, 3, NAN, 4};
  const fa_tensor t = {
      .dtype = FA_F64, .rank = 1, .shape = {3}, .stride = {2}, .data = (char *)(uintptr_t)row};
  uint64_t bits[4] = {7, 7, 7, 7};
  double value[4] = {7, 7, 7, 7};
  fa_compare_load_row(FA_T_O, &t, t.data, 3, bits, value);
  CHECK(memcmp(&bits[0], &row[0], 8) == 0 && memcmp(&bits[1], &row[2], 8) == 0);
  CHECK(memcmp(&bits[2], &row[4], 8) == 0);
  CHECK(value[0] == 1 && value[1] == -INFINITY && isnan(value[2]) && bits[3] == 7 && value[3] == 7);
}

static void test_statistic(void) {
  fa_verdict v = {.stat_which = FA_STATISTIC_FINE};
  char text[FA_STATISTIC_TEXT] = "before";
  fa_statistic_figures(&v, text);
  CHECK(text[0] == 0);
  v.stat_which = FA_STATISTIC_BIAS, v.stat_value = 2;
  const char *above = fa_statistic_meaning(&v);
  CHECK(strstr(fa_statistic_finding(&v), "systematically high"));
  v.stat_value = -2;
  CHECK(strcmp(above, fa_statistic_meaning(&v)) != 0);
  v.stat_which = FA_STATISTIC_RMS_HIGH;
  const char *low = fa_statistic_meaning(&v);
  v.stat_value = 2;
  CHECK(low == fa_statistic_meaning(&v));
}

static void test_no_statistics(void) {
  static const fa_stats none;
  static const fa_problem p;
  const fa_compare_options opt = {.generic = true};
  fa_verdict v = {.id = FA_T_O};
  fa_stats_judge(&none, &p, &opt, &v);
  CHECK(v.rms == 0 && v.bias == 0 && !v.stat_bad);
}

/* Bands of tensor cores were measured with exponentials that are better than 2^-20. */
static void test_plain(void) {
  fa_profile profile = {.u_p = 0x1p-11, .eps_exp = 0x1p-20};
  const fa_compare_options opt = {.generic = true, .foreign = true, .profile = &profile};
  const fa_stats_row row = {
      .n = 600, .n_diffuse = 600, .sum_squares = 1.4 * 1.4 * 600, .diffuse_squares = 1176};
  static const fa_problem p;
  fa_stats s;
  fa_verdict v = {.id = FA_T_O};
  memset(&s, 0, sizeof s);
  for (int i = 0; i < FA_N_PRODUCTS; ++i) profile.accumulator[i] = FA_ACCUMULATOR_F32;
  for (int i = 0; i < 12; ++i) fa_stats_add_row(&s, &row);
  fa_stats_judge(&s, &p, &opt, &v);
  CHECK_MSG(!v.stat_bad, "%g", v.stat_high);
  profile.eps_exp = 0x1.8p-21;
  fa_stats_judge(&s, &p, &opt, &v);
  CHECK(v.stat_bad && v.stat_which == FA_STATISTIC_RMS_HIGH);
}

/* Rows with the same numbers are one sample; heads take turns. */
static void test_again(void) {
  static const fa_problem p;
  const fa_compare_options opt = {.generic = true};
  const fa_stats_row a = {.n = 600, .sum_squares = 900, .print = 0x123456789abcdef0},
                     b = {.n = 600, .sum_squares = 900, .print = 0x23456789abcdef01},
                     unknown = {.n = 600, .sum_squares = 900}, none = {.print = 77};
  fa_stats s;
  fa_verdict v = {.id = FA_T_O};
  memset(&s, 0, sizeof s);
  for (int i = 0; i < 12; ++i) fa_stats_add_row(&s, i % 2 ? &a : &b);
  fa_stats_add_row(&s, &none);
  fa_stats_judge(&s, &p, &opt, &v);
  CHECK_MSG(v.n_stat == 1200, "%lld", (long long)v.n_stat);
  for (int i = 0; i < 2; ++i) fa_stats_add_row(&s, &unknown);
  fa_stats_judge(&s, &p, &opt, &v);
  CHECK_MSG(v.n_stat == 2400, "%lld", (long long)v.n_stat);
}

/* A row's print tells numbers apart, got and wanted, and the columns that they are in. */
static void test_print(void) {
  const uint64_t there = fa_element_print(1.5, 1, 0) ^ fa_element_print(2.5, 2, 1),
                 crossed = fa_element_print(2.5, 2, 0) ^ fa_element_print(1.5, 1, 1);
  CHECK(there != crossed && there != 0);
  CHECK(fa_element_print(1.5, 1, 0) != fa_element_print(-1.5, 1, 0));
  CHECK(fa_element_print(1.5, 1, 0) != fa_element_print(1.5, 1.25, 0));
  CHECK(fa_element_print(1.5, 1, 0) != fa_element_print(1, 1.5, 0));
  CHECK(fa_element_print(1.5, 1, 0) == fa_element_print(1.5, 1 + 0x1p-50, 0));
}

/* Tensors of merged parts: dense, and with one axis for the tokens of two sequences of 3 and 5. */
static void test_axes(void) {
  static int32_t cu[] = {0, 3, 8};
  const fa_problem p = {.cu_seqlens_q = {3, cu}};
  const struct {
    fa_tensor_id id;
    int rank, n, seq;
    int64_t shape[5], extent[5];
    const char *noun, *names;
  } tensors[] = {{FA_T_DO_PARTS, 5, 5, 2, {2, 3, 7, 4, 8}, {2, 3, 7, 4, 8}, "row", "part b q h d"},
                 {FA_T_DO_PARTS, 4, 5, 2, {2, 8, 4, 6}, {2, 2, 5, 4, 6}, "row", "b part q h d"},
                 {FA_T_DLSE_PARTS, 4, 4, 3, {2, 3, 4, 7}, {2, 3, 4, 7}, "row", "part b h q"},
                 {FA_T_DLSE_PARTS, 3, 4, 3, {2, 4, 8}, {2, 2, 4, 5}, "row", "b part h q"},
                 {FA_T_DBIAS, 4, 4, -1, {1, 2, 3, 4}, {1, 2, 3, 4}, "element", "b h q k"},
                 {FA_T_DSINKS, 1, 1, -1, {6}, {6}, "element", "h"},
                 {FA_T_DBUFFER_0, 2, 2, -1, {5, 6}, {5, 6}, "element", "axis0 axis1"}};
  for (size_t i = 0; i < sizeof tensors / sizeof *tensors; ++i) {
    fa_want w = {.rank = tensors[i].rank};
    char names[60] = "";
    memcpy(w.shape, tensors[i].shape, sizeof tensors[i].shape);
    const fa_axes a = fa_axes_of(tensors[i].id, &p, &w);
    CHECK_MSG(a.n == tensors[i].n && a.seq == tensors[i].seq && strcmp(a.row_noun, tensors[i].noun) == 0,
              "tensor %zu", i);
    for (int k = 0; k < a.n; ++k) {
      snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", k ? " " : "", a.name[k]);
      CHECK(a.extent[k] == tensors[i].extent[k]);
    }
    CHECK_MSG(strcmp(names, tensors[i].names) == 0, "tensor %zu: %s", i, names);
  }
}

/* A map of two panels, and the same with one field out of range. */
static void test_sound(void) {
  static const fa_map sound = {.n_panel_axes = 1,
                               .panel_axis = {"h"},
                               .row_axis = "q",
                               .column_axis = "d",
                               .panel_extent = {2},
                               .rows = 40,
                               .columns = 8,
                               .row_step = 1,
                               .column_step = 1,
                               .row_cells = 40,
                               .column_cells = 8,
                               .n_panels = 2};
  enum { SPOILT = 18 };
  static fa_map m[SPOILT];
  for (int i = 0; i < SPOILT; ++i) m[i] = sound;
  m[0].n_panel_axes = -1, m[1].n_panel_axes = FA_MAP_PANEL_AXES + 1;
  memset(m[2].row_axis, 'x', sizeof m[2].row_axis), memset(m[3].column_axis, 'x', sizeof m[3].column_axis);
  memset(m[4].panel_axis[0], 'x', sizeof m[4].panel_axis[0]);
  m[5].rows = 0, m[6].columns = 0, m[7].row_step = 0, m[8].column_step = 0;
  m[9].row_cells = 0, m[10].row_cells = FA_MAP_ROWS + 1, m[11].column_cells = FA_MAP_COLUMNS + 1;
  m[12].n_panels = -1, m[13].n_panels = FA_MAP_PANELS + 1, m[14].n_strips = -1;
  m[15].n_strips = FA_MAP_STRIPS + 1, m[15].row_cells = 1, m[16].panel_extent[0] = 0, m[17].column_cells = 0;
  CHECK(fa_map_is_sound(&sound));
  for (int i = 0; i < SPOILT; ++i) CHECK_MSG(!fa_map_is_sound(&m[i]), "spoilt in way %d", i);
}

int main(void) {
  test_no_sink();
  test_rounds();
  test_dropped_keys();
  test_axes();
  test_sound();
  test_lanes();
  test_dscore();
  test_parts();
  test_longest_row();
  test_rows_without_keys();
  test_coarse_scores();
  test_capped_twice();
  test_strips();
  test_classes();
  test_load_doubles();
  test_statistic();
  test_no_statistics();
  test_plain();
  test_again();
  test_print();
  return check_done();
}
