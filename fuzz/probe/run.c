#include "fuzz/probe/run.h"

#include "fuzz/probe/questions.h"
#include "report/text/progress.h"

#include <stdio.h>
#include <string.h>

/* field: the first that it tells of. */
static const struct question {
  void (*ask)(probe *);
  unsigned kinds;
  const char *field;
} questions[] = {
    {probe_outputs, FA_PROBE_ALL, "outputs"},
    {probe_lse, FA_PROBE_CONTRACT, "lse.base"},
    {probe_empty_rows, FA_PROBE_CONTRACT, "empty_o"},
    {probe_keys, FA_PROBE_CASE | FA_PROBE_BASIS, "keys"},
    {probe_scale, FA_PROBE_CASE | FA_PROBE_BASIS, "scale"},
    {probe_gqa, FA_PROBE_CASE | FA_PROBE_BASIS, "gqa"},
    {probe_softcap, FA_PROBE_CASE, "softcap"},
    {probe_alibi_lse, FA_PROBE_CONTRACT, "lse.alibi"},
    {probe_alibi, FA_PROBE_CASE, "alibi"},
    {probe_dropout, FA_PROBE_CASE, "dropout"},
    {probe_dlse, FA_PROBE_CASE, "dlse"},
    {probe_operands, FA_PROBE_ARITHMETIC, "operand_qk"},
    {probe_pv_accumulator, FA_PROBE_ARITHMETIC, "accumulator_pv"},
    {probe_qk_accumulator, FA_PROBE_ARITHMETIC, "accumulator_qk"},
    {probe_scores, FA_PROBE_ARITHMETIC, "scores"},
    {probe_exp, FA_PROBE_ARITHMETIC, "eps_exp"},
    {probe_backward_operands, FA_PROBE_ARITHMETIC, "operand_dp"},
    {probe_p, FA_PROBE_ARITHMETIC, "p"},
    {probe_tiles, FA_PROBE_ARITHMETIC, "block_n"},
    {probe_dropout_rounding, FA_PROBE_ARITHMETIC, "dropout_rounded"},
    {probe_ds, FA_PROBE_ARITHMETIC, "ds"},
    {probe_dp, FA_PROBE_ARITHMETIC, "dp"},
    {probe_delta, FA_PROBE_ARITHMETIC, "delta"},
    {probe_p_kept, FA_PROBE_ARITHMETIC, "p_kept"},
    {probe_group, FA_PROBE_ARITHMETIC, "gqa_partials_rounded"},
    {probe_repeat, FA_PROBE_ARITHMETIC, "repeats"},
    {probe_settle, FA_PROBE_ARITHMETIC, ""}, /* the last, and asks nothing */
};
enum { N_QUESTIONS = sizeof questions / sizeof *questions };

/* What is assumed where nothing is found: the widest named set. */
static void assume(fa_arithmetic *a, fa_dtype dtype) {
  FA_ASSERT(fa_arithmetic_named("recorded", dtype, a));
}

void probe_begin(probe *x, fa_dtype dtype, unsigned kinds, fa_probe_report *report) {
  memset(report, 0, sizeof *report);
  memset(x, 0, sizeof *x);
  report->dtype = dtype;
  fa_contract_init(&report->found.contract);
  assume(&report->found.arithmetic, dtype);
  *x = (probe){.dtype = dtype, .kinds = kinds, .r = report, .noise = 0x1p-19};
}

void probe_reopen(probe *x, const fa_backend *backend, void *self) {
  fa_problem p;
  x->backend = backend;
  x->self = self;
  x->declares = backend->declare != NULL;
  memset(&x->declared, 0, sizeof x->declared);
  fa_contract_init(&x->declared.contract);
  fa_problem_init(&p);
  p.dtype = x->dtype;
  if (x->declares) backend->declare(self, &p, &x->declared);
  fa_problem_free(&p);
}

/* The next step that belongs to the kinds that are asked for; nothing follows where the first call did not work. */
static void advance(probe *x) {
  if (x->step == 0 && x->r->usable && !(x->kinds & FA_PROBE_CONTRACT) && x->has_lse)
    x->lse_factor = 1; /* what it declares is converted */
  do ++x->step;
  while (x->step < N_QUESTIONS && (!x->r->usable || !(questions[x->step].kinds & x->kinds)));
  x->r->found.arithmetic_given = x->r->usable && x->kinds & FA_PROBE_ARITHMETIC;
}

bool probe_step(probe *x) {
  if (x->step >= N_QUESTIONS) return false;
  const double start = x->active = fa_seconds_now();
  questions[x->step].ask(x);
  x->r->seconds += fa_seconds_now() - start;
  advance(x);
  return x->step < N_QUESTIONS;
}

void probe_skip_step(probe *x, const char *reason) {
  if (x->step >= N_QUESTIONS) return;
  if (x->step == 0 && probe_skip_first_try(x, reason)) return;
  if (x->r->usable) probe_say(x, questions[x->step].field, FA_PROBE_NOT_ANSWERED, "", "%s", reason);
  advance(x);
}

void probe_give_up(probe *x, const char *reason) {
  if (!x->r->usable) snprintf(x->r->why_not, sizeof x->r->why_not, "%s", reason);
  while (x->r->usable && x->step < N_QUESTIONS - 1) {
    probe_say_not_asked(x, questions[x->step].field, reason);
    advance(x);
  }
  if (x->r->usable) probe_step(x);
  x->step = N_QUESTIONS;
}

const char *probe_step_field(const probe *x) {
  return x->step < N_QUESTIONS ? questions[x->step].field : "";
}

void fa_probe(const fa_backend *backend, void *self, fa_dtype dtype, unsigned kinds,
              fa_probe_report *report) {
  probe x;
  probe_begin(&x, dtype, kinds, report);
  probe_reopen(&x, backend, self);
  while (probe_step(&x)) {}
}
