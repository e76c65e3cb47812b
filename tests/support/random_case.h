/* Random valid cases over every key of the case format, for tests of the codec: sizes are small, and contents
 * odd rather than useful. */
#ifndef FA_TESTS_SUPPORT_RANDOM_CASE_H
#define FA_TESTS_SUPPORT_RANDOM_CASE_H

#include "cases/base/rng.h"
#include "cases/recipe/case.h"

/* The case is valid (fa_case_validate) and owned by the caller. Aborts when out of memory. */
void random_case(fa_rng *r, fa_case *out);

#endif
