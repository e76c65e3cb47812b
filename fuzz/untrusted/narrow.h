/* The arithmetic that the judge pins, and what is left of a claim beside it: a candidate may say that it computes more
 * exactly than it has to, never less. */
#ifndef FA_FUZZ_UNTRUSTED_NARROW_H
#define FA_FUZZ_UNTRUSTED_NARROW_H

#include "cases/arithmetic/fields.h"
#include "cases/vocabulary/problem.h"

/* What a kernel may do that adds up in f32 and rounds P to the element type: the default of --arithmetic. */
#define FA_PINNED_ARITHMETIC "flash"

/* False: no such set, or one that is meant for runs of unknown kernels and too wide to hold anybody to. */
bool fa_arithmetic_may_be_pinned(const char *name);

/* pinned, with every field of claimed that only makes bounds narrower. ignored: receives "p e4m3, max_splits 4096", the
 * claims that would have made them wider; "" if there are none. */
fa_arithmetic fa_arithmetic_narrow(const fa_arithmetic *pinned, const fa_arithmetic *claimed, fa_dtype dtype,
                                   char *ignored, size_t size);
/* With no more splits and no smaller tiles than a problem with so many keys has use for. */
void fa_arithmetic_fit(fa_arithmetic *a, const fa_problem *p);

#endif
