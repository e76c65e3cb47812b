/* A verdict made where the wants are: on the machine, which may say that everything is surely right, and nothing else. */
#ifndef FA_REF_CUDA_TRY_H
#define FA_REF_CUDA_TRY_H

#include "ref/compare/verdict.h"
#include "ref/cuda/job.h"
#include "ref/cuda/judge.h"

/* O, LSE, the largest P and O, dropout's matrix, dQ, dK, dV, dBias, dSinks; caches; gradients of captured buffers */
enum { FA_JUDGE_OUTPUTS = 12 + FA_MAX_CAPTURES };

typedef struct fa_judge_trial {
  int n;
  fa_verdict verdict[FA_JUDGE_OUTPUTS];
  bool wrong
      [FA_JUDGE_OUTPUTS]; /* an element is outside of every bound that the reference may have, or not of its class */
  bool is_signed;         /* asked for: a digest of all records, the same whenever the same is judged */
  uint64_t digest;
  bool passed;       /* all that was compared is surely right */
  const char *doubt; /* why not, a few words for a count; NULL: it did pass */
} fa_judge_trial;

/* Compares the subject's O and LSE, as far as they are there, or with backward its gradients, computed from these; adds to the trial, which is
 * {.passed = true} before the first call. options->doubt > 0 says how far bounds may be off. */
fa_status fa_judge_try(fa_judge_machine *m, const fa_problem *p, const fa_tensors *in, const fa_tensors *got,
                       const fa_ref_options *opt, const fa_compare_options *options, bool backward,
                       fa_judge_trial *trial, fa_error *err);
/* How many bounds an error may be that is surely let pass; and one that surely is not is more than wide. */
typedef struct fa_judge_zone {
  double narrow, wide;
} fa_judge_zone;

/* Adds the largest P and O to it, of a forward that found what they have to be; *doubt, unless both are surely right: why not. */
fa_status fa_judge_compare_amax(fa_ref_call *c, const fa_judge_found *found, const fa_tensors *got,
                                const fa_compare_options *options, const fa_judge_zone *zone,
                                fa_judge_trial *trial, const char **doubt, fa_error *err);
/* O and LSE, and if these pass the gradients, with one answer of the machine unless the call is large. */
fa_status fa_judge_try_both(fa_judge_machine *m, const fa_problem *p, const fa_tensors *in,
                            const fa_tensors *got, const fa_ref_options *opt,
                            const fa_compare_options *options, fa_judge_trial *trial, fa_error *err);

#endif
