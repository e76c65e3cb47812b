/* A scale that fits what a subject computed. */
#ifndef FA_FUZZ_EXPLAIN_FIT_H
#define FA_FUZZ_EXPLAIN_FIT_H

#include "fuzz/explain/failure.h"

/* The scale that comes nearest, as a multiple of the right one; 0: neither O nor dQ has failed. */
double fa_fit_scale(const fa_failure *x);

#endif
