/* An LSE whose ALiBi counts from the column. */
#ifndef FA_FUZZ_JUDGING_LSE_COLUMN_H
#define FA_FUZZ_JUDGING_LSE_COLUMN_H

#include "cases/tensors/set.h"
#include "cases/vocabulary/contract.h"
#include "cases/vocabulary/problem.h"
#include "ref/engine/want.h"

/* Such an LSE is larger by slope * (i + shift), and is rounded at that size before the harness takes this away
 * again: adds that rounding to the bounds of the wanted LSE. Any other contract changes nothing. */
fa_status fa_lse_widen_column(const fa_problem *p, const fa_tensors *in, const fa_contract *c, fa_want *want,
                              fa_error *err);

#endif
