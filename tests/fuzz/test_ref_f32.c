/* The sanity subject and the judge, without the driver: random cases of every profile through build, run,
 * reference and comparison. By hand: test_ref_f32 PROFILE SEED FIRST COUNT runs more, -v prints one line per
 * case. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "cases/recipe/case.h"
#include "fuzz/generate/draw.h"
#include "gpu/backend.h"
#include "ref/compare/verdict.h"
#include "ref/math/blas.h"
#include "ref/reference.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>
#include <time.h>

typedef struct session {
  bool verbose;
  int64_t n_cases, n_judged[FA_T_COUNT], n_vacuous;
  double worst[FA_T_COUNT], seconds_subject, seconds_reference, slowest;
} session;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void print_failure(const fa_case *c, const fa_verdict *v) {
  char *line = fa_case_to_line(c);
  const fa_point *w = &v->worst[0];
  printf("%s %s: %lld bad (%lld class, %lld unwritten) of %lld, ratio %.3g %s%s; rms %.3f bias %.3f%s\n",
         c->name, fa_tensor_id_name(v->id), (long long)v->bad, (long long)v->class_bad,
         (long long)v->unwritten, (long long)v->count, v->worst_ratio, v->vacuous[0] ? "VACUOUS: " : "",
         v->vacuous, v->rms, v->bias, v->stat_bad ? " STAT" : "");
  if (v->n_worst)
    printf("  [%lld,%lld,%lld,%lld] got %.9g want %.9g err %.3g bound %.3g = q %.3g + a %.3g + h %.3g; %s\n",
           (long long)w->index[0], (long long)w->index[1], (long long)w->index[2], (long long)w->index[3],
           w->got, w->want, w->err, w->bound, w->quant, w->accum, w->half_ulp, v->where);
  printf("  %s\n", line ? line : "");
  free(line);
}

static void judge(session *s, const fa_case *c, const fa_tensors *in, const fa_tensors *got, fa_wants *wants,
                  fa_tensor_id id, const fa_profile *profile) {
  if (wants->t[id].n == 0) return;
  bool generic = fa_case_is_generic(c);
  fa_compare_options opt = {
      .poison = FA_POISON_A, .generic = generic, .judge_stats = generic, .profile = profile};
  fa_verdict *v = calloc(1, sizeof *v);
  fa_error err = {""};
  REQUIRE(v);
  CHECK_MSG(fa_compare_tensor(id, &c->problem, in, &wants->t[id], &got->t[id], &opt, v, &err) == FA_OK,
            "%s: %s", c->name, err.text);
  CHECK_MSG(!v->fail, "%s %s", c->name, fa_tensor_id_name(id));
  CHECK_MSG(!v->vacuous[0], "%s %s: %s", c->name, fa_tensor_id_name(id), v->vacuous);
  if (v->fail || v->vacuous[0]) print_failure(c, v);
  s->n_judged[id] += v->judged;
  if (v->worst_ratio > s->worst[id]) s->worst[id] = v->worst_ratio;
  free(v);
}

static fa_status reference(session *s, const fa_case *c, const fa_tensors *in, const fa_tensors *got,
                           const fa_profile *profile, fa_error *err) {
  static const fa_tensor_id first[] = {FA_T_O, FA_T_LSE, FA_T_P_DEBUG, FA_T_K, FA_T_V};
  static const fa_tensor_id second[] = {FA_T_DQ, FA_T_DK, FA_T_DV, FA_T_DBIAS};
  const fa_problem *p = &c->problem;
  fa_ref_options opt = {.n_threads = 1, .profile = profile, .generic = fa_case_is_generic(c)};
  fa_wants forward = {0}, backward = {0};
  fa_status status = fa_ref_forward(p, in, &opt, &forward, err);
  for (size_t i = 0; status == FA_OK && i < sizeof first / sizeof *first; ++i)
    if (p->kvcache.present || (first[i] != FA_T_K && first[i] != FA_T_V))
      judge(s, c, in, got, &forward, first[i], profile);
  if (status == FA_OK && p->backward)
    status = fa_ref_backward(p, in, &got->t[FA_T_O], &got->t[FA_T_LSE], &forward, &opt, &backward, err);
  for (size_t i = 0; status == FA_OK && i < sizeof second / sizeof *second; ++i)
    judge(s, c, in, got, &backward, second[i], profile);
  for (int id = FA_T_DBUFFER_0; status == FA_OK && id <= FA_T_DBUFFER_LAST; ++id)
    judge(s, c, in, got, &backward, (fa_tensor_id)id, profile);
  fa_wants_free(&forward);
  fa_wants_free(&backward);
  return status;
}

static void run_case(session *s, const fa_case *c) {
  const fa_backend *b = &fa_backend_ref_f32;
  const fa_problem *p = &c->problem;
  fa_tensors in = {0}, got = {0};
  fa_error err = {""};
  char where[512] = "";
  REQUIRE(fa_case_build(c, &in, &err) == FA_OK && fa_tensors_clone(&got, &in, &err) == FA_OK);
  fa_run_options opt = {.passes = FA_PASS_FORWARD | (p->backward ? FA_PASS_BACKWARD : 0), .n_threads = 1};
  fa_outcome outcome;
  double t0 = now();
  CHECK_MSG(b->run(NULL, p, &got, &opt, &outcome, &err) == FA_OK && outcome.state == FA_SUBJECT_OK,
            "%s: %s %s", c->name, outcome.text, err.text);
  double t1 = now();
  CHECK_MSG(fa_tensors_guards_intact(&got, where, sizeof where), "%s: %s", c->name, where);
  CHECK_MSG(fa_tensors_inputs_equal(&in, &got, where, sizeof where), "%s: %s", c->name, where);
  fa_profile profile;
  b->profile(NULL, p, &profile);
  CHECK_MSG(reference(s, c, &in, &got, &profile, &err) == FA_OK, "%s: %s", c->name, err.text);
  double t2 = now();
  s->seconds_subject += t1 - t0;
  s->seconds_reference += t2 - t1;
  if (t2 - t0 > s->slowest) s->slowest = t2 - t0;
  if (s->verbose) printf("%s: %.1f ms subject, %.1f ms judge\n", c->name, 1e3 * (t1 - t0), 1e3 * (t2 - t1));
  ++s->n_cases;
  fa_tensors_free(&in);
  fa_tensors_free(&got);
}

static void run_profile(session *s, const char *profile, uint64_t seed, int64_t first, int64_t n) {
  for (int64_t i = first; i < first + n; ++i) {
    fa_case c;
    fa_error err = {""};
    REQUIRE(fa_generate(profile, seed, i, &c, &err) == FA_OK);
    run_case(s, &c);
    fa_case_free(&c);
  }
}

/* The loop above must be able to fail: changes one element of each output in its fifth significant bit. */
static void check_sees_damage(void) {
  static const char *const text =
      "{\"name\":\"damage\",\"family\":\"memeff\",\"heads_q\":2,\"seqlen_q\":33,\"seqlen_k\":65,"
      "\"bias\":{\"shape\":[1,\"h\",\"q\",\"k\"],\"grad\":true},\"mask\":{\"type\":\"causal\"}}";
  static const fa_tensor_id ids[] = {FA_T_O, FA_T_LSE, FA_T_DQ, FA_T_DK, FA_T_DV, FA_T_DBIAS};
  fa_case c;
  fa_error err = {""};
  fa_tensors in = {0}, got = {0};
  fa_wants wants = {0}, backward = {0};
  fa_outcome outcome;
  fa_profile profile;
  fa_run_options run = {.passes = FA_PASS_FORWARD | FA_PASS_BACKWARD, .n_threads = 1};
  REQUIRE(fa_case_from_text(text, &c, &err) == FA_OK);
  REQUIRE(fa_case_build(&c, &in, &err) == FA_OK && fa_tensors_clone(&got, &in, &err) == FA_OK);
  REQUIRE(fa_backend_ref_f32.run(NULL, &c.problem, &got, &run, &outcome, &err) == FA_OK);
  fa_backend_ref_f32.profile(NULL, &c.problem, &profile);
  fa_ref_options opt = {.n_threads = 1, .profile = &profile, .generic = true};
  REQUIRE(fa_ref_forward(&c.problem, &in, &opt, &wants, &err) == FA_OK);
  REQUIRE(fa_ref_backward(&c.problem, &in, &got.t[FA_T_O], &got.t[FA_T_LSE], &wants, &opt, &backward, &err) ==
          FA_OK);
  for (size_t i = 0; i < sizeof ids / sizeof *ids; ++i) {
    const fa_want *want = &(ids[i] == FA_T_O || ids[i] == FA_T_LSE ? &wants : &backward)->t[ids[i]];
    fa_tensor *t = &got.t[ids[i]];
    int64_t largest = 0, index[FA_MAX_RANK];
    for (int64_t e = 0; e < want->n; ++e)
      if (isfinite(want->value[e]) && fabs(want->value[e]) > fabs(want->value[largest])) largest = e;
    fa_tensor_unravel(t, largest, index);
    fa_tensor_set(t, index, fa_tensor_get(t, index) * (1 + 0x1p-5));
    fa_verdict *v = calloc(1, sizeof *v);
    REQUIRE(v);
    fa_compare_options compare = {.generic = true, .profile = &profile};
    CHECK(fa_compare_tensor(ids[i], &c.problem, &in, want, t, &compare, v, &err) == FA_OK);
    CHECK_MSG(v->fail && v->bad == 1, "%s: damage passed", fa_tensor_id_name(ids[i]));
    free(v);
  }
  fa_wants_free(&wants);
  fa_wants_free(&backward);
  fa_tensors_free(&in);
  fa_tensors_free(&got);
  fa_case_free(&c);
}

int main(int argc, char **argv) {
  fa_blas_startup(argv);
  session *s = calloc(1, sizeof *s);
  REQUIRE(s);
  if (argc > 1 && strcmp(argv[argc - 1], "-v") == 0) s->verbose = true, --argc;
  if (argc == 5) {
    run_profile(s, argv[1], strtoull(argv[2], NULL, 10), atoll(argv[3]), atoll(argv[4]));
  } else {
    check_sees_damage();
    for (const fa_generate_profile *p = fa_generate_profiles; p->name; ++p)
      run_profile(s, p->name, 1, 0, strcmp(p->name, "long") == 0 ? 1 : 25);
  }
  printf("%lld cases, subject %.2f s, judge %.2f s, slowest %.0f ms; worst ratios:", (long long)s->n_cases,
         s->seconds_subject, s->seconds_reference, 1e3 * s->slowest);
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (s->n_judged[id]) printf(" %s %.3f", fa_tensor_id_name((fa_tensor_id)id), s->worst[id]);
  printf("\n");
  free(s);
  return check_done();
}
