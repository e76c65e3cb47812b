/* Expressions and block lists for standard attention, one pair at a time. score_mod and its derivatives are
 * those of the host's interpreter, in float32: far more accurate than the rules that are tested
 * (tests/mutants/rival_rules.c). */
#ifndef FA_TESTS_SUPPORT_STANDARD_FLEX_H
#define FA_TESTS_SUPPORT_STANDARD_FLEX_H

#include "cases/tensors/set.h"
#include "cases/vocabulary/problem.h"
#include "gpu/kernels/params/flex_functions.h"

typedef struct standard_flex standard_flex;

/* NULL: the problem has no expressions or lists. Aborts when out of memory. */
standard_flex *standard_flex_make(const fa_problem *p, const fa_tensors *in);
void standard_flex_free(standard_flex *x); /* NULL is allowed, also in the functions below */

/* at: of a pair that exists. */
bool standard_flex_hides(const standard_flex *x, const fa_flex_pair *at);
double standard_flex_score(const standard_flex *x, double score, const fa_flex_pair *at);
/* Returns d score_mod / d score, and adds g times the derivative with respect to each element read to
 * dbuffer[buffer]. */
double standard_flex_derivative(const standard_flex *x, double score, const fa_flex_pair *at, double g,
                                double *const *dbuffer);

#endif
