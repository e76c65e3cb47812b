/* A law's failure is identified by its law and tensor, and shrinks to one of the same. */
#include "cases/codec/json.h"
#include "fuzz/laws/check.h"
#include "fuzz/one/run_case.h"
#include "fuzz/shrink/reduce.h"
#include "ref/math/blas.h"
#include "report/json.h"
#include "tests/support/check.h"

#include <cjson/cJSON.h>

#include <math.h>
#include <string.h>

static bool is_class(const fa_failure_class *c, fa_law law, fa_tensor_id id, fa_failure_kind kind) {
  return c->state == FA_FAIL && c->law == law && c->tensor == id && c->kind == kind;
}

/* From the result and from the report that contains it. */
static void expect_class(const fa_result *r, fa_law law, fa_tensor_id id, fa_failure_kind kind) {
  const fa_failure_class class = fa_failure_class_of(r);
  char text[128];
  fa_failure_class_text(&class, text, sizeof text);
  CHECK_MSG(is_class(&class, law, id, kind), "%s", text);
  CHECK_MSG(strstr(text, fa_law_describe(law)->name) && strstr(text, fa_tensor_id_name(id)), "%s", text);
  const fa_report_head head = {.version = "", .git = "", .command = ""};
  fa_report report;
  fa_failure_class read = {.state = FA_PASS};
  REQUIRE(fa_report_init(&report, &head, NULL) == FA_OK && fa_report_add(&report, r, NULL) == FA_OK);
  CHECK(fa_failure_class_from_json(report.failures->child, &read) && fa_failure_class_equal(&read, &class));
  cJSON_DeleteItemFromObjectCaseSensitive(report.failures->child,
                                          "law_broken"); /* as older versions wrote it */
  CHECK(!fa_failure_class_from_json(report.failures->child, &read));
  fa_report_free(&report);
}

/* One element of the first run. */
static struct {
  fa_tensor_id id;
  double value;
} planted;

static fa_status planted_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                             fa_outcome *out, fa_error *err) {
  const int64_t first[FA_MAX_RANK] = {0};
  const fa_status status = fa_backend_ref_f32.run(self, p, t, opt, out, err);
  if (status == FA_OK && opt->schedule_seed == 0) fa_tensor_set(&t->t[planted.id], first, planted.value);
  return status;
}

static void test_class(void) {
  static const char json[] = "{\"seqlen_q\":40,\"law\":\"repeat\"}";
  static fa_result r;
  fa_backend b = fa_backend_ref_f32;
  fa_error err = {""};
  fa_case c;
  b.run = planted_run;
  const fa_run_config config = {.backend = &b, .n_threads = 1};
  REQUIRE(fa_case_from_text(json, &c, &err) == FA_OK);
  for (int nan = 0; nan < 2; ++nan)
    for (int id = FA_T_DQ; id <= FA_T_DV; ++id) {
      planted.id = (fa_tensor_id)id, planted.value = nan ? NAN : 1000;
      fa_result_init(&r);
      REQUIRE(fa_run_case(&c, &config, &r, &err) == FA_OK);
      r.case_line = strdup(json);
      expect_class(&r, FA_LAW_REPEAT, (fa_tensor_id)id, nan ? FA_KIND_CLASS : FA_KIND_LAW);
      fa_result_free(&r);
    }
  fa_case_free(&c);
}

/* The second run's dV is off by its type's last bit. */
static fa_status late_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                          fa_outcome *out, fa_error *err) {
  static int n_runs;
  const fa_status status = fa_backend_ref_f32.run(self, p, t, opt, out, err);
  if (++n_runs % 2 == 0) ++*(uint16_t *)(void *)t->t[FA_T_DV].data;
  return status;
}

static void parts_profile(void *self, const fa_problem *p, fa_profile *out) {
  fa_backend_ref_f32.profile(self, p, out);
  out->gqa_partials_in_io = true;
}

/* Parts of a group's dV are rounded where there are parts: with one query head for each of K and V, bits are compared. */
static void test_partials(void) {
  static fa_result r;
  fa_backend b = fa_backend_ref_f32;
  fa_error err = {""};
  b.run = late_run;
  b.profile = parts_profile;
  const fa_run_config config = {.backend = &b, .n_threads = 1};
  for (int heads = 1; heads < 3; ++heads) {
    char json[200];
    fa_case c;
    snprintf(json, sizeof json,
             "{\"law\":\"grad-power\",\"dtype\":\"f16\",\"seqlen_q\":20,\"heads_q\":%d,\"heads_kv\":1}",
             heads);
    REQUIRE(fa_case_from_text(json, &c, &err) == FA_OK);
    fa_result_init(&r);
    REQUIRE(fa_run_case(&c, &config, &r, &err) == FA_OK);
    CHECK_MSG(r.state == (heads == 1 ? FA_FAIL : FA_PASS), "%d heads: %s, %s", heads, fa_state_name(r.state),
              r.reason);
    fa_result_free(&r);
    fa_case_free(&c);
  }
}

/* dK differs from run to run; with few rows so does O; and one row is rejected. */
static fa_status wavering_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                              fa_outcome *out, fa_error *err) {
  const int64_t first[FA_MAX_RANK] = {0};
  if (p->seqlen_q == 1) out->state = FA_SUBJECT_REJECTED;
  if (p->seqlen_q == 1) return FA_OK;
  const fa_status status = fa_backend_ref_f32.run(self, p, t, opt, out, err);
  if (status != FA_OK || opt->schedule_seed % 3 == 0) return status;
  if (t->t[FA_T_DK].data) fa_tensor_set(&t->t[FA_T_DK], first, 1000);
  if (p->seqlen_q < 5) fa_tensor_set(&t->t[FA_T_O], first, 1000);
  return status;
}

/* A failure of dK shrinks to one of dK. */
static void test_shrink(void) {
  fa_backend b = fa_backend_ref_f32;
  b.run = wavering_run;
  const fa_choice choice = {.backend = &b, .spec = "wavering"};
  const fa_shrink_config config = {.choice = &choice, .jobs = 1, .timeout_s = 60};
  fa_shrink_result r;
  fa_error err = {""};
  fa_case c;
  REQUIRE(fa_case_from_text("{\"seqlen_q\":16,\"seqlen_k\":16,\"law\":\"repeat\"}", &c, &err) == FA_OK);
  const fa_status status = fa_shrink(&c, &config, &r, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
  REQUIRE(status == FA_OK);
  CHECK(is_class(&r.failure, FA_LAW_REPEAT, FA_T_DK, FA_KIND_LAW));
  CHECK_MSG(r.c.problem.seqlen_q == 5 && r.c.problem.seqlen_k == 1 && r.c.law == FA_LAW_REPEAT, "%d x %d",
            (int)r.c.problem.seqlen_q, (int)r.c.problem.seqlen_k);
  fa_shrink_result_free(&r);
  fa_case_free(&c);
}

int main(int argc, char **argv) {
  (void)argc;
  fa_blas_startup(argv);
  test_class();
  test_partials();
  test_shrink();
  return check_done();
}
