/* --baseline: a run held against a report of before. Only what is worse than there counts: failures that it does not have
 * are new, those that it has are known. What is worse is decided as for two reports (fa_compare_kind). */
#ifndef FA_REPORT_CI_BASELINE_H
#define FA_REPORT_CI_BASELINE_H

#include "report/result.h"

#include <stdio.h>

struct cJSON;
typedef struct fa_baseline fa_baseline;

/* Which run is held against it. */
typedef struct fa_baseline_run {
  const char *version;          /* of the program */
  const char *backend, *device; /* the first subject */
  bool one_backend;             /* then the baseline's may have another name, if it has one alone too */
} fa_baseline_run;

/* Reads the report at path. slower: what stands after --slower, a number above 1; NULL: times are not looked at.
 * Says on *say, unless NULL, that the baseline is of another subject or version than the run. FA_ERR_INPUT: no such file,
 * no report, no such number. *out is owned by the caller. */
fa_status fa_baseline_load(const char *path, const char *slower, const fa_baseline_run *run, FILE *say,
                           fa_baseline **out, fa_error *err);
void fa_baseline_free(fa_baseline *b);

/* Holds the next result, in the order of the run, against the same case of the baseline. A failure that is there too, in
 * the same class, becomes known: waived, with that text. failure: the entry of a result that was read back, whose
 * verdicts are not all there; NULL: the result has them. */
void fa_baseline_judge(fa_baseline *b, fa_result *r, const struct cJSON *failure);

/* False: something is slower, or not judged any more. New failures are the run's own. */
bool fa_baseline_is_met(const fa_baseline *b);
/* What is slower, not judged, fixed, a line each; then the counts. */
void fa_baseline_print(FILE *out, const fa_baseline *b, bool verbose);
/* {"path", "counts": {"new": 1, "known": 2, "slower": 0, "not_judged": 0, "fixed": 1}, "items": [{"kind": "fixed", "name",
 * "backend", "text"}, ...]}: the items are those that are not in "failures". */
struct cJSON *fa_baseline_to_json(const fa_baseline *b);

#endif
