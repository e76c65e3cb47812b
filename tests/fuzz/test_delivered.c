/* Subjects that deliver a part of a call's outputs, or rows without keys in their own way: judged by what they
 * promise, and by nothing else. Every check is also seen to fail. */
#include "cases/codec/json.h"
#include "fuzz/judging/delivered.h"
#include "fuzz/one/run_case.h"
#include "ref/math/blas.h"
#include "report/failure_class.h"
#include "report/journal_line.h"
#include "report/json.h"
#include "tests/support/check.h"

#include <cjson/cJSON.h>

#include <math.h>
#include <string.h>

#define BIT(id) FA_TENSOR_BIT(id)

/* The subject: ref-f32, with these changes to what it says and writes. */
static struct {
  fa_declaration says;
  fa_tensor_bits writes, left_out;
  double lse_factor;
  double o_of_empty, lse_of_empty; /* 1234: as computed */
  bool takes_away;                 /* the LSE is absent afterwards */
  bool mean_v;
  bool o_changes, lse_changes;     /* what empty rows hold differs from run to run */
  bool rounds_weight;              /* the mean is a sum of values times 1 / n in bf16 */
  int n_runs;
  fa_delta_source delta;
  bool p_kept;
} subject;

static const double AS_COMPUTED = 1234;

static void reset(void) {
  memset(&subject, 0, sizeof subject);
  fa_contract_init(&subject.says.contract);
  subject.writes = ~(fa_tensor_bits)0;
  subject.lse_factor = 1;
  subject.o_of_empty = subject.lse_of_empty = AS_COMPUTED;
}

static void declare(void *self, const fa_problem *p, fa_declaration *out) {
  (void)self, (void)p;
  *out = subject.says;
}

static double mean_of_values(const fa_tensors *t, int64_t b, int64_t h, int64_t x) {
  const fa_tensor *v = &t->t[FA_T_V];
  const double exact = 1 / (double)v->shape[1],
               weight = subject.rounds_weight ? fa_bf16_to_f32(fa_f32_to_bf16((float)exact)) : exact;
  double sum = 0;
  for (int64_t j = 0; j < v->shape[1]; ++j)
    sum += fa_tensor_get(v, (int64_t[FA_MAX_RANK]){b, j, h, x}) * weight;
  return sum;
}

/* Row i of a causal mask with its first rows at the top right has no key where i + Sk - Sq < 0. */
static void rewrite_row(const fa_problem *p, fa_tensors *t, int64_t b, int64_t h, int64_t i) {
  const int64_t at[FA_MAX_RANK] = {b, h, i};
  const bool empty = p->mask.type == FA_MASK_CAUSAL && i + p->seqlen_k - p->seqlen_q < 0;
  const fa_tensor *lse = &t->t[FA_T_LSE], *o = &t->t[FA_T_O];
  if (!empty) {
    fa_tensor_set(lse, at, fa_tensor_get(lse, at) * subject.lse_factor);
    return;
  }
  if (subject.lse_of_empty != AS_COMPUTED) fa_tensor_set(lse, at, subject.lse_of_empty);
  for (int64_t x = 0; x < p->head_dim_v; ++x) {
    const int64_t to[FA_MAX_RANK] = {b, i, h, x};
    if (subject.mean_v) fa_tensor_set(o, to, mean_of_values(t, b, h / (p->heads_q / p->heads_kv), x));
    if (subject.o_of_empty != AS_COMPUTED) fa_tensor_set(o, to, subject.o_of_empty);
  }
}

static fa_status run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                     fa_outcome *out, fa_error *err) {
  const fa_poison poison =
      fa_tensor_is_poison(&t->t[FA_T_O], (int64_t[FA_MAX_RANK]){0}, FA_POISON_A) ? FA_POISON_A : FA_POISON_B;
  const fa_status status = fa_backend_ref_f32.run(self, p, t, opt, out, err);
  for (int64_t b = 0; b < p->batch; ++b)
    for (int64_t h = 0; h < p->heads_q; ++h)
      for (int64_t i = 0; i < p->seqlen_q; ++i) rewrite_row(p, t, b, h, i);
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (fa_tensor_id_is_output((fa_tensor_id)id) && t->t[id].data && !(subject.writes >> id & 1))
      fa_tensors_poison(t, (fa_tensor_id)id, poison);
  ++subject.n_runs;
  if (subject.o_changes) subject.o_of_empty = subject.n_runs;
  if (subject.lse_changes) subject.lse_of_empty = subject.n_runs;
  out->left_out = subject.left_out;
  if (subject.takes_away) t->t[FA_T_LSE].data = NULL;
  return status;
}

static void profile(void *self, const fa_problem *p, fa_profile *out) {
  fa_backend_ref_f32.profile(self, p, out);
  out->delta = subject.delta;
  out->p_kept = subject.p_kept;
}

/* Valid until the next call. */
static const fa_result *judged(const char *json, bool end_to_end) {
  static fa_result r;
  fa_backend b = fa_backend_ref_f32;
  fa_error err = {""};
  fa_case c;
  b.run = run;
  b.declare = declare;
  b.profile = profile;
  const fa_run_config config = {.backend = &b, .n_threads = 1, .end_to_end = end_to_end};
  fa_result_free(&r);
  REQUIRE(fa_case_from_text(json, &c, &err) == FA_OK);
  CHECK_MSG(fa_run_case(&c, &config, &r, &err) == FA_OK, "%s", err.text);
  r.case_line = fa_case_to_line(&c);
  fa_case_free(&c);
  return &r;
}

static const fa_verdict *verdict(const fa_result *r, fa_tensor_id id) {
  for (int i = 0; i < r->n_verdicts; ++i)
    if (r->verdict[i].id == id) return &r->verdict[i];
  return NULL;
}

static const fa_result *expect(fa_state state, const char *text, const char *json) {
  const fa_result *r = judged(json, false);
  const bool said = strstr(r->notes, text) || strstr(r->reason, text);
  CHECK_MSG(r->state == state && said, "%s instead of %s and \"%s\": %s; %s; %s", fa_state_name(r->state),
            fa_state_name(state), text, r->reason, r->notes, json);
  return r;
}

static const char plain[] =
    "{\"dtype\":\"f16\",\"heads_q\":4,\"heads_kv\":2,\"seqlen_q\":40,\"seqlen_k\":50,\"mask\":{\"type\":"
    "\"causal\"}}";
static const char empties[] = "{\"dtype\":\"f16\",\"heads_q\":4,\"heads_kv\":2,\"seqlen_q\":50,\"seqlen_k\":"
                              "40,\"mask\":{\"type\":\"causal\"}}";

/* ---- outputs ---- */

static void test_outputs(void) {
  fa_contract *c = &subject.says.contract;
  const fa_result *r;
  reset();
  r = expect(FA_PASS, "", plain);
  CHECK(r->n_verdicts == 5 && r->not_delivered == 0);
  subject.writes = c->outputs = ~BIT(FA_T_LSE);
  r = expect(FA_PASS, "not delivered, not judged: lse", plain);
  CHECK(strstr(r->notes, "gradients judged from its o and the reference's lse"));
  CHECK(r->n_verdicts == 4 && !verdict(r, FA_T_LSE) && r->not_delivered == BIT(FA_T_LSE));
  subject.writes = c->outputs = ~BIT(FA_T_O);
  r = expect(FA_PASS, "gradients judged from its lse and the reference's o", plain);
  CHECK(r->n_verdicts == 4 && !verdict(r, FA_T_O) && !r->end_to_end[1]);
  subject.writes = c->outputs = BIT(FA_T_O) | BIT(FA_T_DV);
  r = expect(FA_PASS, "not delivered, not judged: lse, dq, dk", plain);
  CHECK(r->n_verdicts == 2 && verdict(r, FA_T_DV));
  subject.writes = c->outputs = BIT(FA_T_DQ);
  r = expect(FA_PASS, "gradients judged end to end", plain);
  CHECK(r->n_verdicts == 1 && r->end_to_end[0] && r->passes == 3);
  subject.writes = c->outputs = BIT(FA_T_LSE);
  r = expect(FA_PASS, "backward not judged: ref-f32: it delivers no gradient", plain);
  CHECK(r->n_verdicts == 1 && r->passes == 1 && r->backward_left_out);
  c->outputs = BIT(FA_T_DBIAS);
  expect(FA_SKIP, "ref-f32: it delivers none of this call's outputs", plain);
  /* What is promised must be written. */
  reset();
  subject.writes = ~BIT(FA_T_LSE);
  r = expect(FA_FAIL, "", plain);
  CHECK(verdict(r, FA_T_LSE) && verdict(r, FA_T_LSE)->unwritten == 4 * 40);
  /* Unless the run itself says that it has not. */
  subject.left_out = BIT(FA_T_LSE);
  expect(FA_PASS, "not delivered, not judged: lse", plain);
  subject.left_out = 0;
  subject.takes_away = true;
  expect(FA_PASS, "not delivered, not judged: lse", plain);
  subject.takes_away = false;
  subject.left_out = ~(fa_tensor_bits)0;
  expect(FA_SKIP, "none of this call's outputs", plain);
  /* A wrong gradient is still found, from whatever forward it is judged. */
  reset();
  subject.writes = ~BIT(FA_T_DK);
  c->outputs = ~(BIT(FA_T_LSE) | BIT(FA_T_O));
  CHECK(verdict(expect(FA_FAIL, "", plain), FA_T_DK)->fail);
  /* End to end in addition. */
  reset();
  c->outputs = ~BIT(FA_T_LSE);
  r = judged(plain, true);
  CHECK(r->state == FA_PASS && r->n_verdicts == 1 + 3 + 3 && !r->end_to_end[1] && r->end_to_end[4]);
}

/* A dump has what was delivered, and so do report and journal. */
static void test_report(void) {
  const fa_report_head head = {.version = "", .git = "", .command = ""};
  fa_report report;
  fa_report_line line;
  reset();
  subject.writes = subject.says.contract.outputs = ~(BIT(FA_T_LSE) | BIT(FA_T_DQ));
  const fa_result *r = expect(FA_PASS, "lse, dq", plain);
  char *text = fa_report_journal_line(r, 0, 0);
  REQUIRE(text && strstr(text, "\"not_delivered\":[\"lse\",\"dq\"]"));
  REQUIRE(fa_report_line_parse(text, &line, NULL) == FA_OK);
  CHECK(line.brief->not_delivered == r->not_delivered);
  fa_report_line_free(&line);
  free(text);
  REQUIRE(fa_report_init(&report, &head, NULL) == FA_OK && fa_report_add(&report, r, NULL) == FA_OK);
  text = cJSON_Print(report.root);
  CHECK(text && strstr(text, "\"not_delivered\":[\"lse\",\"dq\"]"));
  free(text);
  fa_report_free(&report);
}

/* ---- rows without keys ---- */

static void test_lse_of_empty(void) {
  static const struct {
    fa_lse_of_empty says;
    double value;
  } good[] = {{FA_LSE_EMPTY_AS_CASE, INFINITY},  {FA_LSE_EMPTY_POS_INF, INFINITY},
              {FA_LSE_EMPTY_NEG_INF, -INFINITY}, {FA_LSE_EMPTY_ZERO, 0},
              {FA_LSE_EMPTY_NAN, NAN},           {FA_LSE_EMPTY_ANY, -7},
              {FA_LSE_EMPTY_ANY, NAN},           {FA_LSE_EMPTY_ANY, INFINITY}};
  const int n = sizeof good / sizeof *good;
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < n; ++k) {
      const bool same = memcmp(&good[i].value, &good[k].value, sizeof good[i].value) == 0;
      reset();
      subject.says.contract.lse_of_empty = good[i].says;
      subject.lse_of_empty = good[k].value;
      const bool right = good[i].says == FA_LSE_EMPTY_ANY || same;
      const fa_result *r = expect(right ? FA_PASS : FA_FAIL,
                                  good[i].says == FA_LSE_EMPTY_ANY ? "lse of 40 rows" : "", empties);
      CHECK(!strstr(r->notes, "o and lse"));
      CHECK_MSG(right || verdict(r, FA_T_LSE)->class_bad + verdict(r, FA_T_LSE)->bad >= 40, "%d %d", i, k);
      CHECK(!right || verdict(r, FA_T_DQ)); /* gradients are judged */
    }
  /* NaN must have been written, and the class of the failure is known. */
  reset();
  subject.says.contract.lse_of_empty = FA_LSE_EMPTY_NAN;
  subject.lse_of_empty = 1;
  const fa_failure_class class = fa_failure_class_of(expect(FA_FAIL, "", empties));
  CHECK(class.tensor == FA_T_LSE && class.kind == FA_KIND_CLASS);
  subject.writes = ~BIT(FA_T_LSE);
  CHECK(verdict(expect(FA_FAIL, "", empties), FA_T_LSE)->unwritten == 4 * 50);
}

static void test_o_of_empty(void) {
  fa_contract *c = &subject.says.contract;
  reset();
  subject.mean_v = true;
  expect(FA_FAIL, "", empties);
  c->o_of_empty = FA_O_EMPTY_MEAN_V;
  const fa_result *r = expect(FA_PASS, "gradients not judged: 40 rows have no visible key", empties);
  CHECK(verdict(r, FA_T_O)->count == 4 * 50 * 64 && !verdict(r, FA_T_DQ) && r->backward_left_out);
  CHECK(r->passes == 1);
  CHECK(verdict(expect(FA_PASS, "", plain), FA_T_DQ)); /* without such rows they are */
  subject.mean_v = false;
  CHECK(verdict(expect(FA_FAIL, "", empties), FA_T_O)->bad > 2000);
  c->o_of_empty = FA_O_EMPTY_NAN;
  CHECK(verdict(expect(FA_FAIL, "", empties), FA_T_O)->class_bad == 40 * 64);
  subject.o_of_empty = NAN;
  expect(FA_PASS, "gradients not judged", empties);
  c->o_of_empty = FA_O_EMPTY_ANY;
  subject.o_of_empty = 3;
  r = expect(FA_PASS, "o of 40 rows without a visible key not compared", empties);
  CHECK(verdict(r, FA_T_O)->count == 4 * 40 * 64);
  c->lse_of_empty = FA_LSE_EMPTY_ANY;
  expect(FA_PASS, "o and lse of 40 rows", empties);
  subject.o_changes = subject.lse_changes = true;
  expect(FA_PASS, "o and lse of 40 rows", empties);
  c->lse_of_empty = FA_LSE_EMPTY_ZERO;
  expect(FA_FAIL, "lse: 40 elements differ between two runs", empties);
  subject.lse_changes = false, subject.lse_of_empty = 0;
  expect(FA_PASS, "o of 40 rows", empties);
  subject.o_changes = false;
  c->o_of_empty = FA_O_EMPTY_ZERO;
  CHECK(verdict(expect(FA_FAIL, "", empties), FA_T_O)->bad == 40 * 64);
}

/* One rounding of 1 / 120, up by 3/1000, is in every element of nearly all rows: large together, and right. */
static void test_rounded_mean(void) {
  static const char tall[] = "{\"dtype\":\"bf16\",\"seqlen_q\":500,\"seqlen_k\":120,\"mask\":{\"type\":"
                             "\"causal\"},\"fill\":{\"v\":\"v_offset\"}}";
  reset();
  subject.mean_v = subject.rounds_weight = true;
  subject.says.contract.o_of_empty = FA_O_EMPTY_MEAN_V;
  const fa_result *r = expect(FA_PASS, "rows have no visible key", tall);
  CHECK(verdict(r, FA_T_O)->n_stat <= 120 * 64);
}

/* An expression and block lists hide whole rows, and so does a bias of -infinity; lengths are variable. */
static void test_hidden_rows(void) {
  reset();
  subject.says.contract.o_of_empty = FA_O_EMPTY_ANY;
  expect(
      FA_PASS, "o of 9 rows",
      "{\"family\":\"flex\",\"seqlen_q\":20,\"seqlen_k\":30,\"mask_mod\":\"q_idx > 8\",\"backward\":false}");
  expect(FA_PASS, "o of 12 rows",
         "{\"cu_seqlens_q\":[0,5,25],\"cu_seqlens_k\":[0,9,17],\"mask\":{\"type\":\"causal\"}}");
  subject.says.contract.o_of_empty = FA_O_EMPTY_NAN;
  expect(FA_FAIL, "", "{\"cu_seqlens_q\":[0,5,25],\"cu_seqlens_k\":[0,9,17],\"mask\":{\"type\":\"causal\"}}");
}

/* ---- LSE in another convention; where gradients come from ---- */

static void test_hint(void) {
  reset();
  subject.lse_factor = 1.4426950408889634;
  const fa_result *r = expect(FA_FAIL, "lse seems to be in base 2", plain);
  CHECK(verdict(r, FA_T_LSE)->fail && !verdict(r, FA_T_O)->fail);
  subject.lse_factor = 8;
  expect(FA_FAIL, "lse seems to be divided by the scale", plain);
  subject.lse_factor = 1.25;
  CHECK(!strstr(expect(FA_FAIL, "", plain)->notes, "lse seems"));
}

static void test_sources_of_gradients(void) {
  fa_declaration *d = &subject.says;
  reset();
  d->contract.lse_dtype = FA_F16;
  expect(FA_PASS, "gradients judged from its o and the reference's lse", plain);
  d->contract.lse_dtype = FA_F64;
  CHECK(!strstr(expect(FA_PASS, "", plain)->notes, "gradients"));
  subject.delta = FA_DELTA_SUM_P_DP;
  expect(FA_PASS, "gradients judged from its lse and the reference's o", plain);
  subject.delta = FA_DELTA_EXACT_O;
  subject.p_kept = true;
  expect(FA_PASS, "end to end", plain);
}

/* ---- laws ---- */

static void test_laws(void) {
  reset();
  subject.writes = subject.says.contract.outputs = ~BIT(FA_T_LSE);
  expect(FA_PASS, "not delivered, not judged: lse", "{\"seqlen_q\":40,\"law\":\"repeat\"}");
  expect(FA_SKIP, "o or lse is not delivered", "{\"seqlen_q\":40,\"law\":\"merge-ranges\"}");
  reset();
  expect(FA_PASS, "", "{\"seqlen_q\":40,\"law\":\"merge-ranges\"}");
  subject.writes = ~BIT(FA_T_LSE);
  expect(FA_FAIL, "lse", "{\"seqlen_q\":40,\"law\":\"repeat\"}");
  reset();
  subject.says.contract.o_of_empty = FA_O_EMPTY_NAN;
  expect(FA_PASS, "", "{\"seqlen_q\":40,\"law\":\"repeat\"}");
  expect(FA_SKIP, "no visible key",
         "{\"seqlen_q\":40,\"seqlen_k\":20,\"mask\":{\"type\":\"causal\"},\"law\":\"repeat\"}");
}

int main(int argc, char **argv) {
  (void)argc;
  fa_blas_startup(argv);
  test_outputs();
  test_report();
  test_lse_of_empty();
  test_o_of_empty();
  test_rounded_mean();
  test_hidden_rows();
  test_hint();
  test_sources_of_gradients();
  test_laws();
  return check_done();
}
