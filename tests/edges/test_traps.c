/* Calls that stand between the runs of a candidate's case: who answers the case with what such a call was answered with is told so, and
 * odd statistics of one settle nothing about a case that fails by itself. */
#include "cases/codec/json.h"
#include "fuzz/one/parts.h"
#include "fuzz/one/run_case.h"
#include "fuzz/untrusted/trap_call.h"
#include "tests/support/check.h"

#include <string.h>

/* What the subject does: the first and the third run are the case's, the second is the trap. */
static enum { RIGHT, REMEMBERS, SAME, ODD, RACES, REFUSES, WRONG_LSE } way;
static double factor;     /* of O in the second run, which is ODD; in any run of one that is RIGHT */
static fa_tensors answer; /* of the second run, which is all later ones', or SAME: of the first */
static bool leaves_lse;   /* it is not delivered, and holds anything */
static int n_runs;
static fa_result result;

static void multiply(const fa_tensor *t, double by, double more) {
  int64_t at[FA_MAX_RANK];
  for (int64_t e = 0; e < fa_tensor_count(t); ++e) {
    fa_tensor_unravel(t, e, at);
    fa_tensor_set(t, at, fa_tensor_get(t, at) * by + (e == 0 ? more : 0));
  }
}

static void remember(const fa_tensors *t, unsigned passes) {
  fa_error err;
  const int first = way == SAME ? 1 : 2;
  if (n_runs == first) REQUIRE(fa_tensors_clone(&answer, t, &err) == FA_OK);
  for (int id = 0; n_runs > first && id < FA_T_COUNT; ++id)
    if (fa_tensors_written_by(passes) >> id & 1 && t->t[id].data) fa_tensor_copy(&t->t[id], &answer.t[id]);
}

static fa_status run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                     fa_outcome *out, fa_error *err) {
  const fa_status status = fa_backend_ref_f32.run(self, p, t, opt, out, err);
  ++n_runs;
  if (way == REMEMBERS || way == SAME) remember(t, opt->passes);
  if (leaves_lse) {
    multiply(&t->t[FA_T_LSE], 0, n_runs);
    out->left_out = FA_TENSOR_BIT(FA_T_LSE);
  }
  if (way == ODD) multiply(&t->t[FA_T_O], n_runs == 2 ? factor : 1, n_runs == 1 || n_runs == 3);
  if (way == RACES && n_runs == 2) {
    out->state = FA_SUBJECT_RACE;
    snprintf(out->text, sizeof out->text, "it raced");
  }
  if (way == RIGHT) multiply(&t->t[FA_T_O], factor, 0);
  if (way == WRONG_LSE && n_runs == 2) multiply(&t->t[FA_T_LSE], 2, 1);
  return status;
}

/* One that refuses what the trap asks. */
static unsigned supports(void *self, const fa_problem *p, char *why, size_t size) {
  if (way != REFUSES || n_runs != 1) return fa_backend_ref_f32.supports(self, p, why, size);
  snprintf(why, size, "not this one");
  return 0;
}

static int n_renewed;

static fa_status renew(void *self, fa_error *err) {
  (void)self, (void)err;
  ++n_renewed;
  return FA_OK;
}

/* rules NULL: the subject is trusted. */
static void judge(const char *text, const fa_rules *rules) {
  fa_backend b = fa_backend_ref_f32;
  fa_case c;
  fa_error err = {""};
  b.name = "trapped";
  b.run = run;
  b.supports = supports;
  b.renew = renew;
  b.memory = NULL;
  const fa_run_config config = {.backend = &b, .n_threads = 1, .rules = rules};
  n_runs = n_renewed = 0;
  REQUIRE(fa_case_from_text(text, &c, &err) == FA_OK);
  fa_result_free(&result);
  fa_result_init(&result);
  CHECK_MSG(fa_run_case(&c, &config, &result, &err) == FA_OK, "%s", err.text);
  fa_case_free(&c);
}

/* One trap of a case of a long run: with this secret, one element of the data is another. */
static fa_rules with_a_trap(void) {
  static const char text[] = "{\"fa_exec\":2,\"name\":\"a\",\"passes\":[\"forward\",\"backward\"]}";
  fa_rules rules;
  REQUIRE(fa_rules_init(&rules, FA_TRUSTED_LAYERS | 1u << FA_LAYER_REPLAY, text, NULL, NULL) == FA_OK);
  REQUIRE(fa_secret_read(&rules.secret, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                         NULL) == FA_OK);
  return rules;
}

static void test_answered_from_memory(void) {
  const fa_rules rules = with_a_trap();
  way = REMEMBERS;
  judge("{\"seqlen_q\":3,\"head_dim\":8}", &rules);
  CHECK(result.state == FA_FAIL && n_runs == 3);
  CHECK_MSG(result.traps == 1u << FA_TRAP_ELEMENT, "%x", result.traps);
  CHECK_MSG(strcmp(result.reason, "the case once more: answered as for other data") == 0, "%s: %s",
            fa_state_name(result.state), result.reason);
  fa_tensors_free(&answer);
}

/* What is not delivered may differ, and what is delivered is the other call's answer all the same. */
static void test_answered_without_lse(void) {
  const fa_rules rules = with_a_trap();
  way = REMEMBERS, leaves_lse = true;
  judge("{\"seqlen_q\":3,\"head_dim\":8}", &rules);
  CHECK_MSG(strcmp(result.reason, "the case once more: answered as for other data") == 0, "%s: %s",
            fa_state_name(result.state), result.reason);
  fa_tensors_free(&answer);
  leaves_lse = false;
}

/* Who answers such a call with the case's own answer is told so, beside what is wrong with it. */
static void test_answered_as_before(void) {
  static const char text[] = "{\"seqlen_q\":3,\"head_dim\":8}",
                    begins[] = "trap element: answered as for other data (";
  const fa_rules rules = with_a_trap();
  way = SAME;
  judge(text, &rules);
  CHECK_MSG(result.state == FA_FAIL && strncmp(result.reason, begins, strlen(begins)) == 0 &&
                strstr(result.reason, "elements out of bounds)"),
            "%s: %s", fa_state_name(result.state), result.reason);
  fa_tensors_free(&answer);
}

/* What such a call came to is said with its reason. */
static void test_reason(void) {
  const fa_rules rules = with_a_trap();
  way = RACES;
  judge("{\"seqlen_q\":3,\"head_dim\":8}", &rules);
  CHECK_MSG(result.state == FA_RACE && strstr(result.reason, "RACE: it raced"), "%s: %s",
            fa_state_name(result.state), result.reason);
}

/* Of several outputs, the one is named that is wrong. */
static void test_wrong_output(void) {
  const fa_rules rules = with_a_trap();
  way = WRONG_LSE;
  judge("{\"seqlen_q\":3,\"head_dim\":8}", &rules);
  CHECK_MSG(result.state == FA_FAIL &&
                strstr(result.reason, "trap element: lse: 3 of 3 elements out of bounds"),
            "%s: %s", fa_state_name(result.state), result.reason);
}

/* One that was refused has no answer, and so not that of other data. */
static void test_refused(void) {
  fa_rules rules = with_a_trap();
  rules.layers |= 1u << FA_LAYER_CONTRACT;
  way = REFUSES;
  judge("{\"seqlen_q\":3,\"head_dim\":8}", &rules);
  CHECK_MSG(result.state == FA_FAIL && strstr(result.reason, "refused inside its contract: not this one") &&
                !strstr(result.reason, "answered as for other data"),
            "%s: %s", fa_state_name(result.state), result.reason);
}

/* In a process of its own the case is run once more, and the trap inside it is not. Who is trusted keeps its process. */
static void test_fresh(void) {
  fa_rules rules = with_a_trap();
  rules.layers |= 1u << FA_LAYER_FRESH;
  REQUIRE(fa_rules_renew_after(&rules, 0));
  way = RIGHT, factor = 1;
  judge("{\"seqlen_q\":3,\"head_dim\":8}", &rules);
  CHECK_MSG(result.state == FA_PASS && n_renewed == 1, "%s: %d", fa_state_name(result.state), n_renewed);
  CHECK_MSG(result.traps == (1u << FA_TRAP_ELEMENT | 1u << FA_TRAP_PROCESS) && n_runs == 4, "%x, %d runs",
            result.traps, n_runs);
  judge("{\"seqlen_q\":3,\"head_dim\":8}", NULL);
  CHECK(result.state == FA_PASS && n_renewed == 0 && n_runs == 2);
}

/* A factor that no element's bound sees, but the statistics do. */
static double odd_factor(const char *text) {
  way = RIGHT;
  for (double off = 0x1p-26; off < 0x1p-10; off *= 1.25) {
    factor = 1 + off;
    judge(text, NULL);
    if (fa_only_statistics_fail(&result)) return 1 + off;
  }
  REQUIRE(!"a factor");
  return 1;
}

static void test_odd_beside_wrong(void) {
  static const char text[] = "{\"seqlen_q\":64,\"head_dim\":64,\"dtype\":\"f32\",\"backward\":false}";
  const fa_rules rules = with_a_trap();
  factor = odd_factor(text);
  way = ODD;
  judge(text, &rules);
  CHECK_MSG(result.state == FA_FAIL && !strstr(result.notes, "error statistics are odd"), "%s: %s, %s",
            fa_state_name(result.state), result.reason, result.notes);
  CHECK(n_runs == 3);
}

int main(void) {
  test_answered_from_memory();
  test_answered_without_lse();
  test_answered_as_before();
  test_reason();
  test_wrong_output();
  test_refused();
  test_fresh();
  test_odd_beside_wrong();
  fa_result_free(&result);
  return check_done();
}
