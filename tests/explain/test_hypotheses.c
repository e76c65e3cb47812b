/* Every hypothesis, tried on itself: outputs are made by the reference with the mistake, and must be explained by it, and
 * by nothing else but what cannot be told apart in that case. Right outputs with random errors are explained by nothing. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "fuzz/explain/compute.h"
#include "fuzz/explain/run.h"
#include "ref/reference.h"
#include "tests/support/check.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static const char *const cases[] = {
#include "tests/explain/base_cases.inc"
};
enum { N_CASES = sizeof cases / sizeof *cases };

/* Hypotheses that some case cannot tell apart: the first is made, the second may be named too. */
static const char *const alike[][2] = {
#include "tests/explain/alike.inc"
};

static bool are_alike(const char *made, const char *named) {
  if (strcmp(made, named) == 0) return true;
  for (size_t i = 0; i < sizeof alike / sizeof *alike; ++i)
    if (strcmp(alike[i][0], made) == 0 && strcmp(alike[i][1], named) == 0) return true;
  return false;
}

typedef struct subject {
  fa_case c;
  fa_tensors in, got;
  fa_profile profile;
  fa_judge_config config;
  fa_result r;
  fa_judged judged;
} subject;

static void set_output(subject *s, fa_tensor_id id, const fa_want *w) {
  const fa_tensor *t = &s->got.t[id];
  int64_t index[FA_MAX_RANK];
  if (!t->data || !w->value) return;
  for (int64_t e = 0; e < w->n; ++e) {
    fa_tensor_unravel(t, e, index);
    fa_tensor_set(t, index, isnan(w->value[e]) ? 0 : w->value[e]);
  }
}

/* The outputs of a subject that makes this mistake; NULL: none. */
static void make_outputs(subject *s, const fa_failure *x, fa_mistake *m, uint64_t tensors) {
  const fa_scope whole = {.whole = true};
  fa_error err = {""};
  fa_wants w;
  const uint64_t passes[] = {FA_OF_FORWARD, s->c.problem.backward ? FA_OF_BACKWARD : 0};
  for (int pass = 0; pass < 2; ++pass) {
    if (!(tensors & passes[pass])) continue;
    REQUIRE(fa_mistake_compute(x, m, passes[pass], &whole, &w, &err) == FA_OK);
    for (int id = 0; id < FA_T_COUNT; ++id)
      if (passes[pass] & tensors & FA_BIT(id)) set_output(s, (fa_tensor_id)id, &w.t[id]);
    fa_wants_free(&w);
  }
}

static void open_subject(subject *s, const char *json, bool foreign) {
  fa_error err = {""};
  memset(s, 0, sizeof *s);
  fa_result_init(&s->r);
  const fa_status status = fa_case_from_text(json, &s->c, &err);
  if (status != FA_OK) fprintf(stderr, "%s: %s\n", json, err.text);
  REQUIRE(status == FA_OK);
  REQUIRE(fa_case_build(&s->c, &s->in, &err) == FA_OK);
  REQUIRE(fa_tensors_clone(&s->got, &s->in, &err) == FA_OK);
  s->profile = fa_profile_get(s->c.problem.dtype == FA_F32 ? "simt-f32" : "mma-ampere", s->c.problem.dtype);
  s->config = (fa_judge_config){.profile = &s->profile,
                                .n_threads = 1,
                                .generic = fa_case_is_generic(&s->c),
                                .backward = s->c.problem.backward,
                                .foreign = foreign,
                                .keep = &s->judged};
}

static void close_subject(subject *s) {
  fa_judged_free(&s->judged);
  fa_tensors_free(&s->got);
  fa_tensors_free(&s->in);
  fa_result_free(&s->r);
  fa_case_free(&s->c);
}

static void judge(subject *s) {
  fa_error err = {""};
  fa_judged_free(&s->judged);
  fa_result_free(&s->r);
  fa_result_init(&s->r);
  s->r.worst_ratio = 0;
  const fa_status status = fa_judge(&s->c.problem, &s->in, &s->got, &s->config, &s->r, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
}

static void explain(subject *s, double full_seconds) {
  const fa_explain_options options = {.seconds = 600, .full_seconds = full_seconds};
  fa_error err = {""};
  if (full_seconds > 0) s->r.seconds_reference = 1e-3;
  CHECK(fa_explain(&s->c.problem, &s->in, &s->got, &s->config, &s->judged, &options, &s->r, &err) == FA_OK);
}

/* Right outputs, judged; and a failure to hand to make(), in which the tensors of the set are to fail. */
static void right_failure(subject *s, uint64_t set, fa_failure *x) {
  fa_error err = {""};
  fa_mistake none;
  s->judged.from_o = s->judged.from_lse = true;
  s->judged.lse = s->got.t[FA_T_LSE];
  REQUIRE(fa_failure_init(x, &s->c.problem, &s->in, &s->got, &s->config, &s->judged, &s->r, &err) == FA_OK);
  fa_mistake_init(&none, x);
  make_outputs(s, x, &none, FA_OF_ALL);
  fa_failure_free(x);
  judge(s);
  CHECK_MSG(s->r.state == FA_UNTESTED, "right outputs fail: %s", fa_state_name(s->r.state));
  REQUIRE(fa_failure_init(x, &s->c.problem, &s->in, &s->got, &s->config, &s->judged, &s->r, &err) == FA_OK);
  x->set = set;
}

static void print_explanations(const subject *s) {
  for (int i = 0; i < s->r.n_verdicts; ++i)
    if (s->r.verdict[i].fail)
      fprintf(stderr, "    %s: %lld of %lld wrong\n", fa_tensor_id_name(s->r.verdict[i].id),
              (long long)s->r.verdict[i].bad, (long long)s->r.verdict[i].count);
  for (int i = 0; i < s->r.n_explanations; ++i)
    fprintf(stderr, "    %s: %s (%g of %lld)\n", s->r.explanation[i].hypothesis, s->r.explanation[i].text,
            s->r.explanation[i].share, (long long)s->r.explanation[i].wrong);
}

/* True if the mistake shows in this case, and so was tested. */
static bool check_variant(const char *json, const fa_hypothesis *h, int variant, bool sampled) {
  subject s;
  fa_failure x;
  fa_mistake m;
  bool tested = false;
  open_subject(&s, json, true);
  right_failure(&s, h->tensors, &x);
  fa_mistake_init(&m, &x);
  if (!h->make(&x, variant, &m)) goto out;
  make_outputs(&s, &x, &m, h->tensors);
  judge(&s);
  if (s.r.state != FA_FAIL) goto out;
  explain(&s, sampled ? 1e-9 : 0);
  tested = true;
  bool named = false, others = false;
  for (int i = 0; i < s.r.n_explanations; ++i) {
    named |= strcmp(s.r.explanation[i].hypothesis, h->name) == 0;
    others |= !are_alike(h->name, s.r.explanation[i].hypothesis);
  }
  CHECK_MSG(named && !others, "%s variant %d (%s)%s in %s", h->name, variant, m.text,
            named ? "" : ": not named", json);
  if (!named || others) print_explanations(&s);
out:
  fa_mistake_free(&m);
  fa_failure_free(&x);
  close_subject(&s);
  return tested;
}

enum { ENOUGH = 3 }; /* variants and cases together */

static void check_hypothesis(const fa_hypothesis *h) {
  int n_tested = 0;
  for (int round = 0; round < h->variants && n_tested < ENOUGH; ++round)
    for (int i = 0; i < N_CASES && n_tested < ENOUGH; ++i) {
      const int v = (round + i) % h->variants;
      n_tested += check_variant(cases[i], h, v, (i + v) % 3 == 2);
    }
  CHECK_MSG(n_tested > 0, "%s: no case shows it", h->name);
  printf("%-28s %d\n", h->name, n_tested);
}

int main(int argc, char **argv) {
  for (const fa_hypothesis *const *table = fa_hypotheses; *table; ++table)
    for (const fa_hypothesis *h = *table; h->name; ++h)
      if (argc < 2 || strstr(h->name, argv[1])) check_hypothesis(h);
  return check_done();
}
