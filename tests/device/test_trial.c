/* What a judge on a device makes of its records, against what the CPU has: the figures of a verdict, its digest, what it says of caches
 * and of means that are right; and that nothing is believed of a machine that fails on the way. */
#include "cases/data/build.h"
#include "fuzz/judging/two.h"
#include "ref/compare/internal.h"
#include "ref/cuda/try.h"
#include "ref/reference.h"
#include "tests/device/subject.h"
#include "tests/support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static fa_ref_options reference_of(const subject *s) {
  return (fa_ref_options){.n_threads = 1, .profile = &s->profile, .generic = true};
}

static fa_judge_trial doubted(const subject *s, fa_judge_machine *m, bool backward, double doubt) {
  const fa_ref_options opt = reference_of(s);
  const fa_compare_options options = {
      .generic = true, .profile = &s->profile, .poison = FA_POISON_A, .doubt = doubt};
  fa_judge_trial t = {.passed = true, .is_signed = true};
  fa_error err = {""};
  const fa_status status =
      fa_judge_try(m, &s->c.problem, &s->in, &s->got, &opt, &options, backward, &t, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
  return t;
}

static fa_judge_trial trial_of(const subject *s, fa_judge_machine *m, bool backward) {
  return doubted(s, m, backward, FA_MACHINE_DOUBT);
}

static void make_and_run(const char *text, double values, subject *s) {
  make_given(text, s);
  const fa_tensor *v = &s->in.t[FA_T_V];
  for (int64_t e = 0; e < fa_tensor_count(v); ++e) {
    int64_t index[FA_MAX_RANK];
    fa_tensor_unravel(v, e, index);
    fa_tensor_set(v, index, values * fa_tensor_get(v, index));
  }
  run_made(s);
}

/* ---- figures ---- */

static int larger_first(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

/* The worst ratio of each row of O, the largest first. */
static void ratios_of(const subject *s, const fa_want *w, double *ratio) {
  const int64_t width = w->shape[w->rank - 1];
  for (int64_t e = 0; e < w->n; ++e) {
    int64_t index[FA_MAX_RANK];
    fa_tensor_unravel(&s->got.t[FA_T_O], e, index);
    const double one = fabs(fa_tensor_get(&s->got.t[FA_T_O], index) - w->value[e]) / fa_want_bound(w, e);
    ratio[e / width] = e % width == 0 ? one : fmax(ratio[e / width], one);
  }
  qsort(ratio, (size_t)(w->n / width), sizeof *ratio, larger_first);
}

static void test_figures(fa_judge_machine *m, double values) {
  subject s;
  fa_wants out;
  double ratio[200];
  make_and_run("{\"heads_q\":2,\"seqlen_q\":40,\"seqlen_k\":50,\"head_dim\":16,\"dtype\":\"f16\",\"mask\":{"
               "\"type\":\"causal\"},\"backward\":false}",
               values, &s);
  const fa_ref_options opt = reference_of(&s);
  REQUIRE(fa_ref_forward(&s.c.problem, &s.in, &opt, &out, NULL) == FA_OK);
  const fa_want *o = &out.t[FA_T_O];
  ratios_of(&s, o, ratio);
  const fa_judge_trial t = trial_of(&s, m, false);
  const fa_verdict *v = &t.verdict[0];
  CHECK(t.passed && v->id == FA_T_O && v->n_worst == FA_WORST_POINTS);
  for (int k = 0; k < v->n_worst; ++k)
    CHECK_MSG(fabs(v->worst[k].ratio - ratio[k]) <= 1e-3 * ratio[k], "worst %d: %g, not %g", k,
              v->worst[k].ratio, ratio[k]);
  const double tightness = fa_tightness(o);
  CHECK_MSG(fabs(v->tightness - tightness) <= 1e-3 * tightness, "%g, not %g", v->tightness, tightness);
  fa_wants_free(&out);
  free_subject(&s);
}

/* ---- digests ---- */

/* The same of the same; another one where the least is another, be it in the first of all records. */
static void test_digest(fa_judge_machine *m) {
  const int64_t first[FA_MAX_RANK] = {0};
  subject s;
  make_and_run("{\"heads_q\":2,\"seqlen_q\":64,\"head_dim\":16,\"dtype\":\"f16\",\"backward\":false}", 1, &s);
  const fa_tensor *o = &s.got.t[FA_T_O];
  const double was = fa_tensor_get(o, first);
  const fa_judge_trial once = trial_of(&s, m, false), again = trial_of(&s, m, false);
  CHECK(once.passed && once.digest == again.digest);
  fa_tensor_set(o, first, was * (1 + 0x1p-10));
  CHECK(fa_tensor_get(o, first) != was);
  const fa_judge_trial other = trial_of(&s, m, false);
  CHECK(other.digest != once.digest);
  free_subject(&s);
}

/* ---- what is right, and what is not ---- */

/* With a single key the mean of V is the right answer. */
static void test_right_mean(fa_judge_machine *m) {
  subject s;
  make_and_run("{\"heads_q\":2,\"seqlen_q\":9,\"seqlen_k\":1,\"head_dim\":16,\"backward\":false}", 1, &s);
  const fa_judge_trial t = trial_of(&s, m, false);
  CHECK_MSG(t.passed, "%s", t.doubt);
  free_subject(&s);
}

/* An element that is inside of its bound by less than may be doubted, and is surely right if bounds are less in doubt; and one
 * outside of it by more is surely wrong. */
static void test_doubt(fa_judge_machine *m) {
  const int64_t first[FA_MAX_RANK] = {0};
  subject s;
  fa_wants out;
  make_and_run("{\"seqlen_q\":9,\"seqlen_k\":12,\"head_dim\":16,\"dtype\":\"f32\",\"backward\":false}", 1,
               &s);
  const fa_ref_options opt = reference_of(&s);
  REQUIRE(fa_ref_forward(&s.c.problem, &s.in, &opt, &out, NULL) == FA_OK);
  const fa_want *o = &out.t[FA_T_O];
  fa_tensor_set(&s.got.t[FA_T_O], first, o->value[0] + 0.9 * fa_want_bound(o, 0));
  CHECK(doubted(&s, m, false, 0x1p-6).passed && !doubted(&s, m, false, 0.2).passed);
  fa_tensor_set(&s.got.t[FA_T_O], first, o->value[0] + 1.3 * fa_want_bound(o, 0));
  CHECK(doubted(&s, m, false, 0x1p-6).wrong[0] && !doubted(&s, m, false, 0.4).wrong[0]);
  fa_wants_free(&out);
  free_subject(&s);
}

static void test_cache(fa_judge_machine *m) {
  const int64_t last[FA_MAX_RANK] = {0, 20, 0, 3};
  subject s;
  make_and_run(
      "{\"family\":\"kvcache\",\"seqlen_q\":2,\"seqlen_k\":32,\"head_dim\":16,\"kvcache\":{\"len\":[20],"
      "\"new\":2}}",
      1, &s);
  fa_judge_trial t = trial_of(&s, m, false);
  CHECK_MSG(t.passed, "%s", t.doubt);
  const double was = fa_tensor_get(&s.got.t[FA_T_K], last);
  fa_tensor_set(&s.got.t[FA_T_K], last, was + 1);
  t = trial_of(&s, m, false);
  CHECK_MSG(!t.passed && strcmp(t.doubt, "not surely right: a cache") == 0, "%s",
            t.doubt ? t.doubt : "no doubt");
  free_subject(&s);
}

/* ---- a machine that is watched ---- */

typedef struct watched {
  fa_judge_machine machine, *own;
  int downloads_left; /* the next one fails; < 0: none does */
  float by;           /* bounds of dK become so many times as large */
  double floor;       /* the largest that a comparison of dK had */
} watched;

static fa_status reserve(void *self, size_t bytes, char **memory, fa_error *err) {
  const watched *w = self;
  return w->own->reserve(w->own->self, bytes, memory, err);
}
static fa_status stage(void *self, size_t bytes, char **memory, fa_error *err) {
  const watched *w = self;
  return w->own->stage(w->own->self, bytes, memory, err);
}
static fa_status upload(void *self, void *to, const void *from, size_t bytes, fa_error *err) {
  const watched *w = self;
  return w->own->upload(w->own->self, to, from, bytes, err);
}
static fa_status clear(void *self, void *at, size_t bytes, fa_error *err) {
  const watched *w = self;
  return w->own->clear(w->own->self, at, bytes, err);
}
static fa_status download(void *self, void *to, const void *from, size_t bytes, fa_error *err) {
  watched *w = self;
  if (w->downloads_left >= 0 && w->downloads_left-- == 0) return fa_fail(err, FA_ERR_DEVICE, "not now");
  return w->own->download(w->own->self, to, from, bytes, err);
}
static fa_status launch(void *self, fa_judge_kernel kernel, const fa_judge_job *job, fa_error *err) {
  watched *w = self;
  CHECK_MSG(job->n > 0, "kernel %d", (int)kernel); /* a device has no launch of nothing */
  if (kernel == FA_JUDGE_KERNEL_compare && job->output.want.value == job->want_dk.value)
    w->floor = fmax(w->floor, job->output.floor);
  const fa_status status = w->own->launch(w->own->self, kernel, job, err);
  for (int64_t i = 0; kernel == FA_JUDGE_KERNEL_settle_key && i < job->got_dk.n; ++i)
    job->want_dk.accum[i] *= w->by;
  return status;
}

static watched watched_of(fa_judge_machine *own) {
  return (watched){.machine = {.most_bytes = own->most_bytes,
                               .reserve = reserve,
                               .stage = stage,
                               .upload = upload,
                               .download = download,
                               .clear = clear,
                               .launch = launch},
                   .own = own,
                   .downloads_left = -1,
                   .by = 1};
}

/* Whichever of its answers does not come, nothing is said; and when all come, what the LSE lost when it became a double is there. */
static void test_failing(fa_judge_machine *own, bool backward) {
  watched w = watched_of(own);
  subject s;
  w.machine.self = &w;
  make_and_run("{\"heads_q\":2,\"seqlen_q\":9,\"seqlen_k\":12,\"head_dim\":16,\"dtype\":\"f16\"}", 1, &s);
  const fa_ref_options opt = reference_of(&s);
  const fa_tensor *o = &s.got.t[FA_T_O], *lse = &s.got.t[FA_T_LSE];
  int64_t rests = 0;
  for (int k = 0; k < 100; ++k) {
    fa_wants out = {0};
    w.downloads_left = k;
    const fa_status status =
        backward ? fa_judge_backward(&w.machine, &s.c.problem, &s.in, o, lse, &opt, &out, NULL)
                 : fa_judge_forward(&w.machine, &s.c.problem, &s.in, &opt, &out, NULL);
    CHECK_MSG(status == (w.downloads_left < 0 ? FA_ERR_DEVICE : FA_OK), "download %d: %d", k, (int)status);
    if (status != FA_OK) continue;
    CHECK(k > 6);
    for (int64_t e = 0; e < out.t[FA_T_LSE].n; ++e) rests += out.t[FA_T_LSE].rest[e] != 0;
    fa_wants_free(&out);
    break;
  }
  CHECK(backward || rests > 0);
  free_subject(&s);
}

/* Where there is no key, kernels of keys are not launched. */
static void test_no_keys(fa_judge_machine *own) {
  watched w = watched_of(own);
  subject s;
  w.machine.self = &w;
  make_and_run("{\"cu_seqlens_q\":[0,9],\"cu_seqlens_k\":[0,0],\"head_dim\":16,\"dtype\":\"f16\"}", 1, &s);
  for (int backward = 0; backward < 2; ++backward) {
    const fa_judge_trial t = trial_of(&s, &w.machine, backward);
    CHECK_MSG(t.passed, "%d: %s", backward, t.doubt);
  }
  free_subject(&s);
}

/* Without a chain of steps behind the scores, what may be lost of a gradient is not steeper than they are. */
static void test_floor(fa_judge_machine *own) {
  watched w = watched_of(own);
  fa_vacuous_tolerance t;
  subject s;
  w.machine.self = &w;
  w.by = 1e9f;
  make_and_run("{\"heads_q\":2,\"seqlen_q\":9,\"seqlen_k\":12,\"head_dim\":16,\"dtype\":\"f16\"}", 1, &s);
  const fa_problem *p = &s.c.problem;
  const fa_tensor *dk = &s.got.t[FA_T_DK];
  fa_want want = {.dtype = dk->dtype, .rank = dk->rank, .steepest = 1};
  memcpy(want.shape, dk->shape, sizeof want.shape);
  CHECK(!trial_of(&s, &w.machine, true).passed);
  REQUIRE(fa_vacuous_tolerance_of(p, &s.in, FA_T_DK, &want, &s.profile, true, &t));
  CHECK_MSG(w.floor > 0 && w.floor == t.floor, "%g, not %g", w.floor, t.floor);
  free_subject(&s);
}

/* ---- what turns out to be the CPU's on the way ---- */

/* A backward pass by the machine of a call that is changed before or after it ran; operands are at most `most`. */
typedef struct passed_on {
  const char *more; /* members of the case */
  double most;
  void (*before)(subject *s), (*after)(subject *s);
  const char *says; /* NULL: it is taken */
} passed_on;

static const int64_t at_first[FA_MAX_RANK] = {0};

static void infinite_o(subject *s) {
  fa_tensor_set(&s->got.t[FA_T_O], at_first, INFINITY);
}

/* No error of such a score is a float. */
static void large_operands(subject *s) {
  for (int id = FA_T_Q; id <= FA_T_K; ++id)
    for (int64_t e = 0; e < fa_tensor_count(&s->in.t[id]); ++e) {
      int64_t index[FA_MAX_RANK];
      fa_tensor_unravel(&s->in.t[id], e, index);
      fa_tensor_set(&s->in.t[id], index, 1000);
    }
}

/* Numbers, whatever came of scores that are none. */
static void other_outputs(subject *s) {
  for (int id = FA_T_O; id <= FA_T_LSE; ++id)
    for (int64_t e = 0; e < fa_tensor_count(&s->got.t[id]); ++e) {
      int64_t index[FA_MAX_RANK];
      fa_tensor_unravel(&s->got.t[id], e, index);
      fa_tensor_set(&s->got.t[id], index, id == FA_T_O ? 0 : 1);
    }
}

/* P of the first row is beyond all that it may be. */
static void low_lse(subject *s) {
  fa_tensor_set(&s->got.t[FA_T_LSE], at_first, -1e6);
}

/* The last key's product is -1000, a sum of 10^9 and its negative besides: it may be anything, and its P is 0. */
static void cancelling_key(subject *s) {
  const fa_tensor *q = &s->in.t[FA_T_Q], *k = &s->in.t[FA_T_K];
  for (int64_t e = 0; e < fa_tensor_count(k); ++e) {
    int64_t index[FA_MAX_RANK];
    fa_tensor_unravel(k, e, index);
    fa_tensor_set(k, index, 0);
  }
  for (int64_t i = 0; i < q->shape[1]; ++i)
    for (int64_t d = 0; d < 3; ++d) fa_tensor_set(q, (int64_t[FA_MAX_RANK]){0, i, 0, d}, d < 2 ? 1e9 : 1000);
  for (int64_t d = 0; d < 3; ++d)
    fa_tensor_set(k, (int64_t[FA_MAX_RANK]){0, k->shape[1] - 1, 0, d}, d == 0 ? 1 : -1);
}

static void no_buffer(subject *s) {
  s->in.t[FA_T_BUFFER_0].data = NULL; /* its memory belongs to the set */
}

static void test_passed_on(fa_judge_machine *m, const passed_on *x) {
  char text[300];
  fa_error err = {""};
  fa_wants out = {0};
  subject s;
  snprintf(text, sizeof text, "{\"dtype\":\"f32\",\"seqlen_q\":9,\"seqlen_k\":12,\"head_dim\":16,%s}",
           x->more);
  make_given(text, &s);
  if (x->before) x->before(&s);
  run_made(&s);
  if (x->after) x->after(&s);
  for (int i = 0; i < FA_N_PRODUCTS; ++i) s.profile.operand_max[i] = x->most;
  const fa_ref_options opt = reference_of(&s);
  const fa_status status =
      fa_judge_backward(m, &s.c.problem, &s.in, &s.got.t[FA_T_O], &s.got.t[FA_T_LSE], &opt, &out, &err);
  CHECK_MSG(status == (x->says ? FA_ERR_UNSUPPORTED : FA_OK) && strcmp(err.text, x->says ? x->says : "") == 0,
            "%s: %d, %s", x->says ? x->says : "taken", (int)status, err.text);
  if (status == FA_OK) fa_wants_free(&out);
  free_subject(&s);
}

static void test_left_to_the_cpu(fa_judge_machine *m) {
  static const char may_overflow[] = "what may overflow on the way",
                    no_value[] = "an expression without a value";
  static const passed_on of[] = {
      {"\"scale\":0.1", INFINITY, NULL, NULL, NULL},
      {"\"scale\":1e9", INFINITY, NULL, NULL, "an LSE of 2^24 or more"},
      {"\"scale\":1e6", INFINITY, NULL, NULL, NULL}, /* some P are unknown, but no less than a part of 1 */
      {"\"scale\":1", INFINITY, cancelling_key, NULL, "a P that may be anything"},
      {"\"scale\":0.1", 0x1p-4, NULL, NULL, may_overflow},
      {"\"scale\":0.1", 65504, NULL, infinite_o, may_overflow},
      {"\"scale\":1e38", 65504, large_operands, other_outputs, may_overflow},
      {"\"scale\":1e6", 65504, NULL, low_lse, may_overflow},
      {"\"family\":\"flex\",\"score_mod\":\"sqrt(score - score)\"", INFINITY, NULL, NULL, no_value},
      {"\"family\":\"flex\",\"score_mod\":\"score + x[0]\",\"buffers\":{\"x\":{\"shape\":[1]}}", INFINITY,
       NULL, no_buffer, no_value},
  };
  for (size_t i = 0; i < sizeof of / sizeof *of; ++i) test_passed_on(m, &of[i]);
}

/* A mask of which some pair has no value, and a machine of so little memory. */
static void test_forward_left(fa_judge_machine *m) {
  const fa_profile profile = fa_profile_get("simt-f32", FA_F32);
  const fa_ref_options opt = {.n_threads = 1, .profile = &profile};
  fa_judge_machine *small = fa_judge_machine_host_new(NULL, 1 << 12);
  fa_wants out = {0};
  fa_error err = {""};
  subject s;
  REQUIRE(small);
  make_given(
      "{\"family\":\"flex\",\"dtype\":\"f32\",\"seqlen_q\":2,\"seqlen_k\":80,\"head_dim\":8,\"mask_mod\":"
      "\"(80000 - kv_idx * 1000) * 30000 > 0\"}",
      &s);
  CHECK(fa_judge_forward(m, &s.c.problem, &s.in, &opt, &out, &err) == FA_ERR_UNSUPPORTED);
  CHECK_MSG(strcmp(err.text, "an expression without a value") == 0, "%s", err.text);
  free_subject(&s);
  make_given("{\"dtype\":\"f32\",\"seqlen_q\":2,\"seqlen_k\":80,\"head_dim\":8}", &s);
  CHECK(fa_judge_forward(small, &s.c.problem, &s.in, &opt, &out, &err) == FA_ERR_MEMORY);
  CHECK_MSG(strstr(err.text, "judge: no room for") && strstr(err.text, "bytes of tensors"), "%s", err.text);
  free_subject(&s);
  fa_judge_machine_host_free(small);
}

int main(void) {
  fa_judge_machine *m = fa_judge_machine_host_new(NULL, 0);
  REQUIRE(m);
  test_figures(m, 1);
  test_figures(m, 0x1p-6);
  test_digest(m);
  test_right_mean(m);
  test_doubt(m);
  test_cache(m);
  test_failing(m, false);
  test_failing(m, true);
  test_no_keys(m);
  test_floor(m);
  test_left_to_the_cpu(m);
  test_forward_left(m);
  fa_judge_machine_host_free(m);
  return check_done();
}
