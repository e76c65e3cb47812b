/* Metamorphic laws: a case judged by what must hold between two runs of the subject. No reference is needed,
 * so lengths that float64 cannot reach can be judged too. Which laws there are: cases/vocabulary/law.h; what each
 * compares, and how exactly: docs/reference/laws.md. */
#ifndef FA_FUZZ_LAWS_CHECK_H
#define FA_FUZZ_LAWS_CHECK_H

#include "cases/recipe/case.h"
#include "fuzz/judging/run_config.h"
#include "report/result.h"

/* Judges c by c->law. SKIP with a reason where the law says nothing about the case. The same contract as
 * fa_run_case otherwise, which calls it. */
fa_status fa_run_law(const fa_case *c, const fa_run_config *config, fa_result *out, fa_error *err);

#endif
