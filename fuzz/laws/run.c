/* One run of the subject for a law. */
#include "cases/data/build.h"
#include "fuzz/judging/delivered.h"
#include "fuzz/judging/empty_rows.h"
#include "fuzz/judging/judge.h"
#include "fuzz/judging/run_checks.h"
#include "fuzz/laws/parts.h"
#include "report/text/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fa_status fa_law_skip(fa_law_work *w, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(w->r->reason, sizeof w->r->reason, format, args);
  va_end(args);
  w->r->state = FA_SKIP;
  w->over = true;
  return FA_OK;
}

void fa_law_side_free(fa_law_side *s) {
  fa_problem_free(&s->p);
  fa_tensors_free(&s->in);
  fa_tensors_free(&s->out);
  fa_wants_free(&s->want);
  free(s->bound_o);
  free(s->bound_lse);
  *s = (fa_law_side){0};
}

fa_status fa_law_make_base(fa_law_work *w, fa_error *err) {
  fa_case c;
  fa_status status = fa_case_copy(&c, w->c);
  if (status != FA_OK) return fa_fail(err, status, "out of memory");
  c.problem.return_softmax = false; /* no law is about the debug matrix */
  if (fa_problem_copy(&w->base.p, &c.problem) != FA_OK)
    status = fa_fail(err, FA_ERR_MEMORY, "out of memory");
  else
    status = fa_case_build(&c, &w->base.in, err);
  fa_case_free(&c);
  return status;
}

fa_status fa_law_make_like(fa_law_work *w, fa_law_side *to, const fa_law_side *from, fa_error *err) {
  (void)w;
  fa_law_side_free(to);
  if (fa_problem_copy(&to->p, &from->p) != FA_OK) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  return fa_tensors_clone(&to->in, &from->in, err);
}

fa_status fa_law_make_for(fa_law_work *w, fa_law_side *to, const fa_problem *p, fa_error *err) {
  fa_case c;
  fa_law_side_free(to);
  if (fa_case_copy(&c, w->c) != FA_OK) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  fa_problem_free(&c.problem);
  memset(c.strides, 0, sizeof c.strides);
  c.packing = FA_PACK_NONE;
  fa_status status = fa_problem_copy(&c.problem, p);
  if (status == FA_OK) status = fa_problem_copy(&to->p, p);
  if (status != FA_OK)
    fa_fail(err, status, "out of memory");
  else
    status = fa_case_build(&c, &to->in, err);
  fa_case_free(&c);
  return status;
}

/* Records that the subject was stopped during the run. */
static void note_outcome(fa_law_work *w, const fa_outcome *o) {
  static const fa_state state[] = {[FA_SUBJECT_REJECTED] = FA_FAIL,
                                   [FA_SUBJECT_OOB] = FA_OOB,
                                   [FA_SUBJECT_RACE] = FA_RACE,
                                   [FA_SUBJECT_DEADLOCK] = FA_DEADLOCK,
                                   [FA_SUBJECT_CRASH] = FA_CRASH};
  snprintf(w->r->kernel, sizeof w->r->kernel, "%s", o->kernel);
  snprintf(w->r->backward_kernel, sizeof w->r->backward_kernel, "%s", o->backward_kernel);
  if (o->state == FA_SUBJECT_OK) return;
  w->r->state = state[o->state];
  snprintf(w->r->reason, sizeof w->r->reason, "%s", o->text);
  w->over = true;
}

/* Restricts the passes to what all sides can do; makes the result final if the forward pass is not
 * included. */
static bool narrow_passes(fa_law_work *w, const fa_problem *p) {
  const fa_backend *b = w->config->backend;
  char why[256] = "";
  unsigned able = b->supports(w->config->backend_self, p, why, sizeof why);
  if (!p->backward) able &= ~(unsigned)FA_PASS_BACKWARD;
  w->passes &= able;
  if (w->passes & FA_PASS_FORWARD) return true;
  fa_law_skip(w, "%s: %s", b->name, why[0] ? why : "not supported");
  return false;
}

/* True if the range of visible keys may be empty for some row; biases and expressions may hide any key. */
static bool may_have_empty_rows(const fa_problem *p) {
  const bool ranges = p->mask.type != FA_MASK_NONE || p->seqused_k.n || p->leftpad_k.n ||
                      p->kvcache.present || p->cu_seqlens_k.n || p->seqlen_k == 0;
  return ranges || p->bias.present || p->mask_mod || p->score_mod || p->block_sparse.present;
}

/* Takes out what the subject does not deliver. What is not delivered in one run of a law is compared in none. */
static void drop_undelivered(fa_law_work *w, fa_law_side *s, const fa_contract *c,
                             const fa_outcome *outcome) {
  const fa_tensor_bits missing = (fa_outputs_of(&s->in, w->passes) & ~c->outputs) |
                                 fa_outputs_left_out(&s->in, &s->out, w->passes, outcome);
  fa_outputs_drop(&s->out, missing);
  fa_result_not_delivered(w->r, missing & ~w->r->not_delivered);
}

fa_status fa_law_run(fa_law_work *w, fa_law_side *s, fa_error *err) {
  const fa_backend *b = w->config->backend;
  fa_error why;
  const fa_status valid = fa_problem_validate(&s->p, &why);
  if (valid == FA_ERR_MEMORY) return fa_fail(err, valid, "%s", why.text);
  if (valid != FA_OK) return fa_law_skip(w, "the other run is no valid call: %s", why.text);
  if (!narrow_passes(w, &s->p)) return FA_OK;
  b->profile(w->config->backend_self, &s->p, &s->profile);
  snprintf(w->r->profile, sizeof w->r->profile, "%s", s->profile.name);
  fa_declaration declaration;
  fa_declaration_of(b, w->config->backend_self, &s->p, &declaration);
  if (fa_contract_has_own_empty_rows(&declaration.contract) && may_have_empty_rows(&s->p))
    return fa_law_skip(w, "rows may have no visible key, for which the subject has values of its own");
  fa_status status = fa_tensors_clone(&s->out, &s->in, err);
  if (status != FA_OK) return status;
  fa_run_options options = {.passes = w->passes,
                            .schedule_seed =
                                w->config->schedule_seed + w->c->schedule_seed + (uint64_t)w->n_runs++,
                            .n_threads = w->config->n_threads};
  fa_outcome outcome;
  memset(&outcome, 0, sizeof outcome);
  const double start = fa_seconds_now();
  status = b->run(w->config->backend_self, &s->p, &s->out, &options, &outcome, err);
  w->r->seconds_subject += fa_seconds_now() - start;
  if (status == FA_ERR_UNSUPPORTED) return fa_law_skip(w, "%s", err->text);
  if (status != FA_OK) return status;
  note_outcome(w, &outcome);
  fa_check_memory(&s->p, &s->in, &s->out, FA_POISON_A, w->r);
  w->r->passes = w->passes;
  drop_undelivered(w, s, &declaration.contract, &outcome);
  return w->over ? FA_OK : fa_law_check_nan(w, s, err);
}
