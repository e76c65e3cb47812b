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
#include "ref/reference.h"
#include "report/text/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef fa_one_run run;

static fa_status judge(run *x, fa_error *err) {
  fa_judge_config config = {.profile = &x->profile,
                            .n_threads = x->config->n_threads,
                            .generic = fa_case_is_generic(x->c),
                            .end_to_end = x->config->end_to_end,
                            .backward = x->passes & FA_PASS_BACKWARD,
                            .foreign = x->config->backend->declare != NULL,
                            .maps = x->config->maps,
                            .loose = !fa_one_has_layer(x, FA_LAYER_BOUNDS),
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

/* The case once more, over other poison. *differ: its outputs are not those of the first run. */
static fa_status run_again(run *x, uint64_t schedule, bool *good, bool *differ, fa_error *err) {
  fa_tensors_free(&x->second);
  fa_status status = fa_one_run_once(x, &x->second, x->c->poison, schedule, good, err);
  if (status != FA_OK || !*good) return status;
  fa_outputs_drop(&x->first, fa_one_undelivered(x)); /* a run may leave out more than the one before */
  const fa_stage outer = fa_stage_enter(FA_STAGE_REPEATS);
  if ((status = equal_any_rows(x, err)) != FA_OK) return status;
  *differ = fa_check_repeats(&x->c->problem, &x->profile, &x->first, &x->second, x->c->poison, x->r);
  fa_stage_enter(outer);
  if (*differ) fa_one_trap_blame(x);
  return FA_OK;
}

static fa_status run_again_and_again(run *x, uint64_t schedule, bool *good, fa_error *err) {
  const int64_t n = x->inner || !fa_one_has_layer(x, FA_LAYER_REPEAT) ? 1 : x->c->repeat;
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
  fa_one_choose_profile(x);
  if (status != FA_OK || !fa_one_choose_outputs(x)) return status;
  const uint64_t schedule = x->config->schedule_seed + x->c->schedule_seed;
  status = fa_one_run_once(x, &x->first, FA_POISON_A, schedule, &good, err);
  if (status != FA_OK || !good) return status;
  fa_outputs_drop(&x->first, fa_one_undelivered(x));
  if (x->c->expect == FA_EXPECT_REJECT) {
    x->r->state = FA_NOT_REJECTED;
    snprintf(x->r->reason, sizeof x->r->reason, "the case must be refused, but it ran");
    return FA_OK;
  }
  status = run_again_and_again(x, schedule, &good, err);
  if (status != FA_OK || !good) return status;
  fa_result_not_delivered(x->r, fa_one_undelivered(x));
  return judge(x, err);
}

/* Nothing raised a state, so everything compared was right. */
static void conclude(run *x) {
  if (x->r->state != FA_UNTESTED) return;
  if (x->r->n_verdicts == 0 && x->r->not_delivered) {
    fa_one_skip_nothing_delivered(x);
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
  if (fa_one_choose_passes(x)) status = run_and_judge(x, err);
  if (status != FA_OK && fa_one_is_its_fault(x, status, err)) return FA_OK;
  if (status == FA_ERR_UNSUPPORTED) {
    fa_one_skip(r, err->text);
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
