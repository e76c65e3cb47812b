/* A case computed by the reference and by the tests' slow attention. */
#ifndef FA_TESTS_REF_DIFFERING_H
#define FA_TESTS_REF_DIFFERING_H

#include "cases/recipe/case.h"

/* The elements of all outputs that differ. The slow one computes `other`, which usually is the case's own problem. of_id: their number
 * by output, FA_T_COUNT of them; NULL: not wanted. */
int64_t differing(const fa_case *c, const fa_problem *other, int64_t *of_id);

#endif
