/* Every hypothesis, tried on itself: outputs are made by the reference with the mistake, and must be explained by it, and
 * by nothing else but what cannot be told apart in that case. Right outputs with random errors are explained by nothing. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "fuzz/explain/compute.h"
#include "fuzz/explain/run.h"
#include "ref/reference.h"
#include "tests/support/check.h"
#include "tests/support/sanitized.h"
#include "tests/support/share.h"

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
  bool expects_nan, has_nan; /* of the last outputs */
} subject;

static void set_output(subject *s, fa_tensor_id id, const fa_want *w) {
  const fa_tensor *t = &s->got.t[id];
  int64_t index[FA_MAX_RANK];
  if (!t->data || !w->value) return;
  for (int64_t e = 0; e < w->n; ++e) {
    const bool without = isnan(w->value[e]) && !s->expects_nan;
    if (without && !fa_tensor_id_is_output(id)) continue; /* a cache's slots that are not compared */
    fa_tensor_unravel(t, e, index);
    s->has_nan |= without;
    fa_tensor_set(t, index, without ? 0 : w->value[e]);
  }
}

/* Each element becomes the right one from where the mistake takes it. */
static void move_output(subject *s, const fa_failure *x, const fa_mistake *m, fa_tensor_id id,
                        const fa_want *right) {
  const int64_t width = id == FA_T_LSE ? 1 : right->shape[right->rank - 1];
  const fa_failed t = {.id = id, .right = right, .n = right->n, .width = width};
  const fa_tensor *to = &s->got.t[id];
  int64_t index[FA_MAX_RANK];
  for (int64_t e = 0; e < t.n && to->data; ++e) {
    fa_place at;
    if (!fa_place_of(x, &t, e, &at) || !m->moved(m, x, &t, &at)) continue;
    const int64_t from = fa_element_at(x, &t, &at);
    fa_tensor_unravel(to, e, index);
    if (from >= 0) fa_tensor_set(to, index, right->value[from]);
  }
}

static void make_output(subject *s, const fa_failure *x, const fa_mistake *m, fa_tensor_id id, fa_want *w) {
  for (int64_t e = 0; m->zero && e < w->n; ++e) w->value[e] = 0;
  if (m->moved && w->value && fa_tensor_has_places(id))
    move_output(s, x, m, id, w);
  else
    set_output(s, id, w);
}

/* The outputs of a subject that makes this mistake. */
static void make_outputs(subject *s, const fa_failure *x, fa_mistake *m, fa_tensor_bits tensors) {
  const fa_scope whole = {.whole = true};
  fa_error err = {""};
  const fa_tensor_bits passes[] = {FA_OF_FORWARD, s->c.problem.backward ? FA_OF_BACKWARD : 0};
  s->expects_nan = m->expects_nan;
  for (int pass = 0; pass < 2; ++pass) {
    fa_wants w;
    if (!(tensors & passes[pass])) continue;
    REQUIRE(fa_mistake_compute(x, m, passes[pass], &whole, &w, &err) == FA_OK);
    for (int id = 0; id < FA_T_COUNT; ++id)
      if ((passes[pass] & tensors & FA_BIT(id)) || fa_tensor_is_updated(&s->c.problem, (fa_tensor_id)id))
        make_output(s, x, m, (fa_tensor_id)id, &w.t[id]);
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

static void print_explanations(const subject *s) {
  for (int i = 0; i < s->r.n_verdicts; ++i)
    if (s->r.verdict[i].fail)
      fprintf(stderr, "    %s: %lld of %lld wrong\n", fa_tensor_id_name(s->r.verdict[i].id),
              (long long)s->r.verdict[i].bad, (long long)s->r.verdict[i].count);
  for (int i = 0; i < s->r.n_explanations; ++i)
    fprintf(stderr, "    %s: %s (%g of %lld)\n", s->r.explanation[i].hypothesis, s->r.explanation[i].text,
            s->r.explanation[i].share, (long long)s->r.explanation[i].wrong);
}

/* Right outputs, judged; and a failure to hand to make(), in which the tensors of the set are to fail. */
static void right_failure(subject *s, fa_tensor_bits set, fa_failure *x) {
  fa_error err = {""};
  fa_mistake none;
  s->judged.from_o = s->judged.from_lse = true;
  s->judged.lse = s->got.t[FA_T_LSE];
  REQUIRE(fa_failure_init(x, 0, &s->c.problem, &s->in, &s->got, &s->config, &s->judged, &s->r, &err) ==
          FA_OK);
  fa_mistake_init(&none, x);
  make_outputs(s, x, &none, FA_OF_ALL);
  fa_failure_free(x);
  judge(s);
  CHECK_MSG(s->r.state == FA_UNTESTED, "right outputs fail: %s", s->c.name);
  if (s->r.state != FA_UNTESTED) print_explanations(s);
  REQUIRE(fa_failure_init(x, 0, &s->c.problem, &s->in, &s->got, &s->config, &s->judged, &s->r, &err) ==
          FA_OK);
  x->set = set;
  s->has_nan = false;
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
  if (strcmp(h->name, "scale_times") == 0)
    m.p.scale *= 1.7; /* what fits is found by looking at the failure */
  else if (!h->make(&x, variant, &m))
    goto out;
  make_outputs(&s, &x, &m, h->tensors);
  judge(&s);
  if (s.r.state != FA_FAIL || s.has_nan) goto out;
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

/* Variants and cases together. Under sanitizers every line is walked over, which is the point there. */
enum { ENOUGH = FA_SANITIZED ? 1 : 3 };

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

/* ---- random errors ---- */

typedef enum corruption { BIT_FLIPS, NOISE_IN_SOME, NOISE_IN_ALL, NOISE_OF_VALUE, N_CORRUPTIONS } corruption;

static uint64_t random_bits(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 20;
}

static double random_unit(uint64_t *state) { /* -1 .. 1 */
  return (double)(random_bits(state) % 2000001) / 1e6 - 1;
}

static double corrupted(double value, double size, corruption kind, uint64_t *state) {
  switch (kind) {
  case BIT_FLIPS:
    return random_bits(state) % 500 ? value : value * -exp2((double)(random_bits(state) % 9) - 4) + 0.01;
  case NOISE_IN_SOME:
    return random_bits(state) % 20 ? value : value + size * random_unit(state);
  case NOISE_IN_ALL:
    return value + 0.02 * size * random_unit(state);
  default:
    return value * (1 + 0.1 * random_unit(state));
  }
}

static void corrupt(subject *s, corruption kind, uint64_t seed) {
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const fa_tensor *t = &s->got.t[id];
    int64_t index[FA_MAX_RANK];
    if (!t->data || !(FA_OF_ALL >> id & 1)) continue;
    for (int64_t e = 0; e < fa_tensor_count(t); ++e) {
      fa_tensor_unravel(t, e, index);
      const double value = fa_tensor_get(t, index);
      if (isfinite(value)) fa_tensor_set(t, index, corrupted(value, 1, kind, &seed));
    }
  }
}

static void check_corruption(const char *json, corruption kind, uint64_t seed, bool sampled) {
  subject s;
  fa_failure x;
  open_subject(&s, json, true);
  right_failure(&s, 0, &x);
  corrupt(&s, kind, seed);
  judge(&s);
  CHECK(s.r.state == FA_FAIL);
  explain(&s, sampled ? 1e-9 : 0);
  CHECK_MSG(s.r.n_explanations == 0, "corruption %d of %s is explained", kind, json);
  if (s.r.n_explanations) print_explanations(&s);
  fa_failure_free(&x);
  close_subject(&s);
}

int main(int argc, char **argv) {
  for (int i = 0; i < N_CASES * N_CORRUPTIONS && argc < 2; ++i)
    if (fa_share_has(i))
      check_corruption(cases[i / N_CORRUPTIONS], (corruption)(i % N_CORRUPTIONS), (uint64_t)i + 1,
                       i % 3 == 0);
  int place = 0;
  for (const fa_hypothesis *const *table = fa_hypotheses; *table; ++table)
    for (const fa_hypothesis *h = *table; h->name; ++h)
      if (argc < 2 ? fa_share_has(place++) : strstr(h->name, argv[1]) != NULL) check_hypothesis(h);
  return check_done();
}
