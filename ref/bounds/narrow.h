/* Products of 8 bits in a matrix unit whose accumulator has 13 fraction bits (docs/reference/bounds.md, "Eight bits"): what the
 * scores lose, by a walk over the very products in the order in which the unit adds them. */
#ifndef FA_REF_BOUNDS_NARROW_H
#define FA_REF_BOUNDS_NARROW_H

#include "ref/bounds/narrow_formula.h"
#include "ref/bounds/terms.h"

/* The stored numbers, from the values: of a block's rows, and of the head's keys. */
void fa_bound_narrow_rows(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_rows *r,
                          const fa_ref_scratch *w);
void fa_bound_narrow_keys(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_scratch *w);
/* b->e_logit of a tile: tau times what the sum of a pair's products may be off by. s: scale * q.k, -inf where hidden. */
void fa_bound_narrow_scores(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_rows *r, int64_t j0,
                            int64_t n, const double *s);

#endif
