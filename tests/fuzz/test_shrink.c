/* The shrinker on subjects whose fault is known exactly, so that the expected result is known exactly too. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "tests/support/check.h"

#include "fuzz/shrink/reduce.h"
#include "ref/math/blas.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/* ---- a subject: ref-f32, with a wrong O[first] where a predicate holds ---- */

typedef bool predicate(const fa_problem *p, const fa_tensors *t, uint64_t schedule_seed);
static predicate *fails_when;
static enum { WRONG, CRASHES } fault;

static fa_status open_it(const char *arg, void **self, fa_error *err) {
  return fa_backend_ref_f32.open(arg, self, err);
}
static fa_status run_it(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                        fa_outcome *out, fa_error *err) {
  /* A case's second run has the next schedule, and must give the same result. */
  const bool now = fails_when(p, t, opt->schedule_seed / 2 * 2);
  if (now && fault == CRASHES) {
    signal(SIGSEGV, SIG_DFL); /* no sanitizer report */
    raise(SIGSEGV);
  }
  fa_status status = fa_backend_ref_f32.run(self, p, t, opt, out, err);
  const int64_t first[FA_MAX_RANK] = {0};
  if (status == FA_OK && now && fa_tensor_count(&t->t[FA_T_O]) > 0) fa_tensor_set(&t->t[FA_T_O], first, 1000);
  return status;
}

static fa_choice choice(void) {
  static fa_backend b;
  b = fa_backend_ref_f32;
  b.name = "planted";
  b.open = open_it;
  b.run = run_it;
  fa_choice c = {.backend = &b, .spec = "planted"};
  return c;
}

static fa_shrink_result shrink(const char *text, predicate *when, int jobs, uint64_t schedule_seed) {
  const fa_choice planted = choice();
  fa_shrink_config config = {
      .choice = &planted, .jobs = jobs, .timeout_s = 60, .schedule_seed = schedule_seed};
  fa_shrink_result r;
  fa_error err = {""};
  fa_case c;
  fails_when = when;
  REQUIRE(fa_case_from_text(text, &c, &err) == FA_OK);
  fa_status status = fa_shrink(&c, &config, &r, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
  REQUIRE(status == FA_OK);
  fa_case_free(&c);
  return r;
}

/* The whole expected result, as text. */
static void expect(const char *text, predicate *when, const char *want) {
  for (int jobs = 1; jobs <= 3; jobs += 2) { /* up to the maximum: the same answer */
    fa_shrink_result r = shrink(text, when, jobs, 0);
    char *line = fa_case_to_line(&r.c);
    CHECK_MSG(r.outcome == FA_SHRINK_DONE && strcmp(line, want) == 0, "jobs %d:\n%s, want\n%s", jobs, line,
              want);
    CHECK(r.n_failed == 5 && r.n_runs == 5 && r.last && fa_state_is_failure(r.last->state));
    CHECK(r.last && strcmp(r.last->case_line, line) == 0);
    free(line);
    fa_shrink_result_free(&r);
  }
}

#define LARGE                                                                                                \
  "\"name\":\"n\",\"note\":\"m\",\"batch\":3,\"heads_q\":6,\"heads_kv\":3,\"seqlen_q\":70,\"seqlen_k\":150," \
  "\"softcap\":20,\"dropout\":{\"p\":0.1,\"seed\":\"7\"},\"alibi\":{},\"layout\":\"bhsd\",\"data_seed\":"    \
  "\"9\","                                                                                                   \
  "\"strides\":{\"q\":{\"gap\":[0,3,5]}},\"memory\":{\"poison\":\"finite\"},\"repeat\":5,\"schedule_seed\":" \
  "\"77\""
#define SMALL(rest) "{\"name\":\"n\",\"family\":\"flash\",\"dtype\":\"f16\"" rest ",\"fill\":\"zero\"}"

static bool when_causal_and_long(const fa_problem *p, const fa_tensors *t, uint64_t seed) {
  (void)t, (void)seed;
  return p->mask.type == FA_MASK_CAUSAL && p->seqlen_k > 65;
}
static bool when_second_head(const fa_problem *p, const fa_tensors *t, uint64_t seed) {
  (void)t, (void)seed;
  return p->heads_q / p->heads_kv >= 2 && p->heads_kv >= 2 && p->seqlen_q >= 3;
}
static bool when_windowed(const fa_problem *p, const fa_tensors *t, uint64_t seed) {
  (void)t, (void)seed;
  return p->mask.type == FA_MASK_WINDOW && p->mask.left >= 4 && p->dropout.p > 0 && p->backward;
}
static bool when_a_sequence_is_empty(const fa_problem *p, const fa_tensors *t, uint64_t seed) {
  (void)t, (void)seed;
  for (int64_t b = 0; b + 1 < p->cu_seqlens_k.n; ++b)
    if (p->cu_seqlens_k.v[b] == p->cu_seqlens_k.v[b + 1] && p->cu_seqlens_q.v[p->cu_seqlens_q.n - 1] > 4)
      return true;
  return false;
}
/* Key 5 and row 2 of do are not 0. */
static bool when_rows_are_there(const fa_problem *p, const fa_tensors *t, uint64_t seed) {
  (void)seed;
  if (p->seqlen_q < 7 || p->seqlen_k < 7 || !p->backward) return false;
  const int64_t key[4] = {0, 5, 0, 0}, row[4] = {0, 2, 0, 0};
  return fa_tensor_get(&t->t[FA_T_K], key) != 0 && fa_tensor_get(&t->t[FA_T_DO], row) != 0;
}

static void test_minimal(void) {
  expect("{" LARGE ",\"mask\":{\"type\":\"causal\"}}", when_causal_and_long,
         SMALL(",\"seqlen_k\":66,\"head_dim\":1,\"mask\":{\"type\":\"causal\"},\"backward\":false"));
  expect(
      "{" LARGE "}", when_second_head,
      SMALL(",\"heads_q\":4,\"heads_kv\":2,\"seqlen_q\":3,\"seqlen_k\":1,\"head_dim\":1,\"backward\":false"));
  expect("{" LARGE ",\"mask\":{\"type\":\"window\",\"left\":40,\"right\":3}}", when_windowed,
         SMALL(",\"head_dim\":1,\"mask\":{\"type\":\"window\",\"left\":4},\"dropout\":{\"p\":0.1}"));
  expect("{\"name\":\"n\",\"heads_q\":2,\"cu_seqlens_q\":[0,7,20,30,31],\"cu_seqlens_k\":[0,9,9,40,50],"
         "\"seqused_k\":[4,0,30,1]}",
         when_a_sequence_is_empty,
         SMALL(",\"head_dim\":1,\"cu_seqlens_q\":[0,5],\"cu_seqlens_k\":[0,0],\"backward\":false"));
}

static void test_rows(void) {
  fa_shrink_result r = shrink("{\"heads_q\":2,\"seqlen_q\":40,\"seqlen_k\":50}", when_rows_are_there, 2, 0);
  const fa_int32_array *k = &r.c.zero[FA_T_K], *row = &r.c.zero[FA_T_DO];
  CHECK(r.outcome == FA_SHRINK_DONE && r.c.problem.seqlen_q == 7 && r.c.problem.seqlen_k == 7);
  CHECK(k->n == 4 && k->v[0] == 0 && k->v[1] == 5 && k->v[2] == 6 && k->v[3] == 7);
  CHECK(row->n == 4 && row->v[0] == 0 && row->v[1] == 2 && row->v[2] == 3 && row->v[3] == 7);
  CHECK(r.c.fill[FA_T_Q] == FA_FILL_ZERO && r.c.fill[FA_T_V] == FA_FILL_ZERO);
  fa_shrink_result_free(&r);
}

/* ---- faults that depend on the schedule ---- */

static bool with_three_schedules(const fa_problem *p, const fa_tensors *t, uint64_t seed) {
  (void)t;
  return p->seqlen_k > 20 && (seed == 0 || seed == 4 || seed == 6);
}
static bool with_two_schedules(const fa_problem *p, const fa_tensors *t, uint64_t seed) {
  (void)t;
  return p->seqlen_k > 20 && (seed == 2 || seed == 8);
}
static bool with_one_schedule(const fa_problem *p, const fa_tensors *t, uint64_t seed) {
  (void)t;
  return (p->seqlen_k > 30 && seed == 10) || (p->seqlen_k > 20 && p->seqlen_k < 60 && seed == 14);
}
static bool never(const fa_problem *p, const fa_tensors *t, uint64_t seed) {
  (void)p, (void)t, (void)seed;
  return false;
}
static bool always(const fa_problem *p, const fa_tensors *t, uint64_t seed) {
  (void)p, (void)t, (void)seed;
  return true;
}

/* As with_one_schedule, plus one other schedule that always fails. */
static bool with_another_too(const fa_problem *p, const fa_tensors *t, uint64_t seed) {
  return with_one_schedule(p, t, seed) || seed == 4;
}
static bool with_late_schedules(const fa_problem *p, const fa_tensors *t, uint64_t seed) {
  (void)p, (void)t;
  return seed >= 76;
}
static bool with_every_fourth(const fa_problem *p, const fa_tensors *t, uint64_t seed) {
  (void)p, (void)t;
  return seed % 8 == 4;
}

/* The case's own schedule and its number of runs are kept if they are needed. */
static void test_schedule_of_the_case(void) {
  fa_shrink_result r =
      shrink("{\"seqlen_q\":9,\"seqlen_k\":90,\"schedule_seed\":\"10\"}", with_another_too, 2, 0);
  CHECK_MSG(r.outcome == FA_SHRINK_DONE && r.c.schedule_seed == 10 && r.schedule_seed == 4 &&
                r.c.problem.seqlen_k == 21 && r.n_failed == 5,
            "outcome %d, %lld keys, schedules %llu and %llu", r.outcome, (long long)r.c.problem.seqlen_k,
            (unsigned long long)r.c.schedule_seed, (unsigned long long)r.schedule_seed);
  fa_shrink_result_free(&r);

  r = shrink("{\"seqlen_q\":9,\"schedule_seed\":\"76\"}", with_late_schedules, 2, 0);
  CHECK(r.outcome == FA_SHRINK_DONE && r.c.schedule_seed == 76 && r.c.problem.seqlen_q == 1);
  fa_shrink_result_free(&r);

  /* Runs 0 .. 3 agree. */
  r = shrink("{\"seqlen_q\":9,\"repeat\":8}", with_every_fourth, 2, 0);
  CHECK_MSG(r.outcome == FA_SHRINK_DONE && r.failure.state == FA_NONDETERMINISTIC && r.c.repeat == 5,
            "outcome %d, %lld runs", r.outcome, (long long)r.c.repeat);
  fa_shrink_result_free(&r);
}

static void test_flaky(void) {
  static const char text[] = "{\"name\":\"n\",\"heads_q\":2,\"seqlen_q\":9,\"seqlen_k\":90}";
  fa_shrink_result r = shrink(text, with_three_schedules, 2, 0);
  CHECK_MSG(r.outcome == FA_SHRINK_DONE && r.n_failed == 3 && r.c.problem.seqlen_k == 21,
            "%d of 5, %lld keys", r.n_failed, (long long)r.c.problem.seqlen_k);
  fa_shrink_result_free(&r);

  r = shrink(text, with_two_schedules, 2, 0);
  CHECK_MSG(r.outcome == FA_SHRINK_FLAKY && r.n_failed == 2 && r.n_runs == 5, "outcome %d, %d", r.outcome,
            r.n_failed);
  fa_shrink_result_free(&r);

  r = shrink(text, never, 2, 0);
  CHECK(r.outcome == FA_SHRINK_PASSES && r.n_failed == 0 && r.n_runs == 5);
  fa_shrink_result_free(&r);

  /* Only with its own schedule, but always with that; smaller cases may need another one. */
  r = shrink(text, with_one_schedule, 2, 10);
  CHECK_MSG(r.outcome == FA_SHRINK_DONE && r.c.problem.seqlen_k == 21 && r.schedule_seed == 14 &&
                r.n_failed == 5,
            "outcome %d, %lld keys, schedule %llu", r.outcome, (long long)r.c.problem.seqlen_k,
            (unsigned long long)r.schedule_seed);
  fa_shrink_result_free(&r);

  /* A schedule that does not matter is not reported. */
  r = shrink(text, always, 2, 1234);
  CHECK(r.outcome == FA_SHRINK_DONE && r.schedule_seed == 0);
  fa_shrink_result_free(&r);
}

static void test_crash(void) {
  fault = CRASHES;
  fa_shrink_result r = shrink("{\"batch\":2,\"heads_q\":2,\"seqlen_q\":20}", when_second_head, 2, 0);
  CHECK(r.outcome == FA_SHRINK_PASSES);
  fa_shrink_result_free(&r);
  r = shrink("{\"batch\":2,\"heads_q\":4,\"heads_kv\":2,\"seqlen_q\":20}", when_second_head, 2, 0);
  CHECK(r.outcome == FA_SHRINK_DONE && r.failure.state == FA_CRASH &&
        strcmp(r.failure.signal, "SIGSEGV") == 0);
  CHECK(r.c.problem.seqlen_q == 3 && r.c.problem.batch == 1 && r.c.problem.heads_q == 4);
  fa_shrink_result_free(&r);
  fault = WRONG;
}

/* ---- limits, and how proposals are made ---- */

/* An expression of many parts, one of which is at fault: it remains, with what it needs. */
static bool when_tanh_of_a_table(const fa_problem *p, const fa_tensors *t, uint64_t seed) {
  (void)t, (void)seed;
  const char *tanh = p->score_mod ? strstr(p->score_mod, "tanh(") : NULL;
  return tanh && strstr(tanh, "table[") && p->mask_mod && strstr(p->mask_mod, "%");
}

static void test_expressions(void) {
  expect("{\"name\":\"n\",\"family\":\"flex\",\"seqlen_q\":9,\"heads_q\":2,\"head_dim\":8,"
         "\"score_mod\":\"score > 0.5 ? abs(score) + 3.0 * tanh(0.1 * (score + one * table[h, kv_idx % 4]) / "
         "2.0) : "
         "max(score, -1.0)\",\"mask_mod\":\"q_idx >= kv_idx && !((q_idx - kv_idx) % 5 == 1) || h == 0\","
         "\"buffers\":{\"one\":{},\"table\":{\"shape\":[2,4]},\"unread\":{\"shape\":[3]}}}",
         when_tanh_of_a_table,
         "{\"name\":\"n\",\"family\":\"flex\",\"dtype\":\"f16\",\"head_dim\":1,\"score_mod\":\"tanh(table[h, "
         "kv_idx])\","
         "\"mask_mod\":\"q_idx % "
         "5\",\"buffers\":{\"table\":{\"shape\":[2,4]}},\"backward\":false,\"fill\":\"zero\"}");
}

static void test_budget(void) {
  const fa_choice planted = choice();
  fa_shrink_config config = {.choice = &planted, .jobs = 1, .timeout_s = 60, .seconds = 1e-6};
  fa_shrink_result r;
  fa_error err = {""};
  fa_case c;
  fails_when = always;
  REQUIRE(fa_case_from_text("{\"seqlen_q\":33}", &c, &err) == FA_OK);
  const fa_failure_class known = {.state = FA_FAIL, .tensor = FA_T_O, .kind = FA_KIND_BOUND};
  config.known = &known;
  config.seconds = 1e-6;
  REQUIRE(fa_shrink(&c, &config, &r, &err) == FA_OK);
  CHECK(r.out_of_time && r.outcome == FA_SHRINK_DONE && r.c.problem.seqlen_q == 33);
  fa_shrink_result_free(&r);
  fa_case_free(&c);
}

static void test_values(void) {
  int64_t v[FA_SHRINK_VALUES];
  CHECK(fa_shrink_values(1, 1, v) == 0 && fa_shrink_values(0, 0, v) == 0 && fa_shrink_values(-1, 0, v) == 0);
  for (int64_t n = 1; n < 3000; n += 1 + n / 7) {
    const int count = fa_shrink_values(n, 0, v);
    CHECK(count > 0 && count <= FA_SHRINK_VALUES && v[0] == 0 && v[count - 1] == n - 1);
    for (int i = 1; i < count; ++i) CHECK(v[i] > v[i - 1]);
  }
  CHECK(fa_shrink_values((int64_t)1 << 30, 1, v) < FA_SHRINK_VALUES);
  /* Chunks of every size cover everything exactly once. */
  for (int64_t n = 1; n < 70; ++n) {
    int64_t from, length, covered = 0, i = 0;
    for (; fa_shrink_chunk(n, i, &from, &length); ++i) covered += length;
    int sizes = 0;
    for (int64_t size = n; size > 0; size /= 2) ++sizes;
    CHECK(covered == n * sizes && i <= 3 * n);
  }
}

/* A shrunk case keeps the larger one's values: fills do not depend on sizes. */
static void test_elements_stay(void) {
  fa_error err = {""};
  for (int f = 0; f < FA_FILL_ZERO; ++f) {
    fa_case large, small;
    fa_tensors a, b;
    if (f == FA_FILL_ONE_HOT) continue; /* its queries choose among the existing keys */
    REQUIRE(fa_case_from_text("{\"batch\":2,\"heads_q\":4,\"seqlen_q\":40,\"seqlen_k\":70}", &large, &err) ==
            FA_OK);
    fa_case_set_fill(&large, (fa_fill)f);
    REQUIRE(fa_case_copy(&small, &large) == FA_OK);
    small.problem.batch = 1;
    small.problem.heads_q = small.problem.heads_kv = 2;
    small.problem.seqlen_q = 9;
    small.problem.seqlen_k = 21;
    REQUIRE(fa_case_build(&large, &a, &err) == FA_OK && fa_case_build(&small, &b, &err) == FA_OK);
    int64_t differ = 0, index[FA_MAX_RANK];
    for (int id = FA_T_Q; id <= FA_T_V; ++id)
      for (int64_t e = 0; e < fa_tensor_count(&b.t[id]); ++e) {
        fa_tensor_unravel(&b.t[id], e, index);
        differ += fa_tensor_get(&a.t[id], index) != fa_tensor_get(&b.t[id], index);
      }
    CHECK_MSG(differ == 0, "fill %s: %lld elements differ", fa_fill_describe((fa_fill)f)->name,
              (long long)differ);
    fa_tensors_free(&a);
    fa_tensors_free(&b);
    fa_case_free(&large);
    fa_case_free(&small);
  }
}

/* A case of one sequence has one length of each kind, that of lists of keys too. */
static void test_lengths_are_fitted(void) {
  fa_error err = {""};
  const fa_shrink_goal goal = {.default_scale = false};
  fa_case c;
  REQUIRE(
      fa_case_from_text("{\"family\":\"kvcache\",\"batch\":3,\"seqlen_k\":9,\"kvcache\":{\"len\":[9,4,2]},"
                        "\"topk\":{\"k\":5,\"len\":[3,2,0]}}",
                        &c, &err) == FA_OK);
  c.problem.batch = 1;
  fa_shrink_mend(&c, &goal);
  CHECK_MSG(fa_case_validate(&c, &err) == FA_OK, "%s", err.text);
  CHECK(c.problem.topk.len.n == 1 && c.problem.topk.len.v[0] == 3);
  fa_case_free(&c);
}

int main(int argc, char **argv) {
  (void)argc;
  fa_blas_startup(argv);
  test_values();
  test_lengths_are_fitted();
  test_elements_stay();
  test_minimal();
  test_rows();
  test_flaky();
  test_schedule_of_the_case();
  test_crash();
  test_expressions();
  test_budget();
  return check_done();
}
