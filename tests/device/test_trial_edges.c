/* A trial where it is seldom: calls that are divided, large tiles, doubts that nothing else raises, machines and memory that fail on
 * the way, and what it must not do: ask for more than there is, or keep it. */
#include "cases/data/build.h"
#include "fuzz/judging/two.h"
#include "ref/compare/internal.h"
#include "ref/cuda/try.h"
#include "ref/reference.h"
#include "tests/device/subject.h"
#include "tests/support/check.h"

#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory that is not there ---- */

static int allocations_left = -1; /* the next one fails; < 0: none does */

static bool is_there(void) {
  return allocations_left < 0 || allocations_left-- > 0;
}

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_malloc(size_t n) {
  return is_there() ? __real_malloc(n) : NULL;
}
void *__wrap_calloc(size_t n, size_t size) {
  return is_there() ? __real_calloc(n, size) : NULL;
}

/* ---- a machine that is watched, with the honest one's own self ---- */

static struct {
  fa_judge_machine *honest, machine;
  int downloads, compares_left; /* the next comparison fails; < 0: none does */
  size_t reserved;
  float lse, o; /* bounds of all of LSE, and of O but its first row; 0: their own */
} the;

static fa_status reserve(void *self, size_t bytes, char **memory, fa_error *err) {
  the.reserved = bytes;
  return the.honest->reserve(self, bytes, memory, err);
}
static fa_status download(void *self, void *to, const void *from, size_t bytes, fa_error *err) {
  ++the.downloads;
  return the.honest->download(self, to, from, bytes, err);
}
static fa_status launch(void *self, fa_judge_kernel kernel, const fa_judge_job *job, fa_error *err) {
  if (kernel == FA_JUDGE_KERNEL_compare && the.compares_left >= 0 && the.compares_left-- == 0)
    return fa_fail(err, FA_ERR_DEVICE, "not now");
  const fa_status status = the.honest->launch(self, kernel, job, err);
  const bool settled = kernel == FA_JUDGE_KERNEL_settle_forward;
  for (int64_t i = 0; settled && the.lse > 0 && i < job->lse.n; ++i) job->want_lse.accum[i] = the.lse;
  for (int64_t i = job->c ? job->c->dv : 0; settled && the.o > 0 && i < job->o.n; ++i)
    job->want_o.accum[i] = the.o;
  return status;
}

static fa_judge_machine *watch(fa_judge_machine *honest) {
  the.honest = honest;
  the.machine = *honest;
  the.machine.reserve = reserve;
  the.machine.download = download;
  the.machine.launch = launch;
  the.compares_left = -1;
  the.lse = the.o = 0;
  the.downloads = 0;
  return &the.machine;
}

/* ---- trials ---- */

typedef enum passes { FORWARD, BACKWARD, BOTH } passes;

static fa_status try_it(const subject *s, fa_judge_machine *m, passes which, fa_judge_trial *t,
                        fa_error *err) {
  const fa_ref_options opt = {.n_threads = 1, .profile = &s->profile, .generic = true};
  const fa_compare_options options = {.generic = true,
                                      .judge_stats = true,
                                      .profile = &s->profile,
                                      .poison = FA_POISON_A,
                                      .doubt = FA_MACHINE_DOUBT};
  *t = (fa_judge_trial){.passed = true, .is_signed = true};
  return which == BOTH
             ? fa_judge_try_both(m, &s->c.problem, &s->in, &s->got, &opt, &options, t, err)
             : fa_judge_try(m, &s->c.problem, &s->in, &s->got, &opt, &options, which == BACKWARD, t, err);
}

static void make_run(const char *text, subject *s) {
  make_given(text, s);
  run_made(s);
}

static void expect(const subject *s, fa_judge_machine *m, passes which, fa_status wanted, const char *doubt) {
  fa_judge_trial t;
  fa_error err = {""};
  const fa_status status = try_it(s, m, which, &t, &err);
  CHECK_MSG(status == wanted, "%d: %s", (int)status, err.text);
  if (status == FA_OK)
    CHECK_MSG(t.passed == !doubt && (!doubt || strcmp(t.doubt, doubt) == 0), "%s, not %s",
              t.doubt ? t.doubt : "passed", doubt ? doubt : "passed");
}

/* ---- machines ---- */

static void test_undefined_memory(fa_judge_machine *m) {
  char *memory;
  REQUIRE(m->reserve(m->self, 1000, &memory, NULL) == FA_OK);
  for (int i = 0; i < 1000; i += 8) {
    double x;
    memcpy(&x, memory + i, sizeof x);
    CHECK(isnan(x));
  }
}

/* Scores of the first entry's keys and the second one's queries, which do not meet, would be far larger than those that there are. */
static void put_apart(const subject *s) {
  for (int id = FA_T_Q; id <= FA_T_K; ++id)
    for (int64_t e = 0; e < fa_tensor_count(&s->in.t[id]); ++e) {
      int64_t index[FA_MAX_RANK];
      fa_tensor_unravel(&s->in.t[id], e, index);
      fa_tensor_set(&s->in.t[id], index,
                    (index[0] == (id == FA_T_Q) ? 8 : 0.125) * fa_tensor_get(&s->in.t[id], index));
    }
}

/* Of however little memory: all turns and waves come to the same, and no more is asked for. */
static void test_little_memory(const char *more, passes which, bool by_turn) {
  char text[300];
  subject s;
  int n_right = 0;
  snprintf(text, sizeof text, "{\"batch\":2,\"heads_q\":4,\"heads_kv\":2,\"head_dim\":16,%s}", more);
  make_given(text, &s);
  if (which == FORWARD) put_apart(&s);
  run_made(&s);
  for (size_t bytes = 1 << 16; bytes < 1 << 22; bytes += bytes / 16) {
    fa_judge_machine *own = fa_judge_machine_host_new(NULL, bytes);
    fa_judge_trial t;
    REQUIRE(own);
    own->turns_from = by_turn ? 1 : 0;
    const fa_status status = try_it(&s, watch(own), which, &t, NULL);
    CHECK_MSG(status == FA_ERR_MEMORY || (status == FA_OK && t.passed && the.reserved <= bytes),
              "%zu bytes: %d, %s, %zu bytes", bytes, (int)status, t.doubt ? t.doubt : "passed", the.reserved);
    n_right += status == FA_OK;
    fa_judge_machine_host_free(own);
  }
  CHECK(n_right > 10);
  free_subject(&s);
}

/* More keys than a row has columns, in large tiles. */
static void test_large_tiles(fa_judge_machine *own) {
  fa_judge_machine *m = watch(own);
  subject s;
  make_run("{\"dtype\":\"f16\",\"seqlen_q\":70,\"seqlen_k\":300,\"head_dim\":16}", &s);
  m->wide_from = 1;
  expect(&s, m, FORWARD, FA_OK, NULL);
  expect(&s, m, BACKWARD, FA_OK, NULL);
  free_subject(&s);
}

/* ---- what a call asks for ---- */

/* Small calls wait once for both passes. */
static void test_waits(fa_judge_machine *own, const char *more, size_t turns_from, int downloads) {
  fa_judge_machine *m = watch(own);
  char text[300];
  subject s;
  snprintf(text, sizeof text, "{\"dtype\":\"f32\",\"seqlen_q\":9,\"seqlen_k\":12,\"head_dim\":16%s}", more);
  make_run(text, &s);
  m->turns_from = turns_from;
  expect(&s, m, BOTH, FA_OK, NULL);
  CHECK_MSG(the.downloads == downloads, "%s: %d", more, the.downloads);
  free_subject(&s);
}

/* Nothing that a trial had is left behind. */
static void test_leaks(fa_judge_machine *m) {
  subject s;
  size_t before = 0;
  make_run("{\"family\":\"flex\",\"dtype\":\"f32\",\"seqlen_q\":9,\"seqlen_k\":12,\"head_dim\":16,\"score_"
           "mod\":\"score * 0.5\"}",
           &s);
  for (int i = 0; i < 8; ++i) {
    expect(&s, m, BOTH, FA_OK, NULL);
    if (i == 3) before = mallinfo2().uordblks; /* all that is kept for the next one is there */
  }
  CHECK_MSG(mallinfo2().uordblks == before, "%zu bytes, %zu before", mallinfo2().uordblks, before);
  free_subject(&s);
}

/* Whichever block of memory does not come, nothing is said. */
static void test_no_memory(fa_judge_machine *m, const char *text, passes which) {
  subject s;
  int n = 0;
  make_run(text, &s);
  for (bool failed = true; failed && n < 500; ++n) {
    fa_judge_trial t;
    allocations_left = n;
    const fa_status status = try_it(&s, m, which, &t, NULL);
    failed = allocations_left < 0;
    allocations_left = -1;
    CHECK_MSG(status == (failed ? FA_ERR_MEMORY : FA_OK), "block %d: %d", n, (int)status);
  }
  CHECK_MSG(n > 5 && n < 500, "%d", n);
  free_subject(&s);
}

/* ---- what it says ---- */

/* The worst elements are the subject's own. */
static void test_points(fa_judge_machine *m) {
  subject s;
  fa_judge_trial t;
  make_run("{\"dtype\":\"f16\",\"heads_q\":2,\"seqlen_q\":40,\"seqlen_k\":50,\"head_dim\":16}", &s);
  REQUIRE(try_it(&s, m, FORWARD, &t, NULL) == FA_OK);
  const fa_verdict *v = &t.verdict[0];
  CHECK(v->id == FA_T_O && v->n_worst == FA_WORST_POINTS);
  for (int k = 0; k < v->n_worst; ++k) {
    const double got = fa_tensor_get(&s.got.t[FA_T_O], v->worst[k].index);
    const uint16_t bits = (uint16_t)v->worst[k].got_bits;
    CHECK(v->worst[k].got == got && fa_load(FA_F16, &bits) == got);
  }
  free_subject(&s);
}

/* A cache that is not there is not compared. */
static void test_half_a_cache(fa_judge_machine *m) {
  subject s;
  fa_judge_trial t;
  make_run(
      "{\"family\":\"kvcache\",\"seqlen_q\":2,\"seqlen_k\":32,\"head_dim\":16,\"kvcache\":{\"len\":[20]}}",
      &s);
  s.got.t[FA_T_V].data = NULL; /* its memory belongs to the set */
  REQUIRE(try_it(&s, m, FORWARD, &t, NULL) == FA_OK);
  CHECK_MSG(t.passed && t.n == 3 && t.verdict[2].id == FA_T_K, "%d", t.n);
  free_subject(&s);
}

/* Every element is well inside of its bound, and all are off alike. */
static void test_statistics(fa_judge_machine *m) {
  subject s;
  fa_wants out;
  make_run(
      "{\"dtype\":\"f32\",\"heads_q\":2,\"seqlen_q\":64,\"seqlen_k\":64,\"head_dim\":64,\"backward\":false}",
      &s);
  const fa_ref_options opt = {.n_threads = 1, .profile = &s.profile, .generic = true};
  REQUIRE(fa_ref_forward(&s.c.problem, &s.in, &opt, &out, NULL) == FA_OK);
  const fa_want *o = &out.t[FA_T_O];
  expect(&s, m, FORWARD, FA_OK, NULL);
  for (int64_t e = 0; e < o->n; ++e) {
    int64_t index[FA_MAX_RANK];
    fa_tensor_unravel(&s.got.t[FA_T_O], e, index);
    fa_tensor_set(&s.got.t[FA_T_O], index, o->value[e] + 0.8 * fa_want_bound(o, e));
  }
  expect(&s, m, FORWARD, FA_OK, "not surely right: statistics");
  fa_wants_free(&out);
  free_subject(&s);
}

/* Bounds that let the other entry's rows of LSE pass; and a machine that does not come back from a closer look at them. */
static void test_other_entry(fa_judge_machine *own) {
  fa_judge_machine *m = watch(own);
  subject s;
  make_run(
      "{\"dtype\":\"f16\",\"batch\":2,\"seqlen_q\":9,\"seqlen_k\":12,\"head_dim\":16,\"backward\":false}",
      &s);
  expect(&s, m, FORWARD, FA_OK, NULL);
  the.lse = 100;
  expect(&s, m, FORWARD, FA_OK, "not surely right: a trivial answer");
  the.compares_left = 2; /* O, LSE, LSE */
  expect(&s, m, FORWARD, FA_ERR_DEVICE, NULL);
  free_subject(&s);
}

/* Zeros where less than the type resolves is right, which a closer look tells. */
static void test_right_zeros(fa_judge_machine *own) {
  fa_judge_machine *m = watch(own);
  subject s;
  make_given("{\"dtype\":\"f16\",\"seqlen_q\":5,\"seqlen_k\":12,\"head_dim\":16}", &s);
  const fa_tensor *d_o = &s.in.t[FA_T_DO];
  for (int64_t e = 0; e < fa_tensor_count(d_o); ++e) {
    int64_t index[FA_MAX_RANK];
    fa_tensor_unravel(d_o, e, index);
    fa_tensor_set(d_o, index, 0x1p-24);
  }
  run_made(&s);
  the.compares_left = 100;
  expect(&s, m, BACKWARD, FA_OK, NULL);
  CHECK_MSG(the.compares_left < 97, "%d comparisons", 100 - the.compares_left);
  free_subject(&s);
}

/* Bounds that let the mean of V pass but in one row, which is looked at in the end. */
static void test_mean_of_most(fa_judge_machine *own) {
  fa_judge_machine *m = watch(own);
  subject s;
  make_run("{\"dtype\":\"f16\",\"seqlen_q\":40,\"seqlen_k\":64,\"head_dim\":16,\"backward\":false}", &s);
  the.o = 100;
  expect(&s, m, FORWARD, FA_OK, NULL);
  free_subject(&s);
}

/* Queries alone that a kernel's formats may not hold. */
static void test_large_queries(fa_judge_machine *own, size_t turns_from) {
  fa_judge_machine *m = watch(own);
  subject s;
  make_given("{\"dtype\":\"f32\",\"scale\":1e-6,\"seqlen_q\":9,\"seqlen_k\":12,\"head_dim\":16}", &s);
  fa_tensor_set(&s.in.t[FA_T_Q], (int64_t[FA_MAX_RANK]){0, 3}, 1e6);
  run_made(&s);
  m->turns_from = turns_from;
  expect(&s, m, FORWARD, FA_OK, NULL);
  s.profile.operand_max[FA_PRODUCT_QK] = 65504;
  expect(&s, m, FORWARD, FA_ERR_UNSUPPORTED, NULL);
  free_subject(&s);
}

int main(void) {
  fa_judge_machine *m = fa_judge_machine_host_new(NULL, 0);
  REQUIRE(m);
  test_undefined_memory(m);
  test_little_memory("\"dtype\":\"f16\",\"seqlen_q\":70,\"seqlen_k\":90", BACKWARD, false);
  test_little_memory("\"dtype\":\"f16\",\"seqlen_q\":70,\"seqlen_k\":90", BACKWARD, true);
  test_little_memory(
      "\"seqlen_q\":9,\"seqlen_k\":900,\"backward\":false,\"quantized\":{\"queries\":true,\"amax\":true}",
      FORWARD, false);
  test_large_tiles(m);
  test_waits(m, "", 0, 1);
  test_waits(m, "", 1, 2);
  test_waits(m, ",\"family\":\"flex\",\"score_mod\":\"score * 0.5\"", 0, 3);
  test_leaks(m);
  test_no_memory(m, "{\"dtype\":\"f16\",\"seqlen_q\":9,\"seqlen_k\":12,\"head_dim\":16}", BOTH);
  test_no_memory(m,
                 "{\"family\":\"kvcache\",\"seqlen_q\":2,\"seqlen_k\":32,\"head_dim\":16,\"kvcache\":{"
                 "\"len\":[20],\"new\":2}}",
                 FORWARD);
  test_points(m);
  test_half_a_cache(m);
  test_statistics(m);
  test_other_entry(m);
  test_right_zeros(m);
  test_mean_of_most(m);
  test_large_queries(m, 0);
  test_large_queries(m, 1);
  fa_judge_machine_host_free(m);
  return check_done();
}
