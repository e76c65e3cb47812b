/* A turn of one call: the data are new, depend on the answer before, and lie at another place of the region than last time. */
#include "cases/data/build.h"
#include "cases/tensors/guard.h"
#include "fuzz/judging/delivered.h"
#include "fuzz/timing/course.h"
#include "report/text/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* Another place than the last one. The first is the farthest, so that the region grows once. */
static int next_place(const fa_course *x) {
  if (x->n_outputs == 0) return x->n_places - 1;
  if (x->n_places < 2) return 0;
  return (x->last_place + 1 + (int)fa_secret_below(x->n_places - 1)) % x->n_places;
}

/* A run that did not end well is the subject's. */
static void take_outcome(fa_course *x, const fa_outcome *o) {
  static const char *const by[] = {[FA_SUBJECT_REJECTED] = "refused",
                                   [FA_SUBJECT_OOB] = "memory",
                                   [FA_SUBJECT_RACE] = "race",
                                   [FA_SUBJECT_DEADLOCK] = "hang",
                                   [FA_SUBJECT_CRASH] = "crash"};
  if (o->kernel[0]) snprintf(x->kernel, sizeof x->kernel, "%s", o->kernel);
  if (o->state != FA_SUBJECT_OK) fa_course_fault(x, by[o->state], "%s", o->text);
}

/* Pages exist once they are touched: better now than while the clock runs. */
static void touch_all(const fa_exec_memory *m) {
#ifdef MADV_POPULATE_WRITE
  if (m->map)
    madvise(m->map, m->bytes,
            MADV_POPULATE_WRITE); /* where the kernel is older, the first calls take longer */
#else
  (void)m;
#endif
}

/* The clock runs from the first byte that is handed over to the last one that was copied out: fa_exec_run does both. */
static fa_status call(fa_course *x, fa_tensors *t, double *wall, fa_outcome *outcome, fa_error *err) {
  const fa_run_options opt = {.passes = x->passes, .n_threads = x->n_threads};
  memset(outcome, 0, sizeof *outcome);
  x->last_place = x->batch ? 0 : next_place(x);
  x->who->exec->memory.first = (size_t)x->last_place * x->place_bytes;
  const double start = fa_exec_now();
  const fa_status status = fa_exec_run(x->who->exec, &x->c->problem, t, &opt, outcome, err);
  *wall = fa_exec_now() - start;
  x->who->exec->memory.first = 0;
  fa_course_watch(x);
  if (x->n_outputs == 0) touch_all(&x->who->exec->memory);
  if (status != FA_ERR_UNSUPPORTED) return status;
  fa_course_fault(x, "refused", "%s", err->text);
  return FA_OK;
}

static fa_status take_answer(fa_course *x, const fa_tensors *in, fa_tensors *got, const fa_outcome *outcome,
                             fa_turn turn, bool judged, fa_error *err) {
  const fa_tensor_bits outputs = fa_outputs_of(in, x->passes);
  x->said.contract.outputs &= ~fa_outputs_left_out(in, got, x->passes, outcome);
  fa_link_take_tensor(&x->link, &got->t[FA_T_O]);
  ++x->n_outputs;
  if (!judged) return FA_OK;
  fa_outputs_drop(got, outputs & ~x->said.contract.outputs);
  return fa_course_judge(x, in, got, x->c->problem.scale, turn, fa_seconds_now(), err);
}

fa_status fa_chain_turn(fa_course *x, fa_turn turn, bool judged, double *wall, fa_error *err) {
  fa_tensors in, got;
  fa_outcome outcome;
  x->drawn.data_seed = fa_link_seed(&x->link);
  fa_status status = fa_case_build_on(&x->drawn, x->n_threads, &in, err);
  if (status != FA_OK) return status;
  status = fa_tensors_clone_poisoned(&got, &in, FA_POISON_A, err);
  if (status == FA_OK) {
    status = call(x, &got, wall, &outcome, err);
    if (status == FA_OK && !x->why[0]) take_outcome(x, &outcome);
    if (status == FA_OK && !x->why[0]) status = take_answer(x, &in, &got, &outcome, turn, judged, err);
    fa_tensors_free(&got);
  }
  fa_tensors_free(&in);
  return status;
}
