#include "fuzz/judging/two.h"

#include "cases/tensors/table.h"
#include "fuzz/judging/canary.h"
#include "fuzz/judging/data.h"
#include "fuzz/judging/empty_rows.h"
#include "fuzz/judging/run_config.h"
#include "fuzz/judging/stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fa_judge_choice fa_judge_choice_named(const char *name) {
  static const char *const names[] = {"cpu", "cuda", "auto", "both", "host"};
  for (int i = 0; name && i < (int)(sizeof names / sizeof *names); ++i)
    if (strcmp(names[i], name) == 0) return (fa_judge_choice)i;
  return FA_JUDGE_BY_CPU;
}

static bool is_like(const fa_tensor *t, const fa_tensor *as) {
  bool same = t->data && t->dtype == as->dtype && t->rank == as->rank;
  for (int a = 0; same && a < t->rank; ++a) same = t->shape[a] == as->shape[a];
  return same;
}

/* Every output that is looked at has its type and shape. */
static bool has_outputs(const fa_tensors *in, const fa_tensors *got, const fa_judge_config *config) {
  const unsigned passes = FA_PASS_FORWARD | (config->backward ? FA_PASS_BACKWARD : 0);
  for (int id = 0; id < FA_T_COUNT; ++id) {
    if (!(fa_tensors_written_by(passes) >> id & 1) || !in->t[id].data) continue;
    if (!fa_judge_is_left_out(config, got, (fa_tensor_id)id) && !is_like(&got->t[id], &in->t[id]))
      return false;
  }
  return in->t[FA_T_O].data && in->t[FA_T_LSE].data;
}

/* What the machine is shown. */
static void hide_left_out(const fa_judge_config *config, fa_tensors *got) {
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (fa_judge_is_left_out(config, got, (fa_tensor_id)id)) got->t[id].data = NULL;
}

/* Gradients are made from its O and LSE. */
static bool lacks_forward(const fa_tensors *got, const fa_judge_config *config) {
  return config->backward &&
         (fa_judge_is_left_out(config, got, FA_T_O) || fa_judge_is_left_out(config, got, FA_T_LSE));
}

/* Why the call is not the machine's; NULL: it is. */
static const char *refused(const fa_problem *p, const fa_tensors *in, const fa_tensors *got,
                           const fa_judge_config *config) {
  const fa_ref_options options = {.profile = config->profile, .generic = config->generic};
  if (fa_sample_is_asked(&config->sample)) return "a sample";
  if (config->end_to_end || lacks_forward(got, config)) return "gradients from the reference's forward";
  if (config->loose) return "loose bounds";
  if (fa_contract_has_own_empty_rows(config->contract) && fa_empty_rows_are_possible(p, in))
    return "empty rows of its own";
  if (config->contract && config->contract->lse_dtype != FA_F32) return "an LSE of its own type";
  if (config->contract && config->contract->lse_alibi != FA_LSE_ALIBI_DISTANCE)
    return "an LSE from the column";
  if (!has_outputs(in, got, config)) return "outputs of another type";
  return fa_judge_refused(p, in, &options, config->backward);
}

static void leave_to_cpu(fa_result *r, const char *why) {
  r->judged.by = FA_JUDGED_BY_CPU;
  snprintf(r->judged.left, sizeof r->judged.left, "%s", why);
}

/* The verdicts are the machine's, then. */
static void adopt(const fa_judge_trial *t, fa_result *r) {
  r->n_verdicts = t->n;
  for (int i = 0; i < t->n; ++i) {
    r->verdict[i] = t->verdict[i];
    r->end_to_end[i] = false;
    if (t->verdict[i].worst_ratio > r->worst_ratio) r->worst_ratio = t->verdict[i].worst_ratio;
  }
  r->judged.by = FA_JUDGED_BY_GPU;
}

static fa_compare_options compare_options(const fa_judge_config *config) {
  return (fa_compare_options){.poison = config->poison,
                              .generic = config->generic,
                              .judge_stats = config->generic && !config->recorded,
                              .foreign = config->foreign,
                              .recorded = config->recorded,
                              .profile = config->profile,
                              .doubt = FA_MACHINE_DOUBT};
}

/* Of both passes the stage is that of the forward: they are one answer of the machine. */
static fa_status try_passes(const fa_problem *p, const fa_tensors *in, const fa_tensors *got,
                            const fa_judge_config *config, fa_judge_trial *t, fa_error *err) {
  const fa_ref_options options = {
      .n_threads = config->n_threads, .profile = config->profile, .generic = config->generic};
  const fa_compare_options as = compare_options(config);
  fa_judge_machine *m = config->machine;
  const fa_stage outer = fa_stage_enter(FA_STAGE_FORWARD);
  const fa_status status = config->backward ? fa_judge_try_both(m, p, in, got, &options, &as, t, err)
                                            : fa_judge_try(m, p, in, got, &options, &as, false, t, err);
  fa_stage_enter(outer);
  return status;
}

/* Of a machine that gives two records of one call nothing is to be believed. */
static fa_status try_again(const fa_problem *p, const fa_tensors *in, const fa_tensors *got,
                           const fa_judge_config *config, const fa_judge_trial *first, fa_error *err) {
  fa_judge_trial *t = malloc(sizeof *t);
  if (!t) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  *t = (fa_judge_trial){.passed = true, .is_signed = true};
  fa_status status = try_passes(p, in, got, config, t, err);
  if (status == FA_OK && (t->digest != first->digest || t->passed != first->passed))
    status = fa_fail(err, FA_ERR_DEVICE, "two records of one call differ");
  free(t);
  return status;
}

/* What passes is judged once more with a canary among it, now and then. */
static fa_status try_canary(const fa_problem *p, const fa_tensors *in, const fa_tensors *got,
                            const fa_judge_config *config, fa_result *r, fa_error *err) {
  const fa_ref_options options = {.n_threads = 1, .profile = config->profile, .generic = config->generic};
  const fa_compare_options as = compare_options(config);
  const fa_canary_call call = {.machine = config->machine,
                               .p = p,
                               .in = in,
                               .got = got,
                               .options = &options,
                               .as = &as,
                               .backward = config->backward};
  if (!config->canary && !fa_canary_is_due()) return FA_OK;
  const fa_status status = fa_canary_try(&call, err);
  r->judged.broken = status == FA_ERR_DEVICE;
  return status;
}

static fa_status try_all(const fa_problem *p, const fa_tensors *in, const fa_tensors *got,
                         const fa_judge_config *config, fa_judge_trial *t, fa_result *r, fa_error *err) {
  t->is_signed = config->both;
  fa_status status = try_passes(p, in, got, config, t, err);
  if (status == FA_OK && config->both) status = try_again(p, in, got, config, t, err);
  if (status == FA_OK && t->passed) status = try_canary(p, in, got, config, r, err);
  return status;
}

typedef struct two {
  fa_judge_trial trial;
  fa_tensors shown; /* the subject's outputs, but for those that are left out */
} two;

static fa_status judge_with_trial(const fa_problem *p, const fa_tensors *in, const fa_tensors *got,
                                  const fa_judge_config *config, two *both, fa_result *r, fa_error *err) {
  fa_error why = {""};
  fa_judge_trial *t = &both->trial;
  fa_status status = try_all(p, in, &both->shown, config, t, r, &why);
  const bool left = status == FA_ERR_UNSUPPORTED || status == FA_ERR_MEMORY || status == FA_ERR_IO;
  if (status != FA_OK && !left) return fa_fail(err, status, "the judge on the GPU: %s", why.text);
  if (left) t->passed = false;
  if (t->passed && !config->both && !fa_is_audited()) {
    adopt(t, r);
    if (config->keep) *config->keep = (fa_judged){0};
    return FA_OK;
  }
  if (t->passed)
    r->judged.by = FA_JUDGED_BY_BOTH;
  else
    leave_to_cpu(r, status == FA_ERR_MEMORY ? "more than there is memory for" : left ? why.text : t->doubt);
  status = fa_judge_on_cpu(p, in, got, config, r, err);
  return status == FA_OK ? fa_judges_agree(t, r, err) : status;
}

fa_status fa_judge_by_two(const fa_problem *p, const fa_tensors *in, const fa_tensors *got,
                          const fa_judge_config *config, fa_result *r, fa_error *err) {
  const char *why = refused(p, in, got, config);
  if (why) {
    leave_to_cpu(r, why);
    return fa_judge_on_cpu(p, in, got, config, r, err);
  }
  two *both = malloc(sizeof *both);
  if (!both) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  both->trial = (fa_judge_trial){.passed = true};
  both->shown = *got;
  hide_left_out(config, &both->shown);
  const fa_status status = judge_with_trial(p, in, got, config, both, r, err);
  free(both);
  return status;
}
