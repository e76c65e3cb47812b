/* Results against a baseline: what is new, known, fixed, slower or not judged any more. */
#include "tests/support/check.h"

#include "cases/base/atomic_file.h"
#include "cases/tensors/table.h"
#include "report/ci/baseline.h"
#include "report/json.h"

#include <cjson/cJSON.h>

#include <string.h>
#include <unistd.h>

static char path[64];

/* A result of case `name`: its state, and for a failure the tensor that is wrong. One at a time: results are large, and a
 * function that has many on its stack has too many. */
static fa_result *result_of(const char *name, fa_state state, const char *backend, fa_tensor_id wrong,
                            double seconds) {
  static fa_result r;
  fa_result_init(&r);
  r.name = strdup(name);
  r.case_line = strdup(name);
  r.state = state;
  r.passes = state == FA_SKIP ? 0 : FA_PASS_FORWARD | FA_PASS_BACKWARD;
  r.seconds_subject = seconds;
  snprintf(r.backend, sizeof r.backend, "%s", backend);
  if (state == FA_SKIP) snprintf(r.reason, sizeof r.reason, "it has none of it");
  if (state != FA_FAIL) return &r;
  r.n_verdicts = 1;
  r.verdict[0] = (fa_verdict){.id = wrong, .fail = true, .judged = true, .count = 9, .bad = 3};
  return &r;
}

static void add(fa_report *report, fa_result *r) {
  fa_error err;
  REQUIRE(fa_report_add(report, r, &err) == FA_OK);
  fa_result_free(r);
}

static fa_report report_begin(const char *backend) {
  fa_report report;
  fa_error err;
  const fa_report_head head = {.version = "0.2.0",
                               .git = "",
                               .command = "",
                               .backend_name = backend,
                               .backend_device = "d",
                               .backend_driver = ""};
  REQUIRE(fa_report_init(&report, &head, &err) == FA_OK);
  return report;
}

/* passes, fails (o), fails (dq), skipped; a case twice, which passes and then fails. */
static void write_baseline(void) {
  fa_report report = report_begin("exec:a");
  fa_error err;
  add(&report, result_of("passes", FA_PASS, "exec:a", FA_T_O, 0.1));
  add(&report, result_of("fails", FA_FAIL, "exec:a", FA_T_O, 0.1));
  add(&report, result_of("fails_dq", FA_FAIL, "exec:a", FA_T_DQ, 0.1));
  add(&report, result_of("skipped", FA_SKIP, "exec:a", FA_T_O, 0));
  add(&report, result_of("twice", FA_PASS, "exec:a", FA_T_O, 0.1));
  add(&report, result_of("twice", FA_FAIL, "exec:a", FA_T_O, 0.1));
  add(&report, result_of("error", FA_ERROR, "exec:a", FA_T_O, 0));
  REQUIRE(fa_report_write(&report, path, 1, &err) == FA_OK);
  fa_report_free(&report);
}

static fa_baseline *load(const char *slower, const char *backend, bool one, char **said) {
  const fa_baseline_run run = {.version = "0.2.0", .backend = backend, .device = "d", .one_backend = one};
  fa_baseline *b = NULL;
  fa_error err = {""};
  size_t n = 0;
  FILE *say = open_memstream(said, &n);
  REQUIRE(say && fa_baseline_load(path, slower, &run, say, &b, &err) == FA_OK);
  fclose(say);
  return b;
}

static void judge(fa_baseline *b, fa_result *r, bool known) {
  fa_baseline_judge(b, r, NULL);
  CHECK_MSG(r->known == known && r->waived == known, "%s, %s: known %d", r->name, fa_state_name(r->state),
            r->known);
  fa_result_free(r);
}

/* want: "new known slower not_judged fixed". */
static void expect(fa_baseline *b, const char *want, bool met, char *said) {
  cJSON *json = fa_baseline_to_json(b), *n;
  char got[100] = "";
  cJSON_ArrayForEach(n, cJSON_GetObjectItem(json, "counts"))
      sprintf(got + strlen(got), "%s%d", got[0] ? " " : "", n->valueint);
  CHECK_MSG(strcmp(got, want) == 0, "%s, not %s", got, want);
  CHECK(fa_baseline_is_met(b) == met);
  cJSON_Delete(json);
  fa_baseline_free(b);
  free(said);
}

static void test_kinds(void) {
  char *said;
  fa_baseline *b = load(NULL, "exec:a", true, &said);
  CHECK_MSG(said[0] == 0, "%s", said);
  judge(b, result_of("passes", FA_PASS, "exec:a", FA_T_O, 99), false);
  judge(b, result_of("fails", FA_FAIL, "exec:a", FA_T_O, 1), true);
  judge(b, result_of("fails_dq", FA_PASS, "exec:a", FA_T_O, 1), false);
  judge(b, result_of("skipped", FA_SKIP, "exec:a", FA_T_O, 0), false);
  judge(b, result_of("unheard_of", FA_PASS, "exec:a", FA_T_O, 0), false);
  expect(b, "0 1 0 0 1", true, said);

  b = load(NULL, "exec:a", true, &said);
  judge(b, result_of("passes", FA_FAIL, "exec:a", FA_T_O, 1), false);    /* new */
  judge(b, result_of("fails", FA_FAIL, "exec:a", FA_T_DQ, 1), false);    /* another class */
  judge(b, result_of("fails_dq", FA_CRASH, "exec:a", FA_T_O, 1), false); /* another state */
  judge(b, result_of("unheard_of", FA_FAIL, "exec:a", FA_T_O, 1), false);
  judge(b, result_of("skipped", FA_FAIL, "exec:a", FA_T_O, 1), false);
  judge(b, result_of("error", FA_ERROR, "exec:a", FA_T_O, 0), false); /* errors are never known */
  expect(b, "5 0 0 0 0", true, said);

  /* Skipped, whether it passed or failed; the k-th of one case is held against the k-th. */
  b = load(NULL, "exec:a", true, &said);
  judge(b, result_of("passes", FA_SKIP, "exec:a", FA_T_O, 0), false);
  judge(b, result_of("fails", FA_SKIP, "exec:a", FA_T_O, 0), false);
  judge(b, result_of("twice", FA_PASS, "exec:a", FA_T_O, 0), false);
  judge(b, result_of("twice", FA_FAIL, "exec:a", FA_T_O, 0), true);
  judge(b, result_of("twice", FA_FAIL, "exec:a", FA_T_O, 0), false); /* a third one is new */
  expect(b, "1 1 0 2 0", false, said);

  /* Judged without its backward now. */
  b = load(NULL, "exec:a", true, &said);
  fa_result *r = result_of("passes", FA_PASS, "exec:a", FA_T_O, 0);
  r->passes = FA_PASS_FORWARD;
  judge(b, r, false);
  expect(b, "0 0 0 1 0", false, said);
}

static void test_backends(void) {
  char *said;
  fa_baseline *b = load(NULL, "exec:b", true, &said);
  CHECK_MSG(strstr(said, "the baseline's backend is \"exec:a\", this run's \"exec:b\""), "%s", said);
  judge(b, result_of("fails", FA_FAIL, "exec:b", FA_T_O, 1), true);
  expect(b, "0 1 0 0 0", true, said);
  b = load(NULL, "exec:b", false, &said); /* this run has several: each has its own cases */
  judge(b, result_of("fails", FA_FAIL, "exec:b", FA_T_O, 1), false);
  judge(b, result_of("fails", FA_FAIL, "exec:a", FA_T_O, 1), true);
  expect(b, "1 1 0 0 0", true, said);
}

static void test_times(void) {
  char *said;
  fa_baseline *b = load("1.5", "exec:a", true, &said);
  judge(b, result_of("passes", FA_PASS, "exec:a", FA_T_O, 0.16), false);
  judge(b, result_of("fails", FA_FAIL, "exec:a", FA_T_O, 0.14), true);
  expect(b, "0 1 1 0 0", false, said);
  b = load("1.5", "host", true, &said); /* a simulation */
  judge(b, result_of("passes", FA_PASS, "host", FA_T_O, 9), false);
  expect(b, "0 0 0 0 0", true, said);
  static const char *const bad[] = {"1", "0.5", "-3", "x", "", "2x", "inf", "nan"};
  const fa_baseline_run run = {.version = "", .backend = "", .device = "", .one_backend = true};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    fa_error err = {""};
    b = NULL;
    CHECK_MSG(fa_baseline_load(path, bad[i], &run, NULL, &b, &err) == FA_ERR_INPUT && !b, "--slower %s",
              bad[i]);
  }
}

int main(void) {
  snprintf(path, sizeof path, "baseline.%d.json", (int)getpid());
  write_baseline();
  test_kinds();
  test_backends();
  test_times();
  unlink(path);
  return check_done();
}
