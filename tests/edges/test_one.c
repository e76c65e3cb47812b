/* One case, from a subject that does as it is told to a result: what is skipped and why, which layers of defence look at what, what a
 * sample and an explanation leave out, and how odd statistics are settled. */
#include "cases/tensors/guard.h"
#include "fuzz/judging/judge.h"
#include "fuzz/judging/stage.h"
#include "fuzz/one/judges.h"
#include "fuzz/one/parts.h"
#include "fuzz/one/run_case.h"
#include "fuzz/untrusted/rules.h"
#include "report/text/progress.h"
#include "tests/edges/taken.h"
#include "tests/held/case_of.h"

#include <math.h>
#include <string.h>

/* What the subject does to what is right. */
static struct {
  const char *refuses;
  fa_status status;
  fa_tensor_id wrong; /* all of it is multiplied, and its first element changed by so much */
  double factor, by;
  bool gap, leaves_out_lse, leaves_out_o;
  bool races_again;                      /* the second run races */
  bool unwritten;                        /* the first element of O is left as it was */
  bool replaces_infinity;                /* in an LSE, by 1 */
  bool late;                             /* it finds when it has run that it cannot */
  fa_outcome ends;                       /* what it says of its runs */
  struct {
    uint64_t seed[8];
    unsigned passes, threads;
    int n;
  } asked;   /* of its runs so far */
  int n_odd; /* so many runs from now on are wrong; -1: all */
  fa_status renewed;
  int n_runs;
} told;

static unsigned supports(void *self, const fa_problem *p, char *why, size_t size) {
  if (!told.refuses) return fa_backend_ref_f32.supports(self, p, why, size);
  snprintf(why, size, "%s", told.refuses);
  return 0;
}

static void change(const fa_tensor *t) {
  int64_t at[FA_MAX_RANK];
  for (int64_t e = 0; (told.factor != 1 || told.by != 0) && e < fa_tensor_count(t); ++e) {
    fa_tensor_unravel(t, e, at);
    fa_tensor_set(t, at, fa_tensor_get(t, at) * told.factor + (e == 0 ? told.by : 0));
  }
}

static void replace_infinity(const fa_tensor *t) {
  int64_t at[FA_MAX_RANK];
  for (int64_t e = 0; e < fa_tensor_count(t); ++e) {
    fa_tensor_unravel(t, e, at);
    if (isinf(fa_tensor_get(t, at))) fa_tensor_set(t, at, 1);
  }
}

static fa_status run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                     fa_outcome *out, fa_error *err) {
  const fa_tensor *o = &t->t[FA_T_O];
  if (told.asked.n < 8) told.asked.seed[told.asked.n] = opt->schedule_seed;
  ++told.asked.n;
  told.asked.passes = opt->passes, told.asked.threads = (unsigned)opt->n_threads;
  if (told.races_again && ++told.n_runs == 2) {
    out->state = FA_SUBJECT_RACE;
    return FA_OK;
  }
  if (told.status != FA_OK) return fa_fail(err, told.status, "it is over");
  uint16_t before;
  memcpy(&before, o->data, sizeof before);
  const fa_status status = fa_backend_ref_f32.run(self, p, t, opt, out, err);
  if (told.unwritten) memcpy(o->data, &before, sizeof before);
  if (told.ends.kernel[0]) *out = told.ends;
  if (told.replaces_infinity)
    replace_infinity(&t->t[FA_T_LSE]);
  else if (told.n_odd != 0)
    change(&t->t[told.wrong]);
  if (told.n_odd > 0) --told.n_odd;
  if (told.gap) memset(o->data + (int64_t)fa_dtype_size(o->dtype) * o->shape[3], 0, 2);
  if (told.leaves_out_lse) out->left_out |= FA_TENSOR_BIT(FA_T_LSE);
  if (told.leaves_out_o) out->left_out |= FA_TENSOR_BIT(FA_T_O);
  return told.late ? fa_fail(err, FA_ERR_UNSUPPORTED, "it is over") : status;
}

static fa_status renew(void *self, fa_error *err) {
  (void)self;
  return told.renewed == FA_OK ? FA_OK : fa_fail(err, told.renewed, "it does not begin again");
}

static fa_backend subject(void) {
  fa_backend b = fa_backend_ref_f32;
  b.name = "told";
  b.supports = supports;
  b.run = run;
  b.memory = NULL;
  b.renew = renew;
  return b;
}

static fa_result result;

/* Of a run of the case with this configuration, whose backend is set here. */
static fa_status run_with(const char *text, fa_run_config config) {
  const fa_backend b = subject();
  fa_case c;
  fa_error err = {""};
  config.backend = &b;
  config.n_threads = 1;
  REQUIRE(fa_case_from_text(text, &c, &err) == FA_OK);
  fa_result_free(&result);
  fa_result_init(&result);
  const fa_status status = fa_run_case(&c, &config, &result, &err);
  fa_case_free(&c);
  return status;
}

static int n_maps(void) {
  int n = 0;
  for (int i = 0; i < FA_T_COUNT; ++i) n += result.map[i] != NULL;
  return n;
}

#define SMALL "{\"seqlen_q\":3,\"head_dim\":8}"
#define LARGE "{\"batch\":2,\"seqlen_q\":40,\"seqlen_k\":600,\"head_dim\":8}"

/* ---- what is run ---- */

static fa_rules rules_without(fa_layer layer) {
  return (fa_rules){.layers = FA_TRUSTED_LAYERS & ~(1u << layer)};
}

static void test_refused(void) {
  told.refuses = "x";
  CHECK(run_with(SMALL, (fa_run_config){0}) == FA_OK && result.state == FA_SKIP);
  CHECK_MSG(strcmp(result.reason, "told: x") == 0, "%s", result.reason);
  CHECK(run_with("{\"law\":\"repeat\",\"seqlen_q\":3,\"head_dim\":8}", (fa_run_config){0}) == FA_OK);
  CHECK_MSG(result.state == FA_SKIP && strcmp(result.reason, "told: x") == 0, "%s", result.reason);
  told.refuses = "";
  CHECK(run_with(SMALL, (fa_run_config){0}) == FA_OK);
  CHECK_MSG(strcmp(result.reason, "told: not supported") == 0, "%s", result.reason);
  told.refuses = NULL;
}

static void test_world(void) {
  told.status = FA_ERR_DEVICE;
  CHECK(run_with(SMALL, (fa_run_config){0}) == FA_ERR_DEVICE);
  CHECK(result.state == FA_ERROR && strcmp(result.reason, "it is over") == 0);
  told.status = FA_ERR_UNSUPPORTED; /* found when it ran */
  CHECK(run_with(SMALL, (fa_run_config){0}) == FA_OK);
  CHECK(result.state == FA_SKIP && strcmp(result.reason, "it is over") == 0);
  told.status = FA_OK;
}

/* What does not end a second time is not judged. */
static void test_second_run(void) {
  told.races_again = true;
  CHECK(run_with(SMALL, (fa_run_config){0}) == FA_OK && result.state == FA_RACE && result.n_verdicts == 0);
  told.races_again = false;
}

/* Each run has a schedule of its own: the command's, the case's, and how many there were before. */
static void test_schedules(void) {
  static const char text[] = "{\"seqlen_q\":3,\"head_dim\":8,\"schedule_seed\":\"5\",\"repeat\":4}",
                    forward[] = "{\"seqlen_q\":3,\"head_dim\":8,\"backward\":false}";
  told.asked.n = 0;
  CHECK(run_with(text, (fa_run_config){.schedule_seed = 100}) == FA_OK && result.state == FA_PASS);
  CHECK_MSG(told.asked.n == 4, "%d runs", told.asked.n);
  for (uint64_t k = 0; k < 4; ++k)
    CHECK_MSG(told.asked.seed[k] == 105 + k, "run %d: %llu", (int)k, (unsigned long long)told.asked.seed[k]);
  CHECK(told.asked.passes == (FA_PASS_FORWARD | FA_PASS_BACKWARD) && told.asked.threads == 1);
  CHECK(result.passes == told.asked.passes);
  CHECK(run_with(forward, (fa_run_config){0}) == FA_OK && told.asked.passes == FA_PASS_FORWARD);
  CHECK(result.passes == FA_PASS_FORWARD);
  const fa_rules no_repeat = rules_without(FA_LAYER_REPEAT);
  told.asked.n = 0;
  CHECK(run_with(text, (fa_run_config){.rules = &no_repeat}) == FA_OK && told.asked.n == 1);
}

/* How a run ended, and what is said of it, with the kernels that it names. */
static void test_ends(void) {
  static const struct {
    fa_subject_state state;
    const char *text;
    bool reject;
    fa_state want;
    const char *reason, *notes;
  } rows[] = {{FA_SUBJECT_OK, "", false, FA_PASS, "", ""},
              {FA_SUBJECT_OK, "", true, FA_NOT_REJECTED, "the case must be refused, but it ran", ""},
              {FA_SUBJECT_OOB, "x", false, FA_OOB, "x", ""},
              {FA_SUBJECT_RACE, "x", false, FA_RACE, "x", ""},
              {FA_SUBJECT_DEADLOCK, "x", false, FA_DEADLOCK, "x", ""},
              {FA_SUBJECT_CRASH, "x", false, FA_CRASH, "x", ""},
              {FA_SUBJECT_CRASH, "x", true, FA_CRASH, "x", ""},
              {FA_SUBJECT_REJECTED, "50 %s", false, FA_FAIL, "refused: 50 %s", ""},
              {FA_SUBJECT_REJECTED, "", false, FA_FAIL, "refused without a message", ""},
              {FA_SUBJECT_REJECTED, "x", true, FA_PASS, "", "refused: x"},
              {FA_SUBJECT_REJECTED, "", true, FA_FAIL, "refused without a message", ""}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    char text[200];
    snprintf(text, sizeof text, "{\"seqlen_q\":3,\"head_dim\":8%s}",
             rows[i].reject ? ",\"expect\":\"reject\"" : "");
    told.ends = (fa_outcome){.state = rows[i].state, .kernel = "one", .backward_kernel = "two"};
    told.ends.work.products = 3;
    snprintf(told.ends.text, sizeof told.ends.text, "%s", rows[i].text);
    told.asked.n = 0;
    CHECK(run_with(text, (fa_run_config){0}) == FA_OK);
    CHECK_MSG(result.state == rows[i].want && strcmp(result.reason, rows[i].reason) == 0 &&
                  strcmp(result.notes, rows[i].notes) == 0,
              "%zu: %s: %s; %s", i, fa_state_name(result.state), result.reason, result.notes);
    CHECK(strcmp(result.kernel, "one") == 0 && strcmp(result.backward_kernel, "two") == 0 &&
          result.work.products == 3);
    CHECK(told.asked.n == (rows[i].want == FA_PASS && !rows[i].reject ? 2 : 1));
    CHECK((result.n_verdicts > 0) == (rows[i].want == FA_PASS && !rows[i].reject));
  }
  told.ends = (fa_outcome){0};
}

/* The worst of all outputs counts; a map is made of what is wrong, where somebody wants to see it. */
static void test_right_and_wrong(void) {
  CHECK(run_with(SMALL, (fa_run_config){.maps = true}) == FA_OK && result.state == FA_PASS && n_maps() == 0);
  CHECK_MSG(!result.notes[0] && !result.backward_left_out, "%s", result.notes);
  double worst = 0;
  int n_wrong = 0;
  for (int i = 0; i < result.n_verdicts; ++i) worst = fmax(worst, result.verdict[i].worst_ratio);
  CHECK(worst > 0 && result.worst_ratio == worst);
  told.by = 1;
  told.wrong = FA_T_O;
  CHECK(run_with(SMALL, (fa_run_config){.maps = true}) == FA_OK && result.state == FA_FAIL);
  for (int i = 0; i < result.n_verdicts; ++i) {
    n_wrong += result.verdict[i].fail;
    CHECK((result.map[i] != NULL) == result.verdict[i].fail);
  }
  CHECK(n_wrong > 0 && n_wrong < result.n_verdicts);
  CHECK(run_with(SMALL, (fa_run_config){.maps = false}) == FA_OK && result.state == FA_FAIL && n_maps() == 0);
  told.by = 0;
}

/* A law that calls are alike is asked of three at least. */
static void test_repeated(void) {
  for (int repeat = 1; repeat <= 5; ++repeat) {
    char text[200];
    snprintf(text, sizeof text, "{\"law\":\"repeat\",\"seqlen_q\":3,\"head_dim\":8,\"repeat\":%d}", repeat);
    told.asked.n = 0;
    CHECK(run_with(text, (fa_run_config){0}) == FA_OK && result.state == FA_PASS);
    CHECK_MSG(told.asked.n == (repeat > 3 ? repeat : 3), "%d: %d runs", repeat, told.asked.n);
  }
}

#define RETURNS_AMAX                                                                                         \
  "{\"seqlen_q\":9,\"seqlen_k\":140,\"backward\":false,\"quantized\":{\"queries\":true,\"amax\":true}}"

/* The largest O that is returned has to be that of the O beside it, within its rounding; where there is none, the reference's, within
 * its bound, which is wider. */
static void test_amax(void) {
  static const struct {
    bool leaves_out_o;
    double factor;
    bool right;
  } rows[] = {
      {false, 1, true}, {false, 1.0002, false}, {true, 1, true}, {true, 1.0002, true}, {true, 1.005, false}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    told.wrong = FA_T_AMAX_O, told.factor = rows[i].factor, told.leaves_out_o = rows[i].leaves_out_o;
    CHECK(run_with(RETURNS_AMAX, (fa_run_config){0}) == FA_OK);
    CHECK_MSG(result.state == (rows[i].right ? FA_PASS : FA_FAIL) &&
                  result.n_verdicts == (rows[i].leaves_out_o ? 3 : 4),
              "%zu: %s: %s, %d outputs", i, fa_state_name(result.state), result.reason, result.n_verdicts);
  }
  told.factor = 1, told.leaves_out_o = false;
}

/* An O that is not delivered may hold anything, and the largest is not looked for there. */
static void test_amax_alone(void) {
  const fa_profile f32 = fa_profile_get("simt-f32", FA_F16);
  const int64_t first[FA_MAX_RANK] = {0};
  const fa_run_options forward = {.passes = FA_PASS_FORWARD, .n_threads = 1};
  fa_contract no_o;
  fa_tensors in, got;
  fa_error err = {""};
  fa_outcome out = {0};
  fa_contract_init(&no_o);
  no_o.outputs &= ~FA_TENSOR_BIT(FA_T_O);
  const fa_judge_config config = {.profile = &f32, .n_threads = 1, .contract = &no_o};
  fa_case c = case_of(RETURNS_AMAX, &in);
  REQUIRE(fa_tensors_clone(&got, &in, &err) == FA_OK);
  REQUIRE(fa_backend_ref_f32.run(NULL, &c.problem, &got, &forward, &out, &err) == FA_OK);
  fa_tensor_set(&got.t[FA_T_O], first, 100);
  fa_result_free(&result);
  fa_result_init(&result);
  CHECK_MSG(fa_judge(&c.problem, &in, &got, &config, &result, &err) == FA_OK, "%s", err.text);
  CHECK_MSG(result.state == FA_UNTESTED && result.n_verdicts == 3, "%s, %d outputs",
            fa_state_name(result.state), result.n_verdicts);
  fa_tensors_free(&in);
  fa_tensors_free(&got);
  fa_case_free(&c);
}

/* ---- layers ---- */

static void test_layers(void) {
  static const char gaps[] = "{\"seqlen_q\":3,\"head_dim\":8,\"strides\":{\"o\":{\"gap\":[0,0,8]}}}";
  const fa_rules no_guards = rules_without(FA_LAYER_GUARDS), no_bounds = rules_without(FA_LAYER_BOUNDS);
  told.gap = true;
  CHECK(run_with(gaps, (fa_run_config){0}) == FA_OK && result.state == FA_OOB);
  CHECK(run_with(gaps, (fa_run_config){.rules = &no_guards}) == FA_OK);
  CHECK_MSG(result.state == FA_PASS, "%s: %s", fa_state_name(result.state), result.reason);
  told.gap = false;
  told.wrong = FA_T_O;
  told.factor = 1.004;
  CHECK(run_with(SMALL, (fa_run_config){0}) == FA_OK && result.state == FA_FAIL);
  CHECK(run_with(SMALL, (fa_run_config){.rules = &no_bounds}) == FA_OK);
  CHECK_MSG(result.state == FA_PASS, "%s: %s", fa_state_name(result.state), result.reason);
  told.factor = 1;
}

/* Without bounds, what is not finite is nobody's business, but what nobody wrote is; without poison nobody can tell. */
static void test_unwritten(void) {
  const fa_rules no_bounds = rules_without(FA_LAYER_BOUNDS), no_poison = rules_without(FA_LAYER_POISON);
  static const char text[] = "{\"seqlen_q\":3,\"head_dim\":8,\"backward\":false}";
  told.wrong = FA_T_O, told.by = NAN;
  CHECK(run_with(text, (fa_run_config){0}) == FA_OK && result.state == FA_FAIL);
  CHECK(run_with(text, (fa_run_config){.rules = &no_bounds}) == FA_OK);
  CHECK_MSG(result.state == FA_PASS, "%s: %s", fa_state_name(result.state), result.reason);
  told.wrong = FA_T_LSE, told.by = 0,
  told.factor = 0; /* where the reference has infinity, in rows without a key */
  static const char empty[] = "{\"seqlen_q\":4,\"seqlen_k\":2,\"head_dim\":8,\"backward\":false,\"mask\":{"
                              "\"type\":\"causal\"},\"fill\":{\"q\":\"zero\"}}";
  told.n_odd = -1, told.replaces_infinity = true;
  CHECK(run_with(empty, (fa_run_config){0}) == FA_OK && result.state == FA_FAIL);
  CHECK(run_with(empty, (fa_run_config){.rules = &no_bounds}) == FA_OK);
  CHECK_MSG(result.state == FA_PASS, "%s: %s", fa_state_name(result.state), result.reason);
  told.replaces_infinity = false, told.factor = 1;
  told.unwritten = true;
  CHECK(run_with(text, (fa_run_config){.rules = &no_bounds}) == FA_OK);
  CHECK_MSG(result.state == FA_FAIL && result.verdict[0].unwritten == 1 && result.verdict[0].bad == 1,
            "%s: %lld unwritten", fa_state_name(result.state), (long long)result.verdict[0].unwritten);
  CHECK(run_with(text, (fa_run_config){.rules = &no_poison}) == FA_OK && result.state == FA_FAIL);
  CHECK_MSG(result.verdict[0].unwritten == 0 && result.verdict[0].worst[0].got == 0, "%lld unwritten, got %g",
            (long long)result.verdict[0].unwritten, result.verdict[0].worst[0].got);
  told.unwritten = false;
}

static void test_promised(void) {
  static const char text[] = "{\"fa_exec\":2,\"name\":\"a\",\"passes\":[\"forward\"]}";
  fa_rules rules;
  REQUIRE(fa_rules_init(&rules, FA_TRUSTED_LAYERS | 1u << FA_LAYER_CONTRACT, text, NULL, NULL) == FA_OK);
  told.leaves_out_lse = true;
  CHECK(run_with("{\"seqlen_q\":3,\"head_dim\":8,\"backward\":false}", (fa_run_config){.rules = &rules}) ==
        FA_OK);
  CHECK(result.state == FA_FAIL);
  CHECK_MSG(strcmp(result.reason, "lse is not written, which its contract promises") == 0, "%s",
            result.reason);
  told.leaves_out_lse = false;
}

/* One that refuses late what its contract has is told that, and of its memory nothing; one that is trusted is asked for its memory. */
static void test_late(void) {
  static const char
      text[] = "{\"fa_exec\":2,\"name\":\"a\",\"passes\":[\"forward\"]}",
      gaps[] = "{\"seqlen_q\":3,\"head_dim\":8,\"backward\":false,\"strides\":{\"o\":{\"gap\":[0,0,8]}}}";
  fa_rules rules;
  REQUIRE(fa_rules_init(&rules, FA_TRUSTED_LAYERS | 1u << FA_LAYER_CONTRACT, text, NULL, NULL) == FA_OK);
  told.late = told.gap = true;
  CHECK(run_with(gaps, (fa_run_config){0}) == FA_OK && result.state == FA_OOB);
  CHECK(run_with(gaps, (fa_run_config){.rules = &rules}) == FA_OK && result.state == FA_FAIL);
  CHECK_MSG(strcmp(result.reason, "refused inside its contract: it is over") == 0, "%s", result.reason);
  told.gap = false;
  CHECK(run_with(gaps, (fa_run_config){0}) == FA_OK && result.state == FA_SKIP);
  told.late = false;
}

/* ---- samples and explanations ---- */

static void test_sample(void) {
  const fa_sample sample = {.rows = 6, .strips = 2, .seed = 1};
  CHECK(run_with(LARGE, (fa_run_config){.sample = sample}) == FA_OK && result.state == FA_PASS);
  CHECK(result.n_verdicts == 5 && !strstr(result.notes, "dk and dv not judged"));
  CHECK(run_with(LARGE, (fa_run_config){.sample = sample, .end_to_end = true}) == FA_OK &&
        result.state == FA_PASS);
  CHECK_MSG(result.n_verdicts == 8 && !strstr(result.notes, "dk and dv not judged"), "%d: %s",
            result.n_verdicts, result.notes);
  told.leaves_out_lse =
      true; /* from O and the reference's LSE, of which all rows of a strip's heads are made */
  CHECK(run_with(LARGE, (fa_run_config){.sample = sample}) == FA_OK && result.state == FA_PASS);
  CHECK_MSG(result.n_verdicts == 4 && !strstr(result.notes, "dk and dv not judged"), "%d: %s",
            result.n_verdicts, result.notes);
  told.leaves_out_lse = false;
  told.wrong = FA_T_O, told.by = NAN; /* nothing can be judged from an O like that */
  CHECK(run_with(LARGE, (fa_run_config){.sample = {.rows = 6, .strips = 1, .seed = 1}}) == FA_OK &&
        result.state == FA_FAIL);
  CHECK_MSG(strstr(result.notes, "dk and dv not judged"), "%s", result.notes);
  CHECK(run_with(SMALL, (fa_run_config){.end_to_end = true}) == FA_OK && result.state == FA_FAIL);
  CHECK_MSG(result.n_verdicts == 5, "%d", result.n_verdicts); /* end to end once, not twice */
  told.by = 0;
}

/* LSE in base 2: a hint beside the failure, or an explanation, which needs all of it. */
static void test_explained(void) {
  const fa_sample sample = {.rows = 6, .strips = 2, .seed = 1};
  told.wrong = FA_T_LSE, told.factor = 1.4426950408889634;
  CHECK(run_with(LARGE, (fa_run_config){0}) == FA_OK && result.state == FA_FAIL);
  CHECK_MSG(strstr(result.notes, "lse seems to be in base 2") && result.n_explanations == 0, "%s",
            result.notes);
  CHECK(run_with(LARGE, (fa_run_config){.explain_seconds = 1}) == FA_OK && result.state == FA_FAIL);
  CHECK_MSG(!strstr(result.notes, "lse seems to be in base 2") && result.n_explanations > 0, "%s",
            result.notes);
  CHECK(run_with(LARGE, (fa_run_config){.explain_seconds = 1, .sample = sample}) == FA_OK &&
        result.state == FA_FAIL);
  CHECK(result.n_explanations == 0);
  told.factor = 1;
}

/* What was kept for an explanation is nothing when it was given back. */
static void test_free_twice(void) {
  fa_judged j = {.from_o = true};
  fa_judged_free(&j);
  fa_judged_free(&j);
  CHECK(!j.from_o && j.forward.t[0].dtype == 0 && !j.forward.t[0].value);
}

/* A recorded run without an LSE: its gradients are judged from the reference's forward. */
static void test_recorded(void) {
  const fa_profile f32 = fa_profile_get("simt-f32", FA_F16);
  for (int which = 0; which < 2; ++which) {
    fa_tensors in, got;
    fa_error err = {""};
    fa_outcome out = {0};
    const fa_run_options all = {.passes = FA_PASS_FORWARD | FA_PASS_BACKWARD, .n_threads = 1};
    const fa_judge_config config = {.profile = &f32, .n_threads = 1, .backward = true, .recorded = true};
    fa_case c = case_of(SMALL, &in);
    REQUIRE(fa_tensors_clone(&got, &in, &err) == FA_OK);
    REQUIRE(fa_backend_ref_f32.run(NULL, &c.problem, &got, &all, &out, &err) == FA_OK);
    got.t[which ? FA_T_LSE : FA_T_O].data = NULL;
    fa_result_free(&result);
    fa_result_init(&result);
    CHECK_MSG(fa_judge(&c.problem, &in, &got, &config, &result, &err) == FA_OK, "%s", err.text);
    CHECK_MSG(strstr(result.notes, "end to end: there is no recorded o and lse"), "%s", result.notes);
    fa_tensors_free(&in);
    fa_tensors_free(&got);
    fa_case_free(&c);
  }
}

/* What ref-f32 returns of a case with dropout's debug matrix. */
static fa_case run_with_debug(fa_tensors *in, fa_tensors *got) {
  const fa_run_options forward = {.passes = FA_PASS_FORWARD, .n_threads = 1};
  fa_error err = {""};
  fa_outcome out = {0};
  fa_case c = case_of("{\"seqlen_q\":9,\"head_dim\":8,\"backward\":false,\"dropout\":{\"p\":0.3,\"seed\":"
                      "\"1\"},\"return_softmax\":true}",
                      in);
  REQUIRE(fa_tensors_clone(got, in, &err) == FA_OK);
  REQUIRE(fa_backend_ref_f32.run(NULL, &c.problem, got, &forward, &out, &err) == FA_OK);
  return c;
}

/* A recorded debug matrix without columns is refused before anybody looks for its zeros. */
static void test_recorded_empty(void) {
  const fa_profile f32 = fa_profile_get("simt-f32", FA_F16);
  const fa_judge_config config = {.profile = &f32, .n_threads = 1, .recorded = true};
  fa_tensors in, got;
  fa_error err = {""};
  fa_case c = run_with_debug(&in, &got);
  got.t[FA_T_P_DEBUG].shape[3] = 0;
  fa_result_free(&result);
  fa_result_init(&result);
  CHECK(fa_judge(&c.problem, &in, &got, &config, &result, &err) == FA_ERR_INPUT);
  CHECK_MSG(strstr(err.text, "shape is not the expected one"), "%s", err.text);
  fa_tensors_free(&in);
  fa_tensors_free(&got);
  fa_case_free(&c);
}

/* Signs of a recorded debug matrix whose probabilities underflowed to zeros are gone, and say nothing; of one that was just computed they do. */
static void test_recorded_zeros(void) {
  const fa_profile f32 = fa_profile_get("simt-f32", FA_F16);
  fa_tensors in, got;
  fa_error err = {""};
  fa_case c = run_with_debug(&in, &got);
  int64_t at[FA_MAX_RANK];
  for (int64_t e = 0; e < fa_tensor_count(&got.t[FA_T_P_DEBUG]); ++e) {
    fa_tensor_unravel(&got.t[FA_T_P_DEBUG], e, at);
    fa_tensor_set(&got.t[FA_T_P_DEBUG], at, 0);
  }
  for (int recorded = 0; recorded < 2; ++recorded) {
    const fa_judge_config config = {.profile = &f32, .n_threads = 1, .recorded = recorded};
    fa_result_free(&result);
    fa_result_init(&result);
    CHECK_MSG(fa_judge(&c.problem, &in, &got, &config, &result, &err) == FA_OK, "%s", err.text);
    CHECK_MSG((result.state == FA_FAIL) == !recorded, "recorded %d: %s", recorded,
              fa_state_name(result.state));
  }
  fa_tensors_free(&in);
  fa_tensors_free(&got);
  fa_case_free(&c);
}

/* A sample is suggested where there is no memory, and not where an expression has no value. */
static void test_no_suggestion(void) {
  CHECK(run_with("{\"family\":\"flex\",\"seqlen_q\":3,\"head_dim\":8,\"score_mod\":\"log(score - 1000)\"}",
                 (fa_run_config){0}) == FA_ERR_INPUT);
  CHECK_MSG(result.state == FA_ERROR && result.malformed && !strstr(result.reason, "--sample"), "%s",
            result.reason);
}

/* ---- statistics ---- */

enum { SEEDS = 4 };

/* The root mean square of O's errors, and their mean, with this seed. */
static fa_verdict verdict_with(uint64_t seed) {
  char text[200];
  snprintf(text, sizeof text, "{\"seqlen_q\":64,\"head_dim\":64,\"backward\":false,\"data_seed\":\"%llu\"}",
           (unsigned long long)seed);
  REQUIRE(run_with(text, (fa_run_config){0}) == FA_OK && result.n_verdicts == 2);
  return result.verdict[0];
}

/* Settles a result whose O has this statistic, which left a band. */
static void settle(const fa_rules *rules, fa_statistic which, double low, double high) {
  const fa_backend b = subject();
  const fa_run_config config = {.backend = &b, .n_threads = 1, .rules = rules, .number = 3};
  fa_verdict v = verdict_with(7);
  fa_case c;
  fa_error err = {""};
  REQUIRE(fa_case_from_text("{\"seqlen_q\":64,\"head_dim\":64,\"backward\":false,\"data_seed\":\"7\"}", &c,
                            &err) == FA_OK);
  v.stat_bad = v.fail = true;
  v.stat_which = which;
  v.stat_low = low, v.stat_high = high;
  fa_result_free(&result);
  fa_result_init(&result);
  result.state = FA_FAIL;
  result.n_verdicts = 2;
  result.verdict[0] = result.verdict[1] = v;
  result.verdict[1].stat_bad = false;
  fa_one_run x = {.c = &c, .config = &config, .r = &result};
  CHECK_MSG(fa_one_confirm(&x, &err) == told.renewed, "%s", err.text);
  fa_case_free(&c);
}

static void test_settle(void) {
  fa_rules rules = {.layers = FA_TRUSTED_LAYERS | 1u << FA_LAYER_FINAL};
  REQUIRE(fa_secret_read(&rules.secret, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                         NULL) == FA_OK);
  fa_verdict v = verdict_with(7);
  double squares = v.rms * v.rms, biases = v.bias;
  for (uint64_t k = 0; k < SEEDS; ++k) {
    v = verdict_with(fa_secret_number(&rules.secret, "statistics", 3, k));
    squares += v.rms * v.rms, biases += v.bias;
  }
  const double rms = sqrt(squares / (SEEDS + 1)), bias = biases / (SEEDS + 1);
  CHECK(rms > 0 && bias != 0);
  settle(&rules, FA_STATISTIC_RMS_HIGH, rms, 2 * rms); /* just within the band, of five together */
  CHECK(result.state == FA_PASS);
  CHECK_MSG(strstr(result.notes, "odd with one of 5 seeds, but not together"), "%s", result.notes);
  settle(&rules, FA_STATISTIC_RMS_HIGH, 0, 0.999 * rms);
  CHECK(result.state == FA_FAIL && strstr(result.notes, "4 other seeds, each in a process of its own"));
  settle(&rules, FA_STATISTIC_BIAS, bias - 0.01 * fabs(bias), bias + 0.01 * fabs(bias));
  CHECK(result.state == FA_PASS);
  settle(&rules, FA_STATISTIC_BIAS, bias + 0.01 * fabs(bias), 1);
  CHECK(result.state == FA_FAIL);
  told.wrong = FA_T_O, told.by = 1; /* within any band, but the other runs fail */
  settle(&rules, FA_STATISTIC_BIAS, -1e9, 1e9);
  CHECK(result.state == FA_FAIL);
  told.by = 0;
  told.renewed = FA_ERR_DEVICE;
  settle(&rules, FA_STATISTIC_BIAS, bias + 0.01 * fabs(bias), 1);
  told.renewed = FA_OK;
  settle(NULL, FA_STATISTIC_RMS_HIGH, 0,
         0.999 * rms); /* of one that is trusted: another seed that passes is enough */
  CHECK(result.state == FA_PASS &&
        strstr(result.notes, "error statistics are odd with this seed, but not with data_seed"));
}

static void *settle_again(void *rules) {
  for (int k = 0; k < 5; ++k) settle(rules, FA_STATISTIC_RMS_HIGH, 0, 1e9);
  return NULL;
}

/* The other seeds' runs keep no memory. */
static void test_settle_kept(void) {
  fa_rules rules = {.layers = FA_TRUSTED_LAYERS | 1u << FA_LAYER_FINAL};
  const long long kept = bytes_kept(settle_again, &rules);
  CHECK_MSG(kept < 500, "%lld bytes are kept", kept);
}

/* Statistics that are odd with one seed, of two runs, and not with another: chance. */
static void test_confirm(void) {
  static const char text[] = "{\"dtype\":\"f32\",\"seqlen_q\":64,\"head_dim\":64,\"backward\":false}";
  told.wrong = FA_T_O, told.factor = 1 + 0x1p-16;
  CHECK(run_with(text, (fa_run_config){0}) == FA_OK && result.state == FA_FAIL);
  CHECK(fa_only_statistics_fail(&result));
  told.n_odd = 2; /* runs of the first seed, which the second one follows */
  CHECK(run_with(text, (fa_run_config){0}) == FA_OK);
  CHECK_MSG(result.state == FA_PASS && strstr(result.notes, "odd with this seed, but not with data_seed"),
            "%s: %s", fa_state_name(result.state), result.notes);
  told.n_odd = -1;
  told.factor = 1;
}

static void *confirm(void *text) {
  for (int k = 0; k < 40; ++k) {
    told.n_odd = 2;
    CHECK(run_with(text, (fa_run_config){0}) == FA_OK && result.state == FA_PASS);
  }
  return NULL;
}

/* Another seed's run keeps no memory. */
static void test_confirm_kept(void) {
  static char text[] = "{\"dtype\":\"f32\",\"seqlen_q\":64,\"head_dim\":64,\"backward\":false}";
  told.wrong = FA_T_O, told.factor = 1 + 0x1p-16;
  const long long kept = bytes_kept(confirm, text);
  CHECK_MSG(kept < 500, "%lld bytes are kept", kept);
  told.n_odd = -1;
  told.factor = 1;
}

/* ---- who judges, and how long ---- */

/* The time of a stage that comes twice is that of both. */
static void test_stages(void) {
  fa_stage_clock clock = {0};
  fa_stage_clock_start(&clock);
  for (int k = 0; k < 2; ++k) {
    const fa_stage outer = fa_stage_enter(FA_STAGE_COMPARE);
    for (volatile int i = 0; k == 0 && i < 3000000; ++i) {}
    fa_stage_enter(outer);
  }
  fa_stage_clock_start(NULL);
  CHECK_MSG(clock.cpu[FA_STAGE_COMPARE] > 5e-4, "%g s", clock.cpu[FA_STAGE_COMPARE]);
}

/* A stage's time, and a case's, lie between those of what is inside and of what is around. */
static void test_seconds(void) {
  fa_stage_clock clock = {0};
  const double before = fa_seconds_now();
  fa_stage_clock_start(&clock);
  const double begun = fa_seconds_now();
  while (fa_seconds_now() < begun + 2e-3) {}
  const double inside = fa_seconds_now() - begun;
  fa_stage_clock_start(NULL);
  const double around = fa_seconds_now() - before, wall = clock.wall[FA_STAGE_OTHER];
  CHECK_MSG(wall > inside - 1e-6 && wall < around + 1e-6, "%g s, of %g to %g", wall, inside, around);
  const double start = fa_seconds_now();
  CHECK(run_with(SMALL, (fa_run_config){0}) == FA_OK);
  const double took = fa_seconds_now() - start;
  CHECK_MSG(result.seconds > 0 && result.seconds <= took, "%g s of %g", result.seconds, took);
}

int main(void) {
  told.factor = 1, told.n_odd = -1;
  test_refused();
  test_world();
  test_second_run();
  test_schedules();
  test_ends();
  test_right_and_wrong();
  test_repeated();
  test_amax();
  test_amax_alone();
  test_layers();
  test_unwritten();
  test_promised();
  test_late();
  test_sample();
  test_explained();
  test_free_twice();
  test_recorded();
  test_recorded_empty();
  test_recorded_zeros();
  test_no_suggestion();
  test_settle();
  test_settle_kept();
  test_confirm();
  test_confirm_kept();
  test_stages();
  test_seconds();
  fa_result_free(&result);
  return check_done();
}
