/* The bytes before the case record decide the order in which fibers run and asynchronous copies complete. No
 * order may be reported as a race, a deadlock or an access out of bounds, and all give the bits of the plain
 * order. */
#include "cases/data/build.h"
#include "fuzz/inputs/fuzzer.h"

#include "fuzz/inputs/to_case.h"
#include "fuzz/judging/judge.h"
#include "fuzz/judging/run_checks.h"
#include "gpu/backend.h"

#include <stdio.h>
#include <string.h>

typedef struct run {
  const fa_case *c;
  fa_result *r;
  unsigned passes;
  fa_tensors pristine, plain, shuffled;
} run;

static void raise_outcome(fa_result *r, const fa_outcome *o) {
  static const fa_state state[] = {[FA_SUBJECT_REJECTED] = FA_FAIL,
                                   [FA_SUBJECT_OOB] = FA_OOB,
                                   [FA_SUBJECT_RACE] = FA_RACE,
                                   [FA_SUBJECT_DEADLOCK] = FA_DEADLOCK,
                                   [FA_SUBJECT_CRASH] = FA_CRASH};
  snprintf(r->kernel, sizeof r->kernel, "%s", o->kernel);
  if (o->state == FA_SUBJECT_OK) return;
  r->state = state[o->state];
  snprintf(r->reason, sizeof r->reason, "%s", o->text);
}

static fa_status run_once(run *x, fa_tensors *t, fa_poison poison, const uint8_t *tape, size_t n,
                          fa_error *err) {
  fa_status status = fa_tensors_clone_poisoned(t, &x->pristine, poison, err);
  if (status != FA_OK) return status;
  const fa_run_options options = {.passes = x->passes, .tape = tape, .tape_bytes = n, .n_threads = 1};
  fa_outcome outcome = {0};
  status = fa_backend_host.run(NULL, &x->c->problem, t, &options, &outcome, err);
  if (status != FA_OK) return status;
  raise_outcome(x->r, &outcome);
  fa_check_memory(&x->c->problem, &x->pristine, t, poison, x->r);
  return FA_OK;
}

/* FA_ERR_MEMORY is not the subject's fault. */
static fa_status compare_schedules(run *x, const uint8_t *tape, size_t n, fa_error *err) {
  fa_profile profile;
  fa_backend_host.profile(NULL, &x->c->problem, &profile);
  fa_status status = fa_case_build(x->c, &x->pristine, err);
  if (status == FA_OK) status = run_once(x, &x->plain, FA_POISON_A, NULL, 0, err);
  if (status == FA_OK && x->r->state == FA_UNTESTED)
    status = run_once(x, &x->shuffled, FA_POISON_B, tape, n, err);
  if (status == FA_OK && x->r->state == FA_UNTESTED)
    fa_check_repeats(&x->c->problem, &profile, &x->plain, &x->shuffled, FA_POISON_B, x->r);
  return status;
}

const bool fa_fuzzer_has_tape = true;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fa_result r; /* large */
  fa_case c;
  fa_error err = {""};
  char why[256];
  if (fa_input_schedule.to_case(data, size, &c, &err) != FA_OK) return 0;
  fa_result_init(&r);
  run x = {.c = &c, .r = &r};
  x.passes = fa_backend_host.supports(NULL, &c.problem, why, sizeof why);
  if (!c.problem.backward) x.passes &= FA_PASS_FORWARD;
  if (x.passes) compare_schedules(&x, data, fa_input_tape_bytes(size), &err);
  if (r.state != FA_UNTESTED) fa_fuzzer_finding_of_input(&c, &r, fa_input_schedule.name, data, size);
  fa_tensors_free(&x.pristine);
  fa_tensors_free(&x.plain);
  fa_tensors_free(&x.shuffled);
  fa_result_free(&r);
  fa_case_free(&c);
  return 0;
}
