/* What is stored of O where a case has it in 8 bits (cases/vocabulary/quantized.h); elsewhere nothing. */
#ifndef FA_REF_BOUNDS_STORED_H
#define FA_REF_BOUNDS_STORED_H

#include "cases/vocabulary/problem.h"
#include "ref/engine/want.h"

/* Values, and bounds if there are any, of O itself become those of what is stored of it, in its type. */
void fa_bound_store_o(const fa_problem *p, const fa_tensors *in, fa_want *o);
/* The same of n elements of a want that is of what is stored already. */
void fa_bound_stored_o(const fa_problem *p, const fa_tensors *in, int64_t first, int64_t n, fa_want *o);

#endif
