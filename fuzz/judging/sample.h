/* Which places of a large call are judged: drawn at random, and those that stand out. */
#ifndef FA_FUZZ_JUDGING_SAMPLE_H
#define FA_FUZZ_JUDGING_SAMPLE_H

#include "cases/vocabulary/contract.h"
#include "cases/vocabulary/problem.h"
#include "cases/vocabulary/sample.h"
#include "ref/engine/options.h"

typedef struct fa_sample_places {
  fa_ref_place *row, *strip; /* owned */
  int64_t n_rows, n_strips;
  int64_t of_rows, of_strips; /* that the call has */
  int64_t odd_rows,
      odd_strips; /* of n_rows, n_strips: not drawn; they hold NaN or infinity, or what nobody wrote */
} fa_sample_places;

/* Why the call's outputs can only be judged as a whole; NULL: a sample of them can be. contract may be NULL. */
const char *fa_sample_refused(const fa_problem *p, const fa_tensors *in, const fa_contract *contract,
                              const fa_profile *profile);

/* Draws rows and strips without regard to what they hold; all there are, if there are no more. strips: whether gradients
 * are judged. stream: the case's seed. */
fa_status fa_sample_draw(const fa_problem *p, const fa_tensors *in, const fa_sample *sample, uint64_t stream,
                         bool strips, fa_sample_places *out, fa_error *err);
/* Adds places whose outputs in got are not finite, as far as that is not what an empty row holds: a few of each head. So
 * what nobody wrote is seen everywhere. */
fa_status fa_sample_add_odd(const fa_problem *p, const fa_tensors *in, const fa_tensors *got, int n_threads,
                            bool strips, fa_sample_places *x, fa_error *err);
/* The sample's rows, and those whose forward the gradients of its strips need: all of a strip's heads if nothing of the
 * subject's own forward serves, else those whose LSE (NULL: none) is too coarse to say what P is. Free its rows. */
fa_status fa_sample_rows_needed(const fa_problem *p, const fa_tensors *in, const fa_sample_places *x,
                                bool all, const fa_tensor *lse, fa_ref_sample *out, fa_error *err);
/* As the reference takes it. */
fa_ref_sample fa_sample_of(const fa_sample_places *x);
bool fa_sample_is_whole(const fa_sample_places *x);
void fa_sample_places_free(fa_sample_places *x);

#endif
