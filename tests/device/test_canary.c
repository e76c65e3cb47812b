/* Canaries: an honest machine finds each, and machines that lie about what they compared are found out. */
#include "fuzz/judging/canary.h"
#include "fuzz/judging/two.h"
#include "ref/reference.h"
#include "tests/device/subject.h"
#include "tests/support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- machines that lie about what they compared ---- */

typedef enum lie {
  NOTHING,
  ALL_PASS,
  FIRST_ALWAYS,
  OLD_RECORDS,
  NEVER_NAN,
  NEVER_SURE,
  TWO_RECORDS,
  TWO_AMAX
} lie;

enum { MOST = 4096 };
static struct {
  fa_judge_machine *honest, machine;
  lie lie;
  int64_t n; /* OLD_RECORDS: kept from before */
  fa_judge_check old[MOST];
  int calls;
} the;

static void lie_about(fa_judge_check *c, int64_t n, bool is_lse) {
  for (int64_t i = 0; i < n; ++i) {
    if (the.lie == ALL_PASS) c[i].odd = c[i].wrong = 0, c[i].ratio = 0.5;
    if (the.lie == FIRST_ALWAYS) c[i].worst = 0;
    if (the.lie == NEVER_NAN && c[i].got != c[i].got) c[i].odd = c[i].wrong = 0, c[i].ratio = 0;
  }
  if (the.lie == NEVER_SURE && n > 0 && c[0].odd == 0) c[0].odd = 1;
  if (the.lie == TWO_RECORDS) c[0].sum += ++the.calls;
  if (the.lie == OLD_RECORDS && is_lse && n <= MOST) {
    if (the.n == n) memcpy(c, the.old, (size_t)n * sizeof *c);
    memcpy(the.old, c, (size_t)n * sizeof *c);
    the.n = n;
  }
}

static fa_status launch(void *self, fa_judge_kernel kernel, const fa_judge_job *job, fa_error *err) {
  const fa_status status = the.honest->launch(self, kernel, job, err);
  if (kernel == FA_JUDGE_KERNEL_compare) lie_about(job->output.check, job->n, job->output.is_lse);
  if (kernel == FA_JUDGE_KERNEL_compare && the.lie == TWO_AMAX) job->found->most_amax_p += 1e-9 * ++the.calls;
  return status;
}

static fa_judge_machine *machine_that(lie l) {
  the.machine = *the.honest; /* with the honest one's own self */
  the.machine.launch = launch;
  the.lie = l;
  the.n = the.calls = 0;
  return &the.machine;
}

/* ---- tests ---- */

static void test_known(lie l, const char *says) {
  fa_error err = {""};
  const fa_status status = fa_canary_try_known(machine_that(l), &err);
  CHECK_MSG(status == (says ? FA_ERR_DEVICE : FA_OK), "%s", err.text);
  if (says) CHECK_MSG(strstr(err.text, says), "%d: %s, not %s", l, err.text, says);
}

static fa_status judge_with_canary(const subject *s, lie l, bool both, fa_result *r, fa_error *err) {
  const fa_judge_config config = {.profile = &s->profile,
                                  .n_threads = 1,
                                  .generic = fa_case_is_generic(&s->c),
                                  .backward = s->c.problem.backward,
                                  .machine = machine_that(l),
                                  .canary = !both,
                                  .both = both,
                                  .poison = FA_POISON_A};
  fa_result_init(r);
  return fa_judge(&s->c.problem, &s->in, &s->got, &config, r, err);
}

static fa_judged_by judge_made(const subject *s, lie l, bool both, const char *says) {
  fa_result *r = malloc(sizeof *r);
  fa_error err = {""};
  REQUIRE(r);
  const fa_status status = judge_with_canary(s, l, both, r, &err);
  CHECK_MSG(status == (says ? FA_ERR_DEVICE : FA_OK), "%s: %s", s->c.name, err.text);
  if (says) CHECK_MSG(strstr(err.text, says), "%d: %s, not %s", l, err.text, says);
  CHECK(r->judged.broken == (says && !both));
  const fa_judged_by by = r->judged.by;
  fa_result_free(r);
  free(r);
  return by;
}

static fa_judged_by judge_one(const char *profile, int64_t index, lie l, bool both, const char *says) {
  subject s;
  run_subject(profile, index, &s);
  const fa_judged_by by = judge_made(&s, l, both, says);
  free_subject(&s);
  return by;
}

/* Every pass of the machine is followed by a canary, and each is found. */
static void test_honest(const char *profile, int64_t n) {
  int passed = 0;
  for (int64_t i = 0; i < n; ++i) passed += judge_one(profile, i, NOTHING, false, NULL) != FA_JUDGED_BY_CPU;
  CHECK_MSG(passed > n / 2, "%s: %d", profile, passed);
}

/* Where the largest O is returned too, a canary in its place is still the only fault; and what is found of the largest P and O
 * counts among a call's records. */
static void test_amax(void) {
  subject s;
  make_given("{\"family\":\"flash\",\"backward\":false,\"seqlen_q\":9,\"seqlen_k\":140,\"quantized\":"
             "{\"queries\":true,\"amax\":true}}",
             &s);
  run_made(&s);
  const fa_ref_options options = {.n_threads = 1, .profile = &s.profile, .generic = true};
  const fa_compare_options as = {
      .poison = FA_POISON_A, .generic = true, .profile = &s.profile, .doubt = FA_MACHINE_DOUBT};
  const fa_canary_call call = {.machine = machine_that(NOTHING),
                               .p = &s.c.problem,
                               .in = &s.in,
                               .got = &s.got,
                               .options = &options,
                               .as = &as};
  const fa_tensor *o = &s.got.t[FA_T_O];
  fa_error err = {""};
  fa_wants w;
  int64_t largest = 0, index[FA_MAX_RANK] = {0};
  double most = 0;
  REQUIRE(fa_ref_forward(&s.c.problem, &s.in, &options, &w, &err) == FA_OK);
  for (int64_t e = 0; e < w.t[FA_T_O].n; ++e) {
    fa_tensor_unravel(o, e, index);
    const double x = fabs(fa_tensor_get(o, index));
    if (x > most) most = x, largest = e;
  }
  for (int nan = 0; nan < 2; ++nan) {
    const fa_status status = fa_canary_try_at(&call, FA_T_O, &w.t[FA_T_O], largest, nan, &err);
    CHECK_MSG(status == FA_OK, "%s", err.text);
  }
  judge_made(&s, NOTHING, true, NULL);
  judge_made(&s, TWO_AMAX, true, "two records of one call differ");
  fa_wants_free(&w);
  free_subject(&s);
}

/* ---- which side ---- */

fa_status __real_fa_judge_try(fa_judge_machine *m, const fa_problem *p, const fa_tensors *in,
                              const fa_tensors *got, const fa_ref_options *options,
                              const fa_compare_options *as, bool backward, fa_judge_trial *out,
                              fa_error *err);
fa_status __wrap_fa_judge_try(fa_judge_machine *m, const fa_problem *p, const fa_tensors *in,
                              const fa_tensors *got, const fa_ref_options *options,
                              const fa_compare_options *as, bool backward, fa_judge_trial *out,
                              fa_error *err);
static struct {
  bool looks;
  double most; /* of O's first element */
  int above, below;
} sides;

fa_status __wrap_fa_judge_try(fa_judge_machine *m, const fa_problem *p, const fa_tensors *in,
                              const fa_tensors *got, const fa_ref_options *options,
                              const fa_compare_options *as, bool backward, fa_judge_trial *out,
                              fa_error *err) {
  if (!sides.looks) return __real_fa_judge_try(m, p, in, got, options, as, backward, out, err);
  const double x = fa_tensor_get(&got->t[FA_T_O], (int64_t[FA_MAX_RANK]){0});
  sides.above += x > sides.most, sides.below += x < sides.most;
  return fa_fail(err, FA_ERR_DEVICE, "nobody judges");
}

/* A canary is too large as often as too small: who sees one of both only is found out. */
static void test_sides(void) {
  double value[] = {1};
  float quant[] = {0}, accum[] = {0x1p-10f};
  const fa_want w = {
      .n = 1, .rank = 4, .shape = {1, 1, 1, 1}, .value = value, .quant = quant, .accum = accum};
  subject s;
  make_given("{\"seqlen_q\":1,\"head_dim\":1,\"backward\":false}", &s);
  run_made(&s);
  const fa_canary_call call = {
      .machine = machine_that(NOTHING), .p = &s.c.problem, .in = &s.in, .got = &s.got};
  sides.looks = true, sides.most = value[0];
  for (int k = 0; k < 60; ++k) {
    fa_error err = {""};
    CHECK(fa_canary_try_at(&call, FA_T_O, &w, 0, false, &err) == FA_ERR_DEVICE);
  }
  sides.looks = false;
  CHECK_MSG(sides.above > 0 && sides.below > 0 && sides.above + sides.below == 60, "%d above, %d below",
            sides.above, sides.below);
  free_subject(&s);
}

/* ---- memory ---- */

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
static struct {
  size_t size;
  int after;
} refused = {0, -1}; /* a block of this size, after so many others of it; -1: none */

void *__wrap_malloc(size_t n) {
  if (refused.after >= 0 && n == refused.size && refused.after-- == 0) return NULL;
  return __real_malloc(n);
}

/* Without memory for what it has found the judge is not called a liar. */
static void test_no_memory(size_t size, int n) {
  for (int k = 0; k < n; ++k) {
    fa_error err = {""};
    refused.size = size, refused.after = k;
    const fa_status status = fa_canary_try_known(machine_that(NOTHING), &err);
    CHECK_MSG(status == FA_ERR_MEMORY && strcmp(err.text, "out of memory") == 0, "%d of %zu: %d, %s", k, size,
              (int)status, err.text);
    CHECK(refused.after == -1);
  }
}

/* One call in 256, whichever. */
static void test_due(void) {
  int n = 0;
  for (int i = 0; i < 25600; ++i) n += fa_canary_is_due();
  CHECK_MSG(n > 40 && n < 200, "%d of 25,600", n);
}

int main(void) {
  test_due();
  the.honest = fa_judge_machine_host_new(NULL, 0);
  REQUIRE(the.honest);
  test_known(NOTHING, NULL);
  test_known(ALL_PASS, "a canary lives: the judge on the GPU does not name o[0,0,0,0], which was made wrong");
  test_known(FIRST_ALWAYS, "a canary lives");
  test_known(NEVER_NAN, "which was made NaN");
  test_known(NEVER_SURE, "the judge on the GPU does not pass outputs that are right");
  test_known(OLD_RECORDS, "is not of this call");
  test_honest("rate-host", 40);
  test_honest("everything", 20);
  test_honest("sinks", 12);
  test_amax();
  test_sides();
  test_no_memory(sizeof(fa_judge_trial), 2); /* of outputs as they are, and with a canary */
  test_no_memory(sizeof(fa_tensors), 1);
  judge_one("rate-host", 0, ALL_PASS, false, "a canary lives");
  judge_one("rate-host", 0, NOTHING, true, NULL);
  judge_one("rate-host", 0, TWO_RECORDS, true, "two records of one call differ");
  fa_judge_machine_host_free(the.honest);
  return check_done();
}
