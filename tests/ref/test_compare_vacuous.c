/* The check of the check: inflated bounds must be reported as vacuous and sound ones not, trivial answers
 * that happen to be right must pass, and the statistics must notice what no single element shows. */
#include "cases/base/rng.h"
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "cases/recipe/case.h"
#include "cases/tensors/descale.h"
#include "cases/tensors/nibbles.h"
#include "ref/compare/internal.h"
#include "ref/compare/verdict.h"
#include "tests/support/check.h"
#include "tests/support/slow_attention.h"

#include <math.h>
#include <string.h>

/* A want made from the slow reference: bound = factor times the largest value of the row, which is the
 * scale. */
static fa_want want_of(const fa_tensor *like, const slow_array *slow, double factor) {
  fa_want w = {.dtype = like->dtype, .rank = like->rank, .n = slow->n};
  memcpy(w.shape, like->shape, sizeof w.shape);
  const int64_t width = w.shape[w.rank - 1];
  w.value = malloc((size_t)w.n * sizeof *w.value);
  w.quant = malloc((size_t)w.n * sizeof *w.quant);
  w.accum = calloc((size_t)w.n, sizeof *w.accum);
  w.noise = calloc((size_t)w.n, sizeof *w.noise);
  w.scale = calloc((size_t)(w.n / width), sizeof *w.scale);
  for (int64_t e = 0; e < w.n; ++e) {
    w.value[e] = (double)slow->value[e];
    if (!isinf(w.value[e])) w.scale[e / width] = fmaxf(w.scale[e / width], (float)fabs(w.value[e]));
  }
  for (int64_t e = 0; e < w.n; ++e)
    w.quant[e] = slow->mag[e] > 0 ? (float)(factor * (w.scale[e / width] + 1e-6)) : 0;
  return w;
}

static void want_free(fa_want *w) {
  free(w->value);
  free(w->quant);
  free(w->accum);
  free(w->noise);
  free(w->scale);
}

typedef struct scene {
  fa_case c;
  fa_tensors set;
  slow_outputs slow;
} scene;

static void scene_init(scene *s) {
  memset(s, 0, sizeof *s);
  REQUIRE(fa_case_init(&s->c) == FA_OK);
  fa_problem *p = &s->c.problem;
  p->batch = 2;
  p->heads_q = 4;
  p->heads_kv = 2;
  p->seqlen_q = p->seqlen_k = 24;
  p->head_dim = p->head_dim_v = 8;
  p->scale = fa_default_scale(8);
}

static void scene_compute(scene *s) {
  fa_error err = {""};
  const fa_status status = fa_case_build(&s->c, &s->set, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
  REQUIRE(status == FA_OK);
  slow_forward(&s->c.problem, &s->set, &s->slow);
  if (s->c.problem.backward) slow_backward(&s->c.problem, &s->set, NULL, NULL, &s->slow);
}

static void scene_free(scene *s) {
  slow_outputs_free(&s->slow);
  fa_tensors_free(&s->set);
  fa_case_free(&s->c);
}

/* Judges the right values, or zeros. */
static fa_verdict judge(scene *s, fa_tensor_id id, const fa_want *w, bool zeros) {
  const fa_compare_options opt = {.poison = FA_POISON_A};
  fa_verdict v;
  for (int64_t e = 0; e < w->n; ++e) {
    int64_t at[FA_MAX_RANK];
    fa_tensor_unravel(&s->set.t[id], e, at);
    fa_tensor_set(&s->set.t[id], at, zeros ? 0 : w->value[e]);
  }
  fa_error err = {""};
  const fa_status status = fa_compare_tensor(id, &s->c.problem, &s->set, w, &s->set.t[id], &opt, &v, &err);
  CHECK_MSG(status == FA_OK && v.judged && (zeros || !v.fail), "%s %s", err.text, v.where);
  return v;
}

static void expect(scene *s, fa_tensor_id id, double factor, const char *vacuous) {
  fa_want w = want_of(&s->set.t[id], &s->slow.t[id], factor);
  const fa_verdict v = judge(s, id, &w, false);
  CHECK_MSG(strcmp(v.vacuous, vacuous) == 0, "%s at %g: \"%s\", not \"%s\"", fa_tensor_id_name(id), factor,
            v.vacuous, vacuous);
  CHECK_MSG(v.tightness >= factor && v.tightness < factor * 1.1 + 0.01, "%g: tightness %g", factor,
            v.tightness);
  want_free(&w);
}

/* Bounds so wide that nothing matters. */
static void test_inflated(void) {
  static const fa_tensor_id ids[] = {FA_T_O, FA_T_DQ, FA_T_DK, FA_T_DV, FA_T_DBIAS};
  scene s;
  scene_init(&s);
  fa_problem_set_family(&s.c.problem, FA_MEMEFF);
  s.c.problem.bias = (fa_bias){.present = true, .grad = true, .per_head = true, .per_query = true};
  scene_compute(&s);
  for (int k = 0; k < 5; ++k) {
    expect(&s, ids[k], 0x1p-10, "");
    expect(&s, ids[k], 1.01, "all zeros");
    /* all-zero outputs fail while the bounds are sound, and pass when they are not */
    fa_want sound = want_of(&s.set.t[ids[k]], &s.slow.t[ids[k]], 0x1p-10);
    CHECK(judge(&s, ids[k], &sound, true).fail);
    want_free(&sound);
  }
  expect(&s, FA_T_LSE, 0x1p-10, "");
  expect(&s, FA_T_LSE, 1.01, "another head's rows");
  scene_free(&s);
}

static void test_batch(void) {
  scene s;
  scene_init(&s);
  s.c.problem.heads_q = s.c.problem.heads_kv = 1;
  scene_compute(&s);
  expect(&s, FA_T_LSE, 0x1p-10, "");
  expect(&s, FA_T_LSE, 1.01, "another batch entry's rows");
  scene_free(&s);
}

/* Answers that look trivial but are right. */
static void test_legitimate(void) {
  scene s;
  scene_init(&s); /* one visible key: O is V's row, dQ and dK are 0 */
  s.c.problem.seqlen_q = s.c.problem.seqlen_k = 1;
  s.c.problem.heads_q = s.c.problem.heads_kv = s.c.problem.batch = 1;
  fa_case_set_fill(&s.c, FA_FILL_V_OFFSET);
  scene_compute(&s);
  fa_want w = want_of(&s.set.t[FA_T_O], &s.slow.t[FA_T_O], 0.25);
  CHECK(judge(&s, FA_T_O, &w, false).vacuous[0] == 0);
  want_free(&w);
  w = want_of(&s.set.t[FA_T_DQ], &s.slow.t[FA_T_DQ], 0.25);
  for (int64_t e = 0; e < w.n; ++e) {
    w.value[e] = 0;
    w.quant[e] = 0.25f;
    w.scale[0] = 1;
  }
  CHECK(judge(&s, FA_T_DQ, &w, false).vacuous[0] == 0);
  want_free(&w);
  scene_free(&s);

  scene_init(&s); /* all heads the same: another head's rows are right */
  static const fa_tensor_id inputs[] = {FA_T_Q, FA_T_K, FA_T_V, FA_T_DO};
  s.c.problem.heads_q = s.c.problem.heads_kv = 3;
  for (int k = 0; k < 4; ++k) s.c.strides[inputs[k]].expand[2] = s.c.strides[inputs[k]].expand[0] = true;
  scene_compute(&s);
  expect(&s, FA_T_LSE, 0.01, "");
  expect(&s, FA_T_DK, 0.01, "");
  scene_free(&s);

  scene_init(&s); /* values below what the type resolves */
  fa_case_set_fill(&s.c, FA_FILL_DENORMAL);
  s.c.fill[FA_T_Q] = s.c.fill[FA_T_K] = FA_FILL_NORMAL;
  scene_compute(&s);
  w = want_of(&s.set.t[FA_T_DV], &s.slow.t[FA_T_DV], 2);
  for (int64_t e = 0; e < w.n; ++e) w.value[e] = fmod(w.value[e], 0x1p-24);
  CHECK(judge(&s, FA_T_DV, &w, false).vacuous[0] == 0);
  want_free(&w);
  scene_free(&s);
}

/* q = 0: O is the mean of the visible V. The want is shifted by 1 %, the bound is 2 %: the mean passes and is
 * not right. The check notices that only if it finds the right values in every kind of storage. */
static void expect_mean(scene *s, const char *what) {
  fa_case_set_fill(&s->c, FA_FILL_V_OFFSET);
  s->c.fill[FA_T_Q] = FA_FILL_ZERO;
  s->c.problem.head_dim = s->c.problem.head_dim_v = 4;
  scene_compute(s);
  fa_want w = want_of(&s->set.t[FA_T_O], &s->slow.t[FA_T_O], 0.02);
  for (int64_t e = 0; e < w.n; ++e) w.value[e] *= 1.01;
  const fa_verdict v = judge(s, FA_T_O, &w, false);
  CHECK_MSG(strcmp(v.vacuous, "the mean of the visible V") == 0, "%s: \"%s\"", what, v.vacuous);
  want_free(&w);
  scene_free(s);
}

/* A single row that is no mean: the first one of a head. */
static void test_no_mean(void) {
  scene s;
  scene_init(&s);
  fa_case_set_fill(&s.c, FA_FILL_V_OFFSET);
  s.c.fill[FA_T_Q] = FA_FILL_ZERO;
  scene_compute(&s);
  fa_want w = want_of(&s.set.t[FA_T_O], &s.slow.t[FA_T_O], 0.02);
  for (int64_t e = 0; e < w.n; ++e) w.value[e] *= e < w.shape[3] ? 3 : 1.01;
  const fa_verdict v = judge(&s, FA_T_O, &w, false);
  CHECK_MSG(v.vacuous[0] == 0, "\"%s\"", v.vacuous);
  want_free(&w);
  scene_free(&s);
}

static void test_mean(void) {
  static const int32_t cu_q[] = {0, 5, 5, 30}, cu_k[] = {0, 9, 14, 31}, used[] = {20, 11}, pad[] = {3, 7};
  static const int32_t len[] = {17, 9}, rows[] = {3, 1};
  scene s;
  scene_init(&s);
  expect_mean(&s, "plain");
  scene_init(&s);
  s.c.problem.mask.type = FA_MASK_CAUSAL;
  s.c.problem.seqlen_q = 30; /* with fully masked rows */
  expect_mean(&s, "causal");
  scene_init(&s);
  fa_problem_set_family(&s.c.problem, FA_MEMEFF);
  s.c.problem.mask = (fa_mask){.type = FA_MASK_WINDOW, .align = FA_ALIGN_TOP_LEFT, .left = 4, .right = 2};
  s.c.problem.seqlen_q = 11;
  expect_mean(&s, "window");
  scene_init(&s); /* the diagonal and what is right of it */
  s.c.problem.mask = (fa_mask){.type = FA_MASK_WINDOW, .left = 0, .right = 3};
  expect_mean(&s, "window on the right");
  scene_init(&s);
  REQUIRE(fa_int32_array_set(&s.c.problem.cu_seqlens_q, cu_q, 4) == FA_OK);
  REQUIRE(fa_int32_array_set(&s.c.problem.cu_seqlens_k, cu_k, 4) == FA_OK);
  REQUIRE(fa_problem_complete(&s.c.problem) == FA_OK);
  s.c.problem.mask.type = FA_MASK_CAUSAL;
  expect_mean(&s, "variable length");
  scene_init(&s);
  REQUIRE(fa_int32_array_set(&s.c.problem.seqused_k, used, 2) == FA_OK);
  REQUIRE(fa_int32_array_set(&s.c.problem.leftpad_k, pad, 2) == FA_OK);
  expect_mean(&s, "seqused and leftpad");
  for (int paged = 0; paged < 2; ++paged) {
    scene_init(&s);
    fa_problem_set_family(&s.c.problem, FA_KVCACHE);
    s.c.problem.kvcache = (fa_kvcache){.present = true, .n_new = 3, .page_size = paged ? 4 : 0};
    REQUIRE(fa_int32_array_set(&s.c.problem.kvcache.len, len, 2) == FA_OK);
    REQUIRE(fa_int32_array_set(&s.c.problem.leftpad_k, pad, 2) == FA_OK);
    if (!paged) REQUIRE(fa_int32_array_set(&s.c.problem.kvcache.batch_idx, rows, 2) == FA_OK);
    s.c.problem.seqlen_q = 3;
    s.c.problem.mask.type = FA_MASK_CAUSAL;
    expect_mean(&s, paged ? "paged cache" : "cache");
  }
}

/* ---- second tier ---- */

/* Rows of 64 elements of O: the expected and the actual values. */
typedef struct rows {
  fa_dtype dtype;
  const char *profile;
  int64_t n;
  double quant, noise;
  double offset, (*round)(double x); /* a normal number added to it, rounded; or, without round, */
  double (*error)(int64_t e);        /* 0, and an error in units of sigma */
  bool foreign;
} rows;

static fa_verdict judge_rows(const rows *x) {
  const fa_profile profile = fa_profile_get(x->profile, x->round ? x->dtype : FA_BF16);
  const fa_compare_options opt = {
      .generic = true, .judge_stats = true, .profile = &profile, .foreign = x->foreign};
  const int64_t shape[] = {1, x->n, 1, 64};
  fa_problem p;
  fa_problem_init(&p);
  fa_tensors set = {0};
  fa_want w = {.dtype = x->dtype, .rank = 4, .n = x->n * 64, .shape = {1, x->n, 1, 64}};
  REQUIRE(fa_tensors_add(&set, FA_T_O, x->dtype, 4, shape, NULL, 0, NULL) == FA_OK);
  w.value = calloc((size_t)w.n, sizeof *w.value);
  w.quant = malloc((size_t)w.n * sizeof *w.quant);
  w.accum = calloc((size_t)w.n, sizeof *w.accum);
  w.noise = malloc((size_t)w.n * sizeof *w.noise);
  for (int64_t e = 0; e < w.n; ++e) {
    int64_t at[FA_MAX_RANK];
    fa_tensor_unravel(&set.t[FA_T_O], e, at);
    w.quant[e] = (float)x->quant;
    w.noise[e] = (float)x->noise;
    if (x->round) w.value[e] = x->offset + fa_rng_normal(4, 4, (uint64_t)e);
    fa_tensor_set(&set.t[FA_T_O], at, x->round ? x->round(w.value[e]) : x->error(e) * sqrt(0.18) * x->noise);
  }
  fa_verdict v;
  REQUIRE(fa_compare_tensor(FA_T_O, &p, &set, &w, &set.t[FA_T_O], &opt, &v, NULL) == FA_OK);
  CHECK_MSG(v.bad == 0, "%lld bad", (long long)v.bad); /* no single element is wrong */
  fa_tensors_free(&set);
  want_free(&w);
  fa_problem_free(&p);
  return v;
}

static fa_verdict judge_stats(fa_dtype dtype, double (*round)(double x), double offset, double noise,
                              int64_t n) {
  return judge_rows(&(rows){.dtype = dtype,
                            .profile = "mma-hopper",
                            .n = n,
                            .quant = 0.1,
                            .noise = noise,
                            .offset = offset,
                            .round = round});
}

static double nearest(double x) {
  return x;
}
static double truncated(double x) { /* to bf16's 8 bits */
  int exponent;
  const double m = frexp(x, &exponent);
  return ldexp(trunc(m * 256) / 256, exponent);
}
static double coarse(double x) {
  return round(x * 32) / 32;
}

static void test_statistics(void) {
  fa_verdict v = judge_stats(FA_BF16, nearest, 0, 0, 128);
  CHECK_MSG(!v.fail && !v.stat_bad && v.n_stat == 128 * 64, "rms %g bias %g", v.rms, v.bias);
  CHECK(fabs(v.rms - 1) < 0.05 && fabs(v.bias) < 0.05);
  v = judge_stats(FA_BF16, truncated, 8, 0, 128);
  CHECK_MSG(v.fail && v.stat_bad && v.rms > 1.5 && v.bias < -1, "rms %g bias %g", v.rms, v.bias);
  v = judge_stats(FA_BF16, truncated, 0, 0, 128); /* the biases of both signs cancel */
  CHECK_MSG(v.stat_bad && v.rms > 1.5 && fabs(v.bias) < 0.1, "rms %g bias %g", v.rms, v.bias);
  v = judge_stats(FA_F16, coarse, 0, 0, 128);
  CHECK(v.stat_bad);
  v = judge_stats(FA_BF16, nearest, 0, 0.04, 128); /* far more accurate than the profile says */
  CHECK_MSG(v.stat_bad && v.rms < 0.1, "rms %g", v.rms);
  v = judge_stats(FA_BF16, truncated, 8, 0, 63); /* too few to tell */
  CHECK(!v.stat_bad && v.n_stat == 63 * 64);
}

/* A foreign subject's smaller errors are no fault, its larger ones are. */
static void test_foreign_statistics(void) {
  rows x = {.dtype = FA_BF16,
            .profile = "mma-hopper",
            .n = 128,
            .quant = 0.1,
            .noise = 0.04,
            .round = nearest,
            .foreign = true};
  fa_verdict v = judge_rows(&x);
  CHECK_MSG(!v.fail && !v.stat_bad && v.finer, "rms %g", v.rms);
  CHECK_MSG(strstr(v.finer_why, "P is rounded less") && strstr(v.finer_why, "torch-math"), "%s", v.finer_why);
  x.foreign = false;
  v = judge_rows(&x);
  CHECK(v.fail && !v.finer && v.finer_why[0] == 0);
  x.foreign = true;
  x.noise = 0;
  x.round = truncated;
  x.offset = 8;
  v = judge_rows(&x);
  CHECK_MSG(v.fail && v.stat_bad && !v.finer, "rms %g bias %g", v.rms, v.bias);
}

static fa_verdict judge_errors(double quant, double noise, int64_t n, double (*error)(int64_t e)) {
  return judge_rows(&(rows){
      .dtype = FA_F32, .profile = "simt-f32", .n = n, .quant = quant, .noise = noise, .error = error});
}

static double everywhere(int64_t e) { /* no two rows alike, which would be one sample */
  return -0.9 - 1e-7 * (double)e;
}
static double the_same(int64_t e) {
  (void)e;
  return -0.9;
}
static double alone(int64_t e) {
  return 0.9 * fa_rng_normal(5, 5, (uint64_t)e);
}
static double by_row(int64_t e) { /* one P, rounded once, times a row of V of one sign */
  return 0.9 * fa_rng_normal(5, 6, (uint64_t)(e / 64));
}
static double one_sided(int64_t e) {
  return by_row(e) / 4 - 0.8;
}

/* What errors have in common determines how much their mean says. */
static void test_errors_in_common(void) {
  fa_verdict v = judge_errors(4, 1, 128, alone);
  CHECK_MSG(!v.stat_bad && v.n_stat == 128 * 64, "rms %g bias %g", v.rms, v.bias);
  v = judge_errors(4, 1, 128, everywhere);
  CHECK_MSG(v.stat_bad && v.stat_which == FA_STATISTIC_BIAS, "rms %g bias %g", v.rms, v.bias);
  v = judge_errors(4, 1, 128, the_same);
  CHECK_MSG(!v.stat_bad && v.n_stat == 64, "%lld elements", (long long)v.n_stat);
  /* One rounding per element: the next row may round the same number. Nothing is left to judge. */
  v = judge_errors(1, 1, 128, everywhere);
  CHECK_MSG(!v.stat_bad && v.n_stat == 0, "rms %g bias %g over %lld", v.rms, v.bias, (long long)v.n_stat);
  /* Many elements but few rows: such a mean is possible by chance. */
  v = judge_errors(4, 1, 70, by_row);
  CHECK_MSG(!v.stat_bad && v.n_stat == 70 * 64, "rms %g bias %g", v.rms, v.bias);
  v = judge_errors(4, 1, 70, one_sided);
  CHECK_MSG(v.stat_bad && v.stat_which == FA_STATISTIC_BIAS, "rms %g bias %g", v.rms, v.bias);
}

/* Errors of one sign of sums that are cut; size: in sigma. */
static void test_cut(fa_tensor_id id, fa_product product, double u_p, double size, bool right) {
  for (int foreign = 0; foreign < 2; ++foreign)
    for (int narrow = 0; narrow < 2; ++narrow) {
      static fa_stats s;
      fa_profile profile = fa_profile_get("fp8-sm90", FA_BF16);
      const fa_compare_options opt = {.generic = true, .profile = &profile, .foreign = foreign};
      const fa_problem p = {0};
      fa_verdict v = {.id = id};
      memset(&s, 0, sizeof s);
      profile.u_p = u_p;
      if (!narrow) profile.accumulator[product] = FA_ACCUMULATOR_F32;
      for (int i = 0; i < 5000; ++i) {
        const double error = -size + 0.1 * fa_rng_normal(5, 7, (uint64_t)i);
        fa_stats_add_row(&s, &(fa_stats_row){.n = 1, .sum = error, .sum_squares = error * error});
      }
      fa_stats_judge(&s, &p, &opt, &v);
      CHECK_MSG(v.stat_bad != (narrow && right), "rms %g bias %g", v.rms, v.bias);
    }
}

/* An LSE's may be nearly as large as they can be; O's may not, nor have one sign where P is rounded to 8 bits. */
static void test_cut_sums(void) {
  test_cut(FA_T_LSE, FA_PRODUCT_QK, 0x1p-8, 2.8, true);
  test_cut(FA_T_O, FA_PRODUCT_PV, 0x1p-8, 1.1, true);
  test_cut(FA_T_O, FA_PRODUCT_PV, 0x1p-8, 2.8, false);
  test_cut(FA_T_O, FA_PRODUCT_PV, 0x1p-4, 1.1, false);
}

/* ---- numbers of 4 bits ---- */

/* What a P below the normal range may cost an O is by the largest value: of a pair of numbers in a byte, times its block's scale. */
static void test_four_bits(void) {
  static const char text[] =
      "{\"family\":\"kvcache\",\"dtype\":\"f16\",\"seqlen_k\":16,\"head_dim\":16,\"kvcache\":{"
      "\"len\":[16]},\"quantized\":{\"dtype\":\"e2m1\"}}";
  fa_case c;
  fa_tensors in;
  fa_vacuous_tolerance t;
  fa_error err = {""};
  CHECK_MSG(fa_case_from_text(text, &c, &err) == FA_OK, "%s", err.text);
  REQUIRE(fa_case_build(&c, &in, &err) == FA_OK);
  const fa_want want = {.dtype = FA_F16, .rank = 4, .shape = {1, 1, 1, 16}, .steepest = 1};
  double most = 0;
  for (int64_t s = 0; s < 16; ++s) {
    const int64_t row[FA_MAX_RANK] = {0, s};
    const fa_tensor *v = &in.t[FA_T_V], *scales = &in.t[fa_tensor_scales_of(FA_T_V)];
    double x[16];
    fa_nibbles_load(v->data + fa_tensor_offset(v, row), scales->data + fa_tensor_offset(scales, row), 16, x);
    for (int d = 0; d < 16; ++d) most = fmax(most, fabs(x[d]) * fa_descale_largest(&c.problem, &in, FA_T_V));
  }
  REQUIRE(fa_vacuous_tolerance_of(&c.problem, &in, FA_T_O, &want, NULL, true, &t));
  CHECK_MSG(fabs(t.floor - 4 * (16 * 0x1p-25 * most + 0x1p-24)) <= 1e-6 * t.floor, "%g of values up to %g",
            t.floor, most);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

int main(void) {
  test_inflated();
  test_batch();
  test_legitimate();
  test_mean();
  test_no_mean();
  test_statistics();
  test_foreign_statistics();
  test_errors_in_common();
  test_cut_sums();
  test_four_bits();
  return check_done();
}
