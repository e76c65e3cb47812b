#include "fuzz/judging/delivered.h"
#include "fuzz/judging/judge.h"
#include "fuzz/judging/run_checks.h"
#include "fuzz/judging/stage.h"
#include "fuzz/one/parts.h"
#include "report/text/progress.h"

#include <stdio.h>
#include <string.h>

typedef fa_one_run run;

/* True if the subject finished. Otherwise it was stopped, and its outputs mean nothing. */
static bool outcome_is_good(run *x, const fa_outcome *o) {
  static const fa_state state[] = {[FA_SUBJECT_OOB] = FA_OOB,
                                   [FA_SUBJECT_RACE] = FA_RACE,
                                   [FA_SUBJECT_DEADLOCK] = FA_DEADLOCK,
                                   [FA_SUBJECT_CRASH] = FA_CRASH};
  fa_result *r = x->r;
  bool expect_reject = x->c->expect == FA_EXPECT_REJECT;
  snprintf(r->kernel, sizeof r->kernel, "%s", o->kernel);
  snprintf(r->backward_kernel, sizeof r->backward_kernel, "%s", o->backward_kernel);
  r->work = o->work;
  if (o->state == FA_SUBJECT_OK) return true;
  snprintf(r->reason, sizeof r->reason, "%s", o->text);
  if (o->state != FA_SUBJECT_REJECTED) {
    r->state = state[o->state];
  } else if (expect_reject && o->text[0]) {
    r->state = FA_PASS;
    r->reason[0] = 0;
    fa_result_note(r, "refused: %s", o->text);
  } else {
    r->state = FA_FAIL;
    snprintf(r->reason, sizeof r->reason, o->text[0] ? "refused: %s" : "refused without a message%s",
             o->text);
  }
  return false;
}

static void check_memory(run *x, const fa_tensors *after, fa_poison poison) {
  if (!fa_one_has_layer(x, FA_LAYER_GUARDS)) return;
  const fa_stage outer = fa_stage_enter(FA_STAGE_MEMORY);
  fa_check_memory(&x->c->problem, &x->pristine, after, poison, x->r);
  fa_stage_enter(outer);
}

/* Without the layer "poison": outputs begin as zeros, as those of a fresh allocation do. */
static void clear_outputs(fa_tensors *t) {
  int64_t index[FA_MAX_RANK];
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const int64_t n =
        fa_tensor_id_is_output((fa_tensor_id)id) && t->t[id].data ? fa_tensor_count(&t->t[id]) : 0;
    for (int64_t i = 0; i < n; ++i) {
      fa_tensor_unravel(&t->t[id], i, index);
      fa_tensor_set(&t->t[id], index, 0);
    }
  }
}

bool fa_one_is_its_fault(run *x, fa_status status, const fa_error *err) {
  if (!x->config->rules) return false;
  if (status == FA_ERR_UNSUPPORTED && fa_one_has_layer(x, FA_LAYER_CONTRACT)) {
    fa_result_raise(x->r, FA_FAIL, "refused inside its contract: %s", err->text);
    return true;
  }
  if (x->r->malformed || (status != FA_ERR_DEVICE && status != FA_ERR_INPUT)) return false;
  if (!fa_one_has_layer(x, FA_LAYER_FINAL)) return false;
  fa_result_raise(x->r, FA_CRASH, "%s", err->text);
  return true;
}

/* Outputs of its contract that it has not written. */
static void note_left_out(run *x, fa_tensor_bits left_out) {
  const fa_tensor_bits promised = left_out & x->declaration.contract.outputs;
  x->declaration.contract.outputs &= ~left_out;
  if (!x->config->rules || !fa_one_has_layer(x, FA_LAYER_CONTRACT)) return;
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (promised >> id & 1)
      fa_result_raise(x->r, FA_FAIL, "%s is not written, which its contract promises",
                      fa_tensor_id_name((fa_tensor_id)id));
}

/* What the subject gets, in the backend's own memory if it has some. That is this run's alone: not of a case inside another,
 * whose tensors may be there. */
static fa_status copy_pristine(run *x, fa_tensors *t, fa_poison poison, fa_error *err) {
  const fa_backend *b = x->config->backend;
  const size_t bytes = b->memory && !x->inner ? fa_tensors_block_bytes(&x->pristine) : 0;
  char *block = bytes > 0 ? b->memory(x->config->backend_self, t == &x->second, bytes) : NULL;
  if (!block) return fa_tensors_clone_poisoned(t, &x->pristine, poison, err);
  fa_tensors_clone_poisoned_into(t, &x->pristine, poison, block);
  return FA_OK;
}

/* A subject that finds only now that it cannot do the case may still have written where it must not. */
fa_status fa_one_run_once(run *x, fa_tensors *t, fa_poison poison, uint64_t schedule_seed, bool *good,
                          fa_error *err) {
  const fa_stage outer = fa_stage_enter(FA_STAGE_COPIES);
  fa_status status = copy_pristine(x, t, poison, err);
  fa_stage_enter(outer);
  if (status != FA_OK) return status;
  if (!fa_one_has_layer(x, FA_LAYER_POISON)) clear_outputs(t);
  fa_run_options options = {
      .passes = x->passes, .schedule_seed = schedule_seed, .n_threads = x->config->n_threads};
  fa_outcome outcome;
  memset(&outcome, 0, sizeof outcome);
  double start = fa_seconds_now();
  fa_stage_enter(FA_STAGE_SUBJECT);
  status = x->config->backend->run(x->config->backend_self, &x->c->problem, t, &options, &outcome, err);
  x->r->seconds_subject += fa_seconds_now() - start;
  fa_stage_enter(outer);
  const bool late = status == FA_ERR_UNSUPPORTED;
  const fa_state before = x->r->state;
  *good = false;
  if (status != FA_OK && fa_one_is_its_fault(x, status, err)) return FA_OK;
  if (status != FA_OK && !late) return status;
  *good = !late && outcome_is_good(x, &outcome);
  if (!late) note_left_out(x, fa_outputs_left_out(&x->pristine, t, x->passes, &outcome));
  check_memory(x, t, poison);
  return late && x->r->state == before ? status : FA_OK;
}
