/* What the shrinker found, for people and for reports; shrinking the failures of a run. */
#ifndef FA_FUZZ_SHRINK_REPORT_H
#define FA_FUZZ_SHRINK_REPORT_H

#include "fuzz/options/command.h"
#include "fuzz/shrink/reduce.h"
#include "report/json.h"
#include "report/text/line.h"

/* Jobs, limits, isolation and progress from the command line; the caller sets schedule and class. */
fa_shrink_config fa_shrink_config_from_cli(const fa_cli *cli, const fa_choice *choice);

/* A line with the outcome, the failing run's own lines, and finally the case on a line of its own. */
void fa_shrink_print(FILE *out, const char *name, const char *backend, const fa_shrink_result *r,
                     const fa_line_style *style);

/* After a run with --shrink: adds "shrunk" to the report's failures, at most a few per class, each within a
 * minute. FA_ERR_* only if out of memory; what cannot be shrunk is reported on stderr. *interrupted: the
 * signal, or 0. */
fa_status fa_shrink_failures(const fa_cli *cli, const fa_choice *choice, int n_choices, fa_report *report,
                             int *interrupted, fa_error *err);

#endif
