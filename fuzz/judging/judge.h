/* Outputs against the reference: the part that live runs and recorded runs share. */
#ifndef FA_FUZZ_JUDGING_JUDGE_H
#define FA_FUZZ_JUDGING_JUDGE_H

#include "report/result.h"

typedef struct fa_judge_config {
  const fa_profile *profile; /* the arithmetic that the outputs claim */
  int n_threads;
  bool generic;    /* the data lets sqrt(n) bounds hold */
  bool end_to_end; /* judge gradients from the reference's forward too */
  bool backward;   /* the gradients in got were really computed */
  bool recorded;   /* outputs come from a file: any may be absent, poison means nothing */
  fa_poison poison;
} fa_judge_config;

/* in: the pristine inputs (with the output tensors' shapes); got: the same call afterwards. Adds a verdict
 * per judged output to r, sets its worst ratio, and its state to FAIL or VACUOUS where the present one is
 * milder.
 *
 * Gradients are judged conditionally: from the subject's own O and LSE, so that the forward's errors do not
 * blur them. Where O or LSE is unusable (NaN or infinity in the wrong place) or absent they are judged end to
 * end, and the notes say so.
 *
 * FA_ERR_UNSUPPORTED: the reference cannot do this problem. */
fa_status fa_judge(const fa_problem *p, const fa_tensors *in, const fa_tensors *got,
                   const fa_judge_config *config, fa_result *r, fa_error *err);

/* Appends to the notes, "; " between them. */
void fa_result_note(fa_result *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets the state if the new one outranks what is there: PASS < VACUOUS < NONDETERMINISTIC < FAIL <
 * INPUT_MODIFIED < OOB. The losing reason goes to the notes. */
void fa_result_raise(fa_result *r, fa_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
