/* What a subject computed instead: tries the hypotheses on a failed case. */
#ifndef FA_FUZZ_EXPLAIN_RUN_H
#define FA_FUZZ_EXPLAIN_RUN_H

#include "fuzz/judging/judge.h"

typedef struct fa_explain_options {
  double seconds; /* at most about so long, by fa_failure_left's clock */
  double
      full_seconds; /* a computation of the whole case that takes longer than this is tried on some rows first;
                        * 0: the default */
} fa_explain_options;

/* in, got, config: as fa_judge had them; judged: what it kept. Sets r's explanations (report/result.h), none if its state
 * is not FAIL or no output's elements are wrong. r->seconds_reference says how long a computation takes.
 *
 * What is tried is a mistake whose own values and bounds come from the reference (fuzz/explain/hypothesis.h); what counts
 * as an explanation is in fuzz/explain/accept.h. */
fa_status fa_explain(const fa_problem *p, const fa_tensors *in, const fa_tensors *got,
                     const fa_judge_config *config, const fa_judged *judged,
                     const fa_explain_options *options, fa_result *r, fa_error *err);

#endif
