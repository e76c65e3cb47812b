#include "fuzz/one/run_case.h"
#include "cases/data/build.h"
#include "cases/threads/bulk.h"

#include "fuzz/explain/run.h"
#include "fuzz/judging/data.h"
#include "fuzz/judging/delivered.h"
#include "fuzz/judging/empty_rows.h"
#include "fuzz/judging/judge.h"
#include "fuzz/judging/run_checks.h"
#include "fuzz/judging/stage.h"
#include "fuzz/laws/check.h"
#include "fuzz/one/dump.h"
#include "fuzz/one/judges.h"
#include "fuzz/one/parts.h"
#include "fuzz/untrusted/rules.h"
#include "ref/reference.h"
#include "report/text/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef fa_one_run run;

static bool has_layer(const run *x, fa_layer layer) {
  return fa_rules_have(x->config->rules, layer);
}

static void skip(fa_result *r, const char *reason) {
  r->state = FA_SKIP;
  snprintf(r->reason, sizeof r->reason, "%s", reason);
}

/* Of a candidate that is held to its contract. What it would rather not do when it sees the case is a refusal. */
static bool choose_promised_passes(run *x, unsigned wanted) {
  const fa_backend *b = x->config->backend;
  char why[256] = "", reason[400];
  const unsigned promised = wanted & fa_rules_promised(x->config->rules, &x->c->problem, why, sizeof why);
  x->passes = promised;
  if (x->c->expect == FA_EXPECT_REJECT || !(promised & FA_PASS_FORWARD)) {
    snprintf(reason, sizeof reason, "not claimed: %s", why);
    skip(x->r,
         promised & FA_PASS_FORWARD ? "to refuse a case proves nothing about an untrusted kernel" : reason);
    return false;
  }
  x->r->backward_left_out = wanted != promised;
  if (wanted != promised) fa_result_note(x->r, "backward not claimed: %s", why);
  if (!(promised & ~b->supports(x->config->backend_self, &x->c->problem, why, sizeof why))) return true;
  fa_result_raise(x->r, FA_FAIL, "refused inside its contract: %s", why[0] ? why : "without a reason");
  return false;
}

/* Sets the passes of the case that the backend can do. False: nothing is left to run, and the result says
 * why. */
static bool choose_passes(run *x) {
  const fa_backend *b = x->config->backend;
  const fa_problem *p = &x->c->problem;
  char why[256] = "";
  const unsigned wanted = FA_PASS_FORWARD | (p->backward ? FA_PASS_BACKWARD : 0);
  if (x->config->rules && has_layer(x, FA_LAYER_CONTRACT)) return choose_promised_passes(x, wanted);
  const unsigned able = b->supports(x->config->backend_self, p, why, sizeof why);
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

static fa_tensor_bits undelivered(const run *x) {
  return fa_outputs_of(&x->pristine, x->passes) & ~x->declaration.contract.outputs;
}

static void skip_nothing_delivered(run *x) {
  char reason[160];
  snprintf(reason, sizeof reason, "%s: it delivers none of this call's outputs", x->config->backend->name);
  skip(x->r, reason);
}

/* Leaves out a backward that delivers nothing. False: no output is left to judge, and the result says so. */
static bool choose_outputs(run *x) {
  const fa_tensor_bits delivers = x->declaration.contract.outputs;
  const fa_tensor_bits forward = fa_outputs_of(&x->pristine, FA_PASS_FORWARD);
  const fa_tensor_bits backward = fa_outputs_of(&x->pristine, x->passes) & ~forward;
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
  if (!has_layer(x, FA_LAYER_GUARDS)) return;
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

/* A candidate that nobody trusts has one try: what would be the world's fault elsewhere is its own. True: status is
 * dealt with. */
static bool is_its_fault(run *x, fa_status status, const fa_error *err) {
  if (!x->config->rules) return false;
  if (status == FA_ERR_UNSUPPORTED && has_layer(x, FA_LAYER_CONTRACT)) {
    fa_result_raise(x->r, FA_FAIL, "refused inside its contract: %s", err->text);
    return true;
  }
  if (x->r->malformed || (status != FA_ERR_DEVICE && status != FA_ERR_INPUT)) return false;
  if (!has_layer(x, FA_LAYER_FINAL)) return false;
  fa_result_raise(x->r, FA_CRASH, "%s", err->text);
  return true;
}

/* Outputs of its contract that it has not written. */
static void note_left_out(run *x, fa_tensor_bits left_out) {
  const fa_tensor_bits promised = left_out & x->declaration.contract.outputs;
  x->declaration.contract.outputs &= ~left_out;
  if (!x->config->rules || !has_layer(x, FA_LAYER_CONTRACT)) return;
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
  if (!has_layer(x, FA_LAYER_POISON)) clear_outputs(t);
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
  if (status != FA_OK && is_its_fault(x, status, err)) return FA_OK;
  if (status != FA_OK && !late) return status;
  *good = !late && outcome_is_good(x, &outcome);
  if (!late) note_left_out(x, fa_outputs_left_out(&x->pristine, t, x->passes, &outcome));
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
                            .loose = !has_layer(x, FA_LAYER_BOUNDS),
                            .poison = FA_POISON_A,
                            .sample = x->config->sample,
                            .sample_stream = x->c->data_seed,
                            .contract = &x->declaration.contract};
  const fa_explain_options explain = {.seconds = x->config->explain_seconds};
  fa_judged judged = {.from_o = false};
  fa_status opened = fa_judges_ask(x->config->judge, &config, x->r, err);
  if (opened != FA_OK) return opened;
  if (explain.seconds > 0) config.keep = &judged;
  double start = fa_seconds_now();
  fa_status status = fa_judge(&x->c->problem, &x->pristine, &x->first, &config, x->r, err);
  x->r->seconds_reference = fa_seconds_now() - start;
  if (status == FA_OK && config.keep && !fa_sample_is_asked(&x->r->sampled.asked))
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
  if (!fa_empty_rows_are_possible(&x->c->problem, &x->pristine)) return FA_OK;
  const fa_status status =
      fa_empty_rows_forward(&x->c->problem, &x->pristine, c, &options, &forward, &rows, err);
  if (status == FA_OK) fa_empty_rows_equal(&rows, &x->first, &x->second);
  fa_empty_rows_free(&rows);
  fa_wants_free(&forward);
  return status;
}

/* Without a machine, which whoever judges will miss, the CPU makes them. */
static fa_status make_data(run *x, fa_error *err) {
  fa_judge_config judges = {0};
  fa_error none;
  if (x->given) return FA_OK;
  fa_judges_ask(x->config->judge, &judges, x->r, &none);
  const fa_stage outer = fa_stage_enter(FA_STAGE_DATA);
  const fa_data_config config = {
      .machine = judges.machine, .audit = judges.both, .n_threads = x->config->n_threads};
  const fa_status status = fa_make_data(x->c, &config, &x->pristine, &x->r->judged.made, err);
  fa_stage_enter(outer);
  return status;
}

/* What its outputs are judged by. */
static void choose_profile(run *x) {
  const fa_backend *b = x->config->backend;
  const fa_problem *p = &x->c->problem;
  if (x->config->rules && has_layer(x, FA_LAYER_PROFILE))
    fa_rules_profile(x->config->rules, p, &x->profile);
  else
    b->profile(x->config->backend_self, p, &x->profile);
  fa_declaration_of(b, x->config->backend_self, p, &x->declaration);
  snprintf(x->r->profile, sizeof x->r->profile, "%s", x->profile.name);
}

/* The case once more, over other poison. *differ: its outputs are not those of the first run. */
static fa_status run_again(run *x, uint64_t schedule, bool *good, bool *differ, fa_error *err) {
  fa_tensors_free(&x->second);
  fa_status status = fa_one_run_once(x, &x->second, x->c->poison, schedule, good, err);
  if (status != FA_OK || !*good) return status;
  fa_outputs_drop(&x->first, undelivered(x)); /* a run may leave out more than the one before */
  const fa_stage outer = fa_stage_enter(FA_STAGE_REPEATS);
  if ((status = equal_any_rows(x, err)) != FA_OK) return status;
  *differ = fa_check_repeats(&x->c->problem, &x->profile, &x->first, &x->second, x->c->poison, x->r);
  fa_stage_enter(outer);
  if (*differ) fa_one_trap_blame(x);
  return FA_OK;
}

static fa_status run_again_and_again(run *x, uint64_t schedule, bool *good, fa_error *err) {
  const int64_t n = x->inner || !has_layer(x, FA_LAYER_REPEAT) ? 1 : x->c->repeat;
  fa_status status = fa_one_traps(x, err);
  bool differ = false;
  for (int64_t again = 1; status == FA_OK && *good && again < n && !differ; ++again)
    /* The order of fibers and completions changes too: a correct kernel's result does not depend on it. */
    status = run_again(x, schedule + (uint64_t)again, good, &differ, err);
  if (status == FA_OK && *good && !differ) status = fa_one_fresh(x, err);
  return status;
}

static fa_status run_and_judge(run *x, fa_error *err) {
  bool good = false;
  fa_status status = make_data(x, err);
  fa_preparing_wait(x->config->preparing);
  choose_profile(x);
  if (status != FA_OK || !choose_outputs(x)) return status;
  const uint64_t schedule = x->config->schedule_seed + x->c->schedule_seed;
  status = fa_one_run_once(x, &x->first, FA_POISON_A, schedule, &good, err);
  if (status != FA_OK || !good) return status;
  fa_outputs_drop(&x->first, undelivered(x));
  if (x->c->expect == FA_EXPECT_REJECT) {
    x->r->state = FA_NOT_REJECTED;
    snprintf(x->r->reason, sizeof x->r->reason, "the case must be refused, but it ran");
    return FA_OK;
  }
  status = run_again_and_again(x, schedule, &good, err);
  if (status != FA_OK || !good) return status;
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

fa_status fa_one_run_through(run *x, fa_error *err) {
  fa_result *r = x->r;
  fa_status status = FA_OK;
  if (choose_passes(x)) status = run_and_judge(x, err);
  if (status != FA_OK && is_its_fault(x, status, err)) return FA_OK;
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

void fa_one_run_free(run *x) {
  fa_tensors_free(&x->pristine);
  fa_tensors_free(&x->first);
  fa_tensors_free(&x->second);
  fa_tensors_free(&x->between);
}

fa_status fa_one_run_inside(const run *x, const fa_case *c, fa_tensors *in, run *inner, fa_error *err) {
  memset(inner, 0, sizeof *inner);
  fa_run_config *config = malloc(sizeof *config);
  inner->r = malloc(sizeof *inner->r);
  inner->config = config;
  if (!config || !inner->r) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  fa_result_init(inner->r);
  *config = *x->config;
  config->maps = false;
  config->explain_seconds = 0;
  config->keep_dir = NULL;
  inner->c = c;
  inner->inner = true;
  if (in) {
    inner->given = true;
    inner->pristine = *in;
    memset(in, 0, sizeof *in);
  }
  return fa_one_run_through(inner, err);
}

void fa_one_run_inside_free(run *inner) {
  fa_one_run_free(inner);
  if (inner->r) fa_result_free(inner->r);
  free(inner->r);
  free((void *)inner->config);
  memset(inner, 0, sizeof *inner);
}

fa_status fa_run_case(const fa_case *c, const fa_run_config *config, fa_result *out, fa_error *err) {
  if (c->law != FA_LAW_NONE) {
    fa_preparing_wait(config->preparing);
    return fa_run_law(c, config, out, err);
  }
  double start = fa_seconds_now();
  fa_bulk_threads(config->n_threads);
  run x = {.c = c, .config = config, .r = out};
  fa_error own = {""};
  if (!err) err = &own;
  fa_status status = fa_one_run_through(&x, err);
  if (status == FA_OK && (fa_only_statistics_fail(out) || (x.odd && out->state == FA_PASS)))
    status = fa_one_confirm(&x, err);
  if (config->keep_dir && fa_state_is_failure(out->state) && x.first.t[FA_T_Q].data) {
    fa_error dump_error;
    if (fa_dump_write(config->keep_dir, c, &x.pristine, &x.first, out->dump, sizeof out->dump, &dump_error) !=
        FA_OK) {
      out->dump_failed = true;
      fa_result_note(out, "no dump: %s", dump_error.text);
    }
  }
  fa_one_run_free(&x);
  out->seconds = fa_seconds_now() - start;
  return status;
}
