/* Two judges: what the one on a machine may say, what is left to the CPU, and what a lying machine comes to. */
#include "fuzz/judging/two.h"
#include "tests/device/load.h"
#include "tests/device/subject.h"
#include "tests/support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Random cases: the same state, counts and ratios whoever judges. */
static void test_same(const char *profile, int64_t n, fa_judge_machine *m, fa_judged_counts *counts) {
  for (int64_t i = 0; i < n; ++i) {
    fa_result *alone = malloc(sizeof *alone), *two = malloc(sizeof *two);
    fa_error err = {""};
    subject s;
    REQUIRE(alone && two);
    run_subject(profile, i, &s);
    CHECK_MSG(judge_subject(&s, NULL, false, alone, &err) == FA_OK, "%s", err.text);
    CHECK_MSG(judge_subject(&s, m, i % 2, two, &err) == FA_OK, "%s %lld: %s", profile, (long long)i,
              err.text);
    CHECK_MSG(same_verdicts(alone, two), "%s %lld: %s", profile, (long long)i, two->judged.left);
    CHECK(alone->judged.by == FA_JUDGED_BY_CPU && !alone->judged.left[0]);
    CHECK(two->judged.by != FA_JUDGED_BY_GPU || two->state == FA_UNTESTED);
    fa_judged_count(counts, &two->judged);
    fa_result_free(alone);
    fa_result_free(two);
    free(alone);
    free(two);
    free_subject(&s);
  }
}

static void expect(const subject *s, fa_judge_machine *m, bool both, fa_status status, fa_state state,
                   const char *says) {
  fa_result *r = malloc(sizeof *r);
  fa_error err = {""};
  REQUIRE(r);
  CHECK_MSG(judge_subject(s, m, both, r, &err) == status, "%s", err.text);
  if (status == FA_OK)
    CHECK_MSG(r->state == state && strncmp(r->judged.left, says, strlen(says)) == 0,
              "%s, left: \"%s\", not \"%s\"", fa_state_name(r->state), r->judged.left, says);
  if (status != FA_OK) CHECK_MSG(strstr(err.text, says), "%s", err.text);
  fa_result_free(r);
  free(r);
}

/* One element of O is outside of its bound, but not by a factor of 4. */
static void put_just_wrong(const subject *s) {
  const int64_t index[FA_MAX_RANK] = {0};
  const double right = fa_tensor_get(&s->got.t[FA_T_O], index);
  fa_result *r = malloc(sizeof *r);
  fa_error err = {""};
  REQUIRE(r);
  fa_state state = FA_UNTESTED;
  for (double off = 1e-5; off < 1 && state != FA_FAIL; off *= 1.5) {
    fa_tensor_set(&s->got.t[FA_T_O], index, right + off);
    REQUIRE(judge_subject(s, NULL, false, r, &err) == FA_OK);
    state = r->state;
    fa_result_free(r);
  }
  CHECK(state == FA_FAIL);
  free(r);
}

/* A wrong element, NaN or number, is the CPU's to report: the first, one in the middle, the last. */
static void test_wrong_element(const subject *s, fa_tensor_id id, int64_t position, fa_judge_machine *m) {
  const fa_tensor *t = &s->got.t[id];
  int64_t index[FA_MAX_RANK] = {0};
  fa_tensor_unravel(t, position, index);
  const double right = fa_tensor_get(t, index);
  fa_tensor_set(t, index, right + 1);
  expect(s, m, false, FA_OK, FA_FAIL, "not surely right");
  fa_tensor_set(t, index, NAN);
  expect(s, m, false, FA_OK, FA_FAIL, "not surely right");
  fa_tensor_set(t, index, right);
}

/* by_turn: as a large call is, whose gradients come when all turns are done. */
static void test_wrong(fa_judge_machine *m, bool by_turn) {
  static const fa_tensor_id ids[] = {FA_T_O, FA_T_LSE, FA_T_DQ, FA_T_DK, FA_T_DV};
  subject s;
  run_subject("rate-host", 0, &s);
  m->turns_from = by_turn ? 1 : 0;
  expect(&s, m, false, FA_OK, FA_UNTESTED, "");
  for (int i = 0; i < 5; ++i) {
    const int64_t n = fa_tensor_count(&s.got.t[ids[i]]);
    test_wrong_element(&s, ids[i], 0, m);
    test_wrong_element(&s, ids[i], n / 2, m);
    test_wrong_element(&s, ids[i], n - 1, m);
  }
  put_just_wrong(&s);
  expect(&s, m, false, FA_OK, FA_FAIL, "not surely right");
  m->turns_from = 0;
  free_subject(&s);
}

/* Of dropout's matrix: a sign says what is dropped, and a magnitude has a bound above. */
static void test_debug_matrix(fa_judge_machine *m) {
  const int64_t index[FA_MAX_RANK] = {0};
  subject s;
  make_subject("rate-host", 0, &s);
  for (int64_t i = 1; !s.in.t[FA_T_P_DEBUG].data; ++i) {
    free_subject(&s);
    make_subject("rate-host", i, &s);
  }
  run_made(&s);
  const fa_tensor *t = &s.got.t[FA_T_P_DEBUG];
  const double right = fa_tensor_get(t, index);
  expect(&s, m, false, FA_OK, FA_UNTESTED, "");
  fa_tensor_set(t, index, -right);
  expect(&s, m, false, FA_OK, FA_FAIL, "not surely right: dropout's matrix");
  fa_tensor_set(t, index, 2 * right + 2);
  expect(&s, m, false, FA_OK, FA_FAIL, "not surely right: dropout's matrix");
  fa_tensor_set(t, index, right);
  free_subject(&s);
}

/* What stands behind the last rows of sequences in a padded LSE is nobody's. */
static void test_padding(fa_judge_machine *m) {
  subject s;
  make_subject("varlen", 0, &s);
  for (int64_t i = 1; !s.c.problem.lse_padded; ++i) {
    free_subject(&s);
    make_subject("varlen", i, &s);
  }
  run_made(&s);
  expect(&s, m, false, FA_OK, FA_UNTESTED, "");
  free_subject(&s);
}

/* A subject may have values of its own for rows that see no key: the machine judges it where there is no such row. */
static void test_own_empty_rows(fa_judge_machine *m) {
  static const struct {
    const char *text, *says;
    fa_state state; /* of what writes +inf there, where NaN is wanted */
  } cases[] = {
      {"{\"seqlen_q\":40,\"seqlen_k\":40,\"mask\":{\"type\":\"causal\"}}", "", FA_UNTESTED},
      {"{\"seqlen_q\":40,\"seqlen_k\":50,\"mask\":{\"type\":\"window\",\"left\":3,\"right\":0}}", "",
       FA_UNTESTED},
      {"{\"seqlen_q\":40,\"seqlen_k\":39,\"mask\":{\"type\":\"causal\"}}", "empty rows of its own", FA_FAIL},
      {"{\"seqlen_q\":40,\"seqlen_k\":30,\"mask\":{\"type\":\"window\",\"left\":3,\"right\":0}}",
       "empty rows of its own", FA_FAIL},
      {"{\"batch\":2,\"seqlen_q\":4,\"seqlen_k\":9,\"seqused_k\":[9,0]}", "empty rows of its own", FA_FAIL},
      {"{\"family\":\"flex\",\"dtype\":\"f32\",\"seqlen_q\":9,\"mask_mod\":\"kv_idx > 0\"}",
       "empty rows of its own", FA_UNTESTED}};
  fa_contract contract;
  fa_contract_init(&contract);
  contract.lse_of_empty = FA_LSE_EMPTY_NAN;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    subject s;
    make_given(cases[i].text, &s);
    run_made(&s);
    s.contract = &contract;
    expect(&s, m, true, FA_OK, cases[i].state, cases[i].says);
    free_subject(&s);
  }
}

/* An expression without a value makes the case wrong, and what is wrong with it is the CPU's to say. */
static void test_no_value(fa_judge_machine *m) {
  subject s;
  make_given("{\"family\":\"flex\",\"dtype\":\"f32\",\"seqlen_q\":9,\"score_mod\":\"log(score - "
             "3)\",\"backward\":false}",
             &s);
  run_made(&s);
  expect(&s, m, false, FA_ERR_INPUT, FA_UNTESTED, "log of ");
  free_subject(&s);
}

/* One of the two numbers is not that of the call. */
static void test_wrong_amax(const subject *s, fa_tensor_id id, double by, fa_judge_machine *m) {
  const int64_t first = 0;
  const double right = fa_tensor_get(&s->got.t[id], &first);
  fa_tensor_set(&s->got.t[id], &first, right * by);
  expect(s, m, false, FA_OK, FA_FAIL, "not surely right: the largest P or O");
  fa_tensor_set(&s->got.t[id], &first, right);
}

/* The largest P and O: of many rows and keys, in splits, beside a sink, of rows without keys, and of no row at all; and where
 * every O is rounded to 0, which the CPU has to say. */
static void test_amax(fa_judge_machine *m) {
  static const struct {
    const char *text, *left;
    bool some;
  } cases[] = {
      {"\"seqlen_q\":70,\"seqlen_k\":300,\"heads_q\":4,\"heads_kv\":2,\"batch\":2,\"quantized\":{\"queries\":"
       "true,\"amax\":true}",
       "", true},
      {"\"seqlen_q\":9,\"seqlen_k\":140,\"dropout\":{\"p\":0.2},\"quantized\":{\"queries\":true,\"descale\":"
       "\"token\",\"amax\":true}",
       "", true},
      {"\"seqlen_q\":9,\"seqlen_k\":140,\"sinks\":true,\"quantized\":{\"queries\":true,\"amax\":true}", "",
       true},
      {"\"seqlen_q\":40,\"seqlen_k\":3,\"mask\":{\"type\":\"causal\"},\"quantized\":{\"queries\":true,"
       "\"amax\":true}",
       "", true},
      {"\"seqlen_q\":0,\"seqlen_k\":3,\"quantized\":{\"queries\":true,\"amax\":true}", "", false},
      {"\"dtype\":\"f16\",\"seqlen_q\":6,\"seqlen_k\":440,\"head_dim\":128,\"data_seed\":"
       "\"13621105517588669466\",\"mask\":{\"type\":\"causal\"},\"sinks\":true,\"quantized\":{"
       "\"queries\":true,\"amax\":true},"
       "\"fill\":{\"default\":\"integer\",\"sinks\":\"sink_sizes\"}",
       "not surely right: a trivial answer", false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    char text[400];
    subject s;
    snprintf(text, sizeof text, "{\"family\":\"flash\",\"backward\":false,%s}", cases[i].text);
    make_given(text, &s);
    run_made(&s);
    expect(&s, m, true, FA_OK, FA_UNTESTED, cases[i].left);
    if (cases[i].some) {
      test_wrong_amax(&s, FA_T_AMAX_P, 0.99, m);
      test_wrong_amax(&s, FA_T_AMAX_P, 1.01, m);
      test_wrong_amax(&s, FA_T_AMAX_O, 0.99, m);
      test_wrong_amax(&s, FA_T_AMAX_O, -1, m);
    }
    free_subject(&s);
  }
}

/* ---- machines that lie or fail ---- */

typedef struct liar {
  fa_judge_machine machine, *honest;
  float bounds; /* accum and quant of O become this many times as large; 0: they do not */
  float bounds_dv;
  float accum;            /* of O, unless it is 0 */
  double values;          /* O is moved by this */
  bool fails, old_record; /* the last record of a comparison is of another call */
} liar;

static fa_status lie_reserve(void *self, size_t bytes, char **memory, fa_error *err) {
  const liar *l = self;
  return l->honest->reserve(l->honest->self, bytes, memory, err);
}
static fa_status lie_stage(void *self, size_t bytes, char **memory, fa_error *err) {
  const liar *l = self;
  return l->honest->stage(l->honest->self, bytes, memory, err);
}
static fa_status lie_upload(void *self, void *to, const void *from, size_t bytes, fa_error *err) {
  const liar *l = self;
  return l->honest->upload(l->honest->self, to, from, bytes, err);
}
static fa_status lie_clear(void *self, void *at, size_t bytes, fa_error *err) {
  const liar *l = self;
  return l->honest->clear(l->honest->self, at, bytes, err);
}
static void widen(const fa_judge_want *w, int64_t n, float by) {
  for (int64_t i = 0; by > 0 && i < n; ++i) {
    w->accum[i] *= by;
    w->quant[i] *= by;
  }
}
static fa_status lie_launch(void *self, fa_judge_kernel kernel, const fa_judge_job *job, fa_error *err) {
  const liar *l = self;
  if (l->fails && kernel == FA_JUDGE_KERNEL_weigh) return fa_fail(err, FA_ERR_DEVICE, "weigh: it fell over");
  const fa_status status = l->honest->launch(l->honest->self, kernel, job, err);
  if (kernel == FA_JUDGE_KERNEL_settle_forward) {
    widen(&job->want_o, job->o.n, l->bounds);
    for (int64_t i = 0; i < job->o.n; ++i) job->want_o.value[i] += l->values;
    for (int64_t i = 0; l->accum > 0 && i < job->o.n; ++i) job->want_o.accum[i] = l->accum;
  }
  if (l->old_record && kernel == FA_JUDGE_KERNEL_compare) job->output.check[job->n - 1].nonce ^= 1;
  if (kernel == FA_JUDGE_KERNEL_settle_key) widen(&job->want_dv, job->got_dv.n, l->bounds_dv);
  return status;
}
static fa_status lie_download(void *self, void *to, const void *from, size_t bytes, fa_error *err) {
  const liar *l = self;
  return l->honest->download(l->honest->self, to, from, bytes, err);
}

static liar liar_on(fa_judge_machine *honest) {
  return (liar){.machine = {.most_bytes = honest->most_bytes,
                            .reserve = lie_reserve,
                            .stage = lie_stage,
                            .upload = lie_upload,
                            .download = lie_download,
                            .clear = lie_clear,
                            .launch = lie_launch},
                .honest = honest};
}

static void test_liars(fa_judge_machine *m) {
  liar wide = liar_on(m), blind = liar_on(m), shifted = liar_on(m), broken = liar_on(m), old = liar_on(m),
       wider = liar_on(m);
  liar *const all[] = {&wide, &blind, &shifted, &broken, &old, &wider};
  subject s;
  for (int i = 0; i < 6; ++i) all[i]->machine.self = all[i];
  wide.bounds = 4;
  wider.bounds = 1.002f;
  blind.bounds_dv = 1e9f;
  shifted.values = 1;
  broken.fails = true;
  old.old_record = true;
  run_subject("rate-host", 0, &s);
  expect(&s, &shifted.machine, false, FA_ERR_DEVICE, FA_UNTESTED, "the judges disagree: o[");
  expect(&s, &broken.machine, false, FA_ERR_DEVICE, FA_UNTESTED, "it fell over");
  expect(&s, &old.machine, false, FA_ERR_DEVICE, FA_UNTESTED, "is not of this call");
  /* Both pass it, with other ratios. */
  expect(&s, &wider.machine, true, FA_ERR_DEVICE, FA_UNTESTED, "the judges disagree: o[");
  /* A bound that lets zeros pass is not relied on, and the CPU has a better one. */
  expect(&s, &blind.machine, false, FA_OK, FA_UNTESTED, "not surely right: a trivial answer");
  put_just_wrong(&s);
  expect(&s, m, false, FA_OK, FA_FAIL, "not surely right");
  expect(&s, &wide.machine, true, FA_ERR_DEVICE, FA_FAIL, "the judges disagree: o[");
  free_subject(&s);
}

static void move(const fa_tensor *t, double by, double times) {
  int64_t index[FA_MAX_RANK];
  for (int64_t e = 0; e < fa_tensor_count(t); ++e) {
    fa_tensor_unravel(t, e, index);
    fa_tensor_set(t, index, by + times * fa_tensor_get(t, index));
  }
}

/* A bound that lets nothing trivial pass but the mean of V: one head, whose values are all about 16. */
static void test_mean(fa_judge_machine *m) {
  liar wide = liar_on(m);
  subject s;
  wide.machine.self = &wide;
  wide.accum = 8;
  make_subject("rate-host", 0, &s);
  for (int64_t i = 1; s.c.problem.batch > 1 || s.c.problem.heads_q > 1 || s.c.problem.seqlen_k < 64; ++i) {
    free_subject(&s);
    make_subject("rate-host", i, &s);
  }
  move(&s.in.t[FA_T_Q], 0, 16);
  move(&s.in.t[FA_T_V], 16, 16);
  run_made(&s);
  expect(&s, m, false, FA_OK, FA_UNTESTED, "");
  expect(&s, &wide.machine, false, FA_OK, FA_UNTESTED, "not surely right: a trivial answer");
  free_subject(&s);
}

/*   test_two_judges [KERNELS.so]    with the kernels of that library: a copy with a planted fault, which is to be seen
 *   test_two_judges few             a sixth of the random cases, for whoever asks often (tests/mutate) */
int main(int argc, char **argv) {
  static const struct {
    const char *profile;
    int n;
  } random[] = {{"rate-host", 30}, {"causal", 12},    {"everything", 30}, {"fills", 30},
                {"edge", 30},      {"kvcache", 12},   {"flex", 12},       {"memeff", 12},
                {"sinks", 12},     {"quantized", 12}, {"mla", 6},         {"merge", 2}};
  const bool few = argc > 1 && strcmp(argv[1], "few") == 0;
  fa_judge_machine *m = fa_judge_machine_host_new(load_kernels(argc > 1 && !few ? argv[1] : NULL), 0);
  fa_judged_counts counts = {0};
  char text[FA_JUDGED_TEXT];
  REQUIRE(m);
  for (size_t k = 0; k < sizeof random / sizeof *random; ++k)
    test_same(random[k].profile, few ? random[k].n / 6 : random[k].n, m, &counts);
  fa_judged_text(&counts, text);
  puts(text);
  CHECK(few || (counts.gpu > 20 && counts.both > 20 && counts.cpu > 0));
  test_wrong(m, false);
  test_wrong(m, true);
  test_debug_matrix(m);
  test_padding(m);
  test_own_empty_rows(m);
  test_no_value(m);
  test_amax(m);
  test_liars(m);
  test_mean(m);
  fa_judge_machine_host_free(m);
  return check_done();
}
