/* One case from recipe to verdict: the only path, shared by run, random, repro, shrink, golden and the fuzz
 * targets. */
#ifndef FA_FUZZ_ONE_RUN_CASE_H
#define FA_FUZZ_ONE_RUN_CASE_H

#include "cases/recipe/case.h"
#include "fuzz/judging/run_config.h"
#include "fuzz/one/preparing.h"
#include "report/result.h"

/* Builds the inputs, runs the subject twice (different poison), checks guards, gaps, inputs and
 * repeatability, then judges every output by the reference. It never fails because the subject is wrong:
 * fa_status is for the world, and is also recorded in *out as FA_ERROR. *out must have been initialised by
 * fa_result_init. */
fa_status fa_run_case(const fa_case *c, const fa_run_config *config, fa_result *out, fa_error *err);

#endif
