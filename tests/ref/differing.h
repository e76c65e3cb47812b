/* Cases computed by the reference and by the tests' slow attention. */
#ifndef FA_TESTS_REF_DIFFERING_H
#define FA_TESTS_REF_DIFFERING_H

#include "cases/recipe/case.h"

/* The elements of all outputs that differ. The slow one computes `other`, which usually is the case's own problem. of_id: their number
 * by output, FA_T_COUNT of them; NULL: not wanted. */
int64_t differing(const fa_case *c, const fa_problem *other, int64_t *of_id);

/* Makes another problem of a case's; false: it is the same. */
typedef bool (*problem_change)(fa_problem *p);

/* Checks the small cases without expressions of a case file whose names begin with `prefix`, of which there must be
 * at least `least`; and that some case tells each change, which the slow one alone computes with. */
void check_case_file(const char *path, const char *prefix, int least, const problem_change *changes,
                     int n_changes);

#endif
