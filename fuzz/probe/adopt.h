/* Undeclared means probed: what a subject has not said of itself is found out before a run. */
#ifndef FA_FUZZ_PROBE_ADOPT_H
#define FA_FUZZ_PROBE_ADOPT_H

#include "fuzz/options/choose_backend.h"
#include "report/json.h"

/* Asks the chosen backend what its declaration of these element types (bits) lacks, if it would adopt that, and keeps it in
 * the choice for whoever opens it (fa_choice_open). Says so on stderr unless quiet, with lines of progress if wanted, and in the report under "probed" (NULL: no report). A subject that cannot be
 * asked keeps its defaults, with a warning. */
fa_status fa_choice_probe(fa_choice *choice, unsigned dtypes, double timeout_s, bool quiet, bool progress,
                          fa_report *report, fa_error *err);

/* The named set that has the most fields in common with it. */
const char *fa_probe_nearest_set(const fa_arithmetic *a, fa_dtype dtype);

#endif
