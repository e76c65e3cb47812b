/* Canaries for the judge on a machine: outputs that are right but for one element, which it must name. What passes everything,
 * looks at something else than it was given, or answers with what it said before, is found out by them. */
#ifndef FA_FUZZ_JUDGING_CANARY_H
#define FA_FUZZ_JUDGING_CANARY_H

#include "ref/compare/verdict.h"
#include "ref/cuda/judge.h"

/* A call whose outputs pass. */
typedef struct fa_canary_call {
  fa_judge_machine *machine;
  const fa_problem *p;
  const fa_tensors *in, *got;
  const fa_ref_options *options;
  const fa_compare_options *as;
  bool backward; /* the gradients are there too */
} fa_canary_call;

/* One pass in 256, and nobody who is judged can know which. */
bool fa_canary_is_due(void);

/* Changes an element of a copy, drawn at random among all outputs: mostly to the first number of its type that is 1.1 bounds
 * from what is wanted, else to NaN. FA_ERR_DEVICE: the machine does not name exactly that one. Others as fa_judge_try. */
fa_status fa_canary_try(const fa_canary_call *c, fa_error *err);

/* The same with an element of an output of which w is wanted. */
fa_status fa_canary_try_at(const fa_canary_call *c, fa_tensor_id id, const fa_want *w, int64_t element,
                           bool nan, fa_error *err);

/* A few calls whose verdicts are known, right ones and wrong ones, before anything is asked of a machine. */
fa_status fa_canary_try_known(fa_judge_machine *m, fa_error *err);

#endif
