/* Why an LSE is wrong: kernels return it in several conventions, which are easy to tell. For runs that look for no
 * explanations (fuzz/explain), which say the same and more. */
#ifndef FA_FUZZ_JUDGING_LSE_HINT_H
#define FA_FUZZ_JUDGING_LSE_HINT_H

#include "ref/engine/want.h"
#include "report/result.h"

/* If the LSE failed, and all of it is what another convention would give, adds a note that names it. */
void fa_lse_hint(const fa_problem *p, const fa_want *want, const fa_tensor *got, fa_result *r);

#endif
