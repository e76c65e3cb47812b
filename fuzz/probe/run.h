/* Finds out by questions what a subject computes and how. */
#ifndef FA_FUZZ_PROBE_RUN_H
#define FA_FUZZ_PROBE_RUN_H

#include "fuzz/probe/ask.h"

typedef enum fa_probe_kind {
  FA_PROBE_CONTRACT = 1,   /* what it delivers, and the LSE's conventions */
  FA_PROBE_CASE = 2,       /* whether it computes what cases mean: masks, heads, the score chain, dropout */
  FA_PROBE_ARITHMETIC = 4, /* how */
  FA_PROBE_BASIS = 8,      /* of the second kind: what the answers about arithmetic rest on */
  FA_PROBE_ALL = 15
} fa_probe_kind;

/* Questions of these kinds (bits) about one element type, of an opened backend. The report's declaration says what was
 * found, and the wider of what kernels do where nothing was. report->usable: it ran at all. */
void fa_probe(const fa_backend *backend, void *self, fa_dtype dtype, unsigned kinds, fa_probe_report *report);

/* The same step by step, for who must be able to go on behind a step that did not end: a step may be left in its middle,
 * and *x be moved to another process with the report, where probe_reopen gives it the subject again. */
void probe_begin(probe *x, fa_dtype dtype, unsigned kinds, fa_probe_report *report);
void probe_reopen(probe *x, const fa_backend *backend, void *self);
/* Does step x->step and goes to the next. False: there are no more. */
bool probe_step(probe *x);
/* Goes to the next without an answer; reason: what happened, a clause. */
void probe_skip_step(probe *x, const char *reason);
/* Leaves out everything that asks the subject. */
void probe_give_up(probe *x, const char *reason);
/* What the step is about, for progress. */
const char *probe_step_field(const probe *x);

#endif
