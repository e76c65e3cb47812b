/* Why an LSE is wrong: kernels return it in several conventions, which are easy to tell. */
#ifndef FA_FUZZ_JUDGING_LSE_HINT_H
#define FA_FUZZ_JUDGING_LSE_HINT_H

#include "ref/engine/want.h"
#include "report/result.h"

/* If the LSE failed, and all of it is what another convention would give, adds a note that names it. */
void fa_lse_hint(const fa_problem *p, const fa_want *want, const fa_tensor *got, fa_result *r);

#endif
