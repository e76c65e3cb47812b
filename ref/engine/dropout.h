/* The two dropout generators (docs/reference/semantics.md, "Dropout"). */
#ifndef FA_REF_ENGINE_DROPOUT_H
#define FA_REF_ENGINE_DROPOUT_H

#include "ref/engine/call.h"
#include "ref/engine/geometry.h"

/* The rule of the keep mask for one element: true = kept. i, j local to the sequence, b the sequence, h the
 * query head; lengths as the scheme counts them (memeff: launch maxima in the head term, this sequence's keys
 * in the row term). */
bool fa_ref_dropout_keep(const fa_problem *p, int64_t b, int64_t h, int64_t i, int64_t j);
/* Number of a sequence's keys in memeff's row term. */
int64_t fa_ref_dropout_keys(const fa_problem *p, int64_t b);
/* z[j] = 1/(1-p) or 0 for keys j0 .. j0 + n - 1 of row i. */
void fa_ref_dropout_row(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i, int64_t j0,
                        int64_t n, double *z);

#endif
