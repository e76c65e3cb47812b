/* Metamorphic laws: a case is judged by a relation that must hold between two runs of the subject. No
 * reference is needed, so that lengths too large for float64 can be judged too. The laws:
 * cases/vocabulary/law.h; what each compares, and how exactly: docs/reference/laws.md. */
#ifndef FA_FUZZ_LAWS_CHECK_H
#define FA_FUZZ_LAWS_CHECK_H

#include "cases/recipe/case.h"
#include "fuzz/judging/run_config.h"
#include "report/result.h"

/* Judges c by c->law. SKIP with a reason if the law does not apply to the case. Otherwise it has the contract
 * of fa_run_case, which calls it. */
fa_status fa_run_law(const fa_case *c, const fa_run_config *config, fa_result *out, fa_error *err);

#endif
