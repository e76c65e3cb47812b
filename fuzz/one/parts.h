/* Private to fuzz/one: a case that is being run, and the steps of it that have files of their own. */
#ifndef FA_FUZZ_ONE_PARTS_H
#define FA_FUZZ_ONE_PARTS_H

#include "cases/recipe/case.h"
#include "fuzz/judging/run_config.h"
#include "fuzz/untrusted/rules.h"
#include "report/result.h"

typedef struct fa_one_run {
  const fa_case *c;
  const fa_run_config *config;
  fa_result *r;
  fa_profile profile;
  fa_declaration declaration; /* its outputs lose those that a run leaves out */
  unsigned passes;
  fa_tensors pristine, first, second; /* outputs of pristine: poison A */
  bool given;                         /* pristine was there before */
  bool inner;                         /* part of another case's run: once, and without traps of its own */
  bool odd;                           /* a trap's statistics are odd, and nothing else about it */
  fa_tensors between;                 /* what the last trap was answered with; empty: there was none */
} fa_one_run;

/* Of the rules for an untrusted candidate; without rules none is left out. */
static inline bool fa_one_has_layer(const fa_one_run *x, fa_layer layer) {
  return fa_rules_have(x->config->rules, layer);
}

/* Everything except the dump and the second opinion. */
fa_status fa_one_run_through(fa_one_run *x, fa_error *err);
void fa_one_run_free(fa_one_run *x);
/* Runs the case `c` inside x's: `in` is moved into it, unless it is NULL. inner and its result are the caller's to free,
 * whatever is returned. */
fa_status fa_one_run_inside(const fa_one_run *x, const fa_case *c, fa_tensors *in, fa_one_run *inner,
                            fa_error *err);
void fa_one_run_inside_free(fa_one_run *inner);
/* True if every element is within its bound, and only the statistics over all of them fail. */
bool fa_only_statistics_fail(const fa_result *r);

/* ---- choose.c ---- */

void fa_one_skip(fa_result *r, const char *reason);
/* Sets the passes of the case that the backend can do. False: nothing is left to run, and the result says why. */
bool fa_one_choose_passes(fa_one_run *x);
/* Leaves out a backward that delivers nothing. False: no output is left to judge, and the result says so. */
bool fa_one_choose_outputs(fa_one_run *x);
void fa_one_skip_nothing_delivered(const fa_one_run *x);
fa_tensor_bits fa_one_undelivered(const fa_one_run *x);
/* By what its outputs are judged, and what it declares. */
void fa_one_choose_profile(fa_one_run *x);

/* ---- run_once.c ---- */

/* The candidate runs once on a copy of the pristine tensors. *good = false: it did not finish, and the result says how. */
fa_status fa_one_run_once(fa_one_run *x, fa_tensors *t, fa_poison poison, uint64_t schedule_seed, bool *good,
                          fa_error *err);
/* A candidate that nobody trusts has one try: what would be the world's fault elsewhere is its own. True: status is
 * dealt with. */
bool fa_one_is_its_fault(fa_one_run *x, fa_status status, const fa_error *err);

/* ---- traps.c: with rules, nothing without ---- */

/* Calls that stand between the case's runs. */
fa_status fa_one_traps(fa_one_run *x, fa_error *err);
/* After a run that differs from the first: says so if it is what the last trap was answered with. */
void fa_one_trap_blame(fa_one_run *x);
/* The case once more in a process of its own, if the secret says so. */
fa_status fa_one_fresh(fa_one_run *x, fa_error *err);

/* ---- statistics.c ---- */

/* Statistics may fail once by chance; a real fault makes them fail with other data too. */
fa_status fa_one_confirm(fa_one_run *x, fa_error *err);

#endif
