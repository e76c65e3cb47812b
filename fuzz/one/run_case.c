#include "fuzz/one/run_case.h"
#include "cases/data/build.h"

#include "fuzz/explain/run.h"
#include "fuzz/judging/delivered.h"
#include "fuzz/judging/empty_rows.h"
#include "fuzz/judging/judge.h"
#include "fuzz/judging/run_checks.h"
#include "fuzz/judging/stage.h"
#include "fuzz/laws/check.h"
#include "fuzz/one/dump.h"
#include "ref/reference.h"
#include "report/text/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct run {
  const fa_case *c;
  const fa_run_config *config;
  fa_result *r;
  fa_profile profile;
  fa_declaration declaration; /* its outputs lose those that a run leaves out */
  unsigned passes;
  fa_tensors pristine, first, second; /* outputs of pristine: poison A */
} run;

static void skip(fa_result *r, const char *reason) {
  r->state = FA_SKIP;
  snprintf(r->reason, sizeof r->reason, "%s", reason);
}

/* Sets the passes of the case that the backend can do. False: nothing is left to run, and the result says
 * why. */
static bool choose_passes(run *x) {
  const fa_backend *b = x->config->backend;
  const fa_problem *p = &x->c->problem;
  char why[256] = "";
  unsigned able = b->supports(x->config->backend_self, p, why, sizeof why);
  unsigned wanted = FA_PASS_FORWARD | (p->backward ? FA_PASS_BACKWARD : 0);
  x->passes = able & wanted;
  if (!(able & FA_PASS_FORWARD)) {
    if (x->c->expect == FA_EXPECT_REJECT) {
      x->r->state = FA_PASS;
      fa_result_note(x->r, "refused: %s", why);
    } else {
      char reason[400];
      snprintf(reason, sizeof reason, "%s: %s", b->name, why[0] ? why : "not supported");
      skip(x->r, reason);
    }
    return false;
  }
  x->r->backward_left_out = (wanted & FA_PASS_BACKWARD) && !(able & FA_PASS_BACKWARD);
  if (x->r->backward_left_out)
    fa_result_note(x->r, "backward not judged: %s: %s", b->name, why[0] ? why : "not supported");
  return true;
}

static uint64_t undelivered(const run *x) {
  return fa_outputs_of(&x->pristine, x->passes) & ~x->declaration.contract.outputs;
}

static void skip_nothing_delivered(run *x) {
  char reason[160];
  snprintf(reason, sizeof reason, "%s: it delivers none of this call's outputs", x->config->backend->name);
  skip(x->r, reason);
}

/* Leaves out a backward that delivers nothing. False: no output is left to judge, and the result says so. */
static bool choose_outputs(run *x) {
  const uint64_t delivers = x->declaration.contract.outputs;
  const uint64_t forward = fa_outputs_of(&x->pristine, FA_PASS_FORWARD);
  const uint64_t backward = fa_outputs_of(&x->pristine, x->passes) & ~forward;
  if (backward && !(backward & delivers)) {
    x->passes = FA_PASS_FORWARD;
    x->r->backward_left_out = true;
    fa_result_note(x->r, "backward not judged: %s: it delivers no gradient", x->config->backend->name);
  }
  const bool appends = fa_tensor_is_updated(&x->c->problem, FA_T_K);
  if (((forward | backward) & delivers) || appends) return true;
  skip_nothing_delivered(x);
  return false;
}

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
  const fa_stage outer = fa_stage_enter(FA_STAGE_MEMORY);
  fa_check_memory(&x->c->problem, &x->pristine, after, poison, x->r);
  fa_stage_enter(outer);
}

/* One run on a copy of the pristine tensors. *good = false: it did not finish, and the result says how. A subject that
 * finds only now that it cannot do the case may still have written where it must not. */
static fa_status run_once(run *x, fa_tensors *t, fa_poison poison, uint64_t schedule_seed, bool *good,
                          fa_error *err) {
  const fa_stage outer = fa_stage_enter(FA_STAGE_COPIES);
  fa_status status = fa_tensors_clone_poisoned(t, &x->pristine, poison, err);
  fa_stage_enter(outer);
  if (status != FA_OK) return status;
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
  if (status != FA_OK && !late) return status;
  *good = !late && outcome_is_good(x, &outcome);
  if (!late) x->declaration.contract.outputs &= ~fa_outputs_left_out(&x->pristine, t, x->passes, &outcome);
  check_memory(x, t, poison);
  return late && x->r->state == before ? status : FA_OK;
}

static fa_status judge(run *x, fa_error *err) {
  fa_judge_config config = {.profile = &x->profile,
                            .n_threads = x->config->n_threads,
                            .generic = fa_case_is_generic(x->c),
                            .end_to_end = x->config->end_to_end,
                            .backward = x->passes & FA_PASS_BACKWARD,
                            .foreign = x->config->backend->declare != NULL,
                            .maps = x->config->maps,
                            .poison = FA_POISON_A,
                            .contract = &x->declaration.contract};
  const fa_explain_options explain = {.seconds = x->config->explain_seconds};
  fa_judged judged = {.from_o = false};
  if (explain.seconds > 0) config.keep = &judged;
  double start = fa_seconds_now();
  fa_status status = fa_judge(&x->c->problem, &x->pristine, &x->first, &config, x->r, err);
  x->r->seconds_reference = fa_seconds_now() - start;
  if (status == FA_OK && config.keep)
    status = fa_explain(&x->c->problem, &x->pristine, &x->first, &config, &judged, &explain, x->r, err);
  fa_judged_free(&judged);
  x->r->malformed = status == FA_ERR_INPUT; /* the reference has no value for it */
  x->r->passes = x->r->backward_left_out ? FA_PASS_FORWARD : x->passes;
  return status;
}

/* Rows that may hold anything may also differ from run to run. */
static fa_status equal_any_rows(run *x, fa_error *err) {
  const fa_contract *c = &x->declaration.contract;
  const fa_ref_options options = {.n_threads = x->config->n_threads};
  fa_empty_rows rows;
  fa_wants forward = {0};
  if (c->lse_of_empty != FA_LSE_EMPTY_ANY && c->o_of_empty != FA_O_EMPTY_ANY) return FA_OK;
  const fa_status status =
      fa_empty_rows_forward(&x->c->problem, &x->pristine, c, &options, &forward, &rows, err);
  if (status == FA_OK) fa_empty_rows_equal(&rows, &x->first, &x->second);
  fa_empty_rows_free(&rows);
  fa_wants_free(&forward);
  return status;
}

static fa_status run_and_judge(run *x, fa_error *err) {
  const fa_backend *b = x->config->backend;
  bool good = false;
  const fa_stage outer = fa_stage_enter(FA_STAGE_DATA);
  fa_status status = fa_case_build(x->c, &x->pristine, err);
  fa_stage_enter(outer);
  fa_preparing_wait(x->config->preparing);
  b->profile(x->config->backend_self, &x->c->problem, &x->profile);
  fa_declaration_of(b, x->config->backend_self, &x->c->problem, &x->declaration);
  snprintf(x->r->profile, sizeof x->r->profile, "%s", x->profile.name);
  if (status != FA_OK || !choose_outputs(x)) return status;
  const uint64_t schedule = x->config->schedule_seed + x->c->schedule_seed;
  status = run_once(x, &x->first, FA_POISON_A, schedule, &good, err);
  if (status != FA_OK || !good) return status;
  fa_outputs_drop(&x->first, undelivered(x));
  if (x->c->expect == FA_EXPECT_REJECT) {
    x->r->state = FA_NOT_REJECTED;
    snprintf(x->r->reason, sizeof x->r->reason, "the case must be refused, but it ran");
    return FA_OK;
  }
  for (int64_t again = 1; again < x->c->repeat; ++again) {
    /* The order of fibers and completions changes too: a correct kernel's result does not depend on it. */
    fa_tensors_free(&x->second);
    status = run_once(x, &x->second, x->c->poison, schedule + (uint64_t)again, &good, err);
    if (status != FA_OK || !good) return status;
    fa_outputs_drop(&x->first, undelivered(x)); /* a run may leave out more than the one before */
    fa_stage_enter(FA_STAGE_REPEATS);
    if ((status = equal_any_rows(x, err)) != FA_OK) return status;
    const bool differ =
        fa_check_repeats(&x->c->problem, &x->profile, &x->first, &x->second, x->c->poison, x->r);
    fa_stage_enter(outer);
    if (differ) break;
  }
  fa_result_not_delivered(x->r, undelivered(x));
  return judge(x, err);
}

/* Nothing raised a state, so everything compared was right. */
static void conclude(run *x) {
  if (x->r->state != FA_UNTESTED) return;
  if (x->r->n_verdicts == 0 && x->r->not_delivered) {
    skip_nothing_delivered(x);
    return;
  }
  int64_t count = 0;
  for (int i = 0; i < x->r->n_verdicts; ++i) count += x->r->verdict[i].count;
  if (count == 0) fa_result_note(x->r, "no output has an element: only the memory around them was checked");
  x->r->state = FA_PASS;
}

/* Everything except the dump and the second opinion. */
static fa_status run_through(run *x, fa_error *err) {
  fa_result *r = x->r;
  fa_status status = FA_OK;
  if (choose_passes(x)) status = run_and_judge(x, err);
  if (status == FA_ERR_UNSUPPORTED) {
    skip(r, err->text);
    return FA_OK;
  }
  if (status != FA_OK) {
    r->state = FA_ERROR;
    snprintf(r->reason, sizeof r->reason, "%s", err->text);
    return status;
  }
  conclude(x);
  return FA_OK;
}

static void free_run(run *x) {
  fa_tensors_free(&x->pristine);
  fa_tensors_free(&x->first);
  fa_tensors_free(&x->second);
}

/* True if every element is within its bound, and only the statistics over all of them fail. */
static bool only_statistics_fail(const fa_result *r) {
  bool any = false;
  if (r->state != FA_FAIL || r->reason[0]) return false;
  for (int i = 0; i < r->n_verdicts; ++i) {
    const fa_verdict *v = &r->verdict[i];
    if (v->bad || v->class_bad || v->vacuous[0]) return false;
    any |= v->stat_bad;
  }
  return any;
}

/* Statistics may fail once by chance; a real fault makes them fail with other data too. */
static fa_status confirm_statistics(run *x, fa_error *err) {
  fa_case again;
  if (fa_case_copy(&again, x->c) != FA_OK) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  again.data_seed ^= 0x9e3779b97f4a7c15u;
  fa_result *second = malloc(sizeof *second);
  if (!second) {
    fa_case_free(&again);
    return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  }
  fa_result_init(second);
  fa_run_config config = *x->config;
  config.maps = false;
  run y = {.c = &again, .config = &config, .r = second};
  fa_status status = run_through(&y, err);
  if (status == FA_OK && second->state == FA_PASS) {
    x->r->state = FA_PASS;
    fa_result_note(x->r, "error statistics are odd with this seed, but not with data_seed %llu",
                   (unsigned long long)again.data_seed);
  }
  free_run(&y);
  fa_result_free(second);
  free(second);
  fa_case_free(&again);
  return status;
}

fa_status fa_run_case(const fa_case *c, const fa_run_config *config, fa_result *out, fa_error *err) {
  if (c->law != FA_LAW_NONE) {
    fa_preparing_wait(config->preparing);
    return fa_run_law(c, config, out, err);
  }
  double start = fa_seconds_now();
  run x = {.c = c, .config = config, .r = out};
  fa_error own = {""};
  if (!err) err = &own;
  fa_status status = run_through(&x, err);
  if (status == FA_OK && only_statistics_fail(out)) status = confirm_statistics(&x, err);
  if (config->keep_dir && fa_state_is_failure(out->state) && x.first.t[FA_T_Q].data) {
    fa_error dump_error;
    if (fa_dump_write(config->keep_dir, c, &x.pristine, &x.first, out->dump, sizeof out->dump, &dump_error) !=
        FA_OK) {
      out->dump_failed = true;
      fa_result_note(out, "no dump: %s", dump_error.text);
    }
  }
  free_run(&x);
  out->seconds = fa_seconds_now() - start;
  return status;
}
