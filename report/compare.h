/* Two reports of the same cases: what changed from the first to the second. */
#ifndef FA_REPORT_COMPARE_H
#define FA_REPORT_COMPARE_H

#include "report/failure_class.h"

#include <stdio.h>

struct cJSON;

/* ---- one case, before and now ---- */

typedef enum fa_grade { FA_GRADE_ABSENT, FA_GRADE_SKIPPED, FA_GRADE_PASSED, FA_GRADE_FAILED } fa_grade;

/* What a comparison looks at. */
typedef struct fa_compared {
  fa_grade grade;
  fa_state state;
  bool has_class; /* of a failure: what is wrong is known, not its state alone */
  fa_failure_class class;
  double seconds;
} fa_compared;

extern const fa_compared fa_compared_absent;
fa_compared fa_compared_of(const fa_result *r);
/* Of an entry of a report; failure: its item of "failures", or NULL. */
fa_compared fa_compared_of_entry(const struct cJSON *entry, const struct cJSON *failure);
/* The kind of a change, one of those below; NULL: nothing but perhaps the time is different. */
const char *fa_compare_kind(const fa_compared *before, const fa_compared *now);
/* It takes more than so many times as long, and so many seconds more. */
bool fa_compare_is_slower(const fa_compared *before, const fa_compared *now, double times, double seconds);

/* ---- two reports ---- */

/* Entries are of the same case if they have the same record (the recipe) and name, and, unless each report has but one
 * backend, the same backend; of several of these, the k-th of one report is compared with the k-th of the other. Entries
 * without a record, from older versions, go by their name. Devices and kernels may differ: to compare those is why people have two reports.
 *
 * *out, owned by the caller: {"a", "b": {"path", "command", "started", "backend", "device", "git"},
 *   "counts": {kind: n, ...}, "same": n, "rows": [{"kind", "name", "backend", "kernel", "a", "b": {"state",
 *   "worst_ratio", "seconds"}}]}. Kinds, of which a row has the first that fits: "new" fails only in b, "fixed" fails in
 * a and passes in b, "changed" fails otherwise than in a (in another state, or class of failure), "slower" and "faster" by twice and a tenth of a second, "skipped" and "judged"
 * only in b, "added" and "gone": only in one of the reports, and good there. */
fa_status fa_report_compare(const struct cJSON *a, const struct cJSON *b, const char *path_a,
                            const char *path_b, struct cJSON **out, fa_error *err);
/* A line a row, and a last one with the counts. Unless verbose, at most 20 of a kind, and none that is no change for the
 * better or worse. */
void fa_report_print_comparison(FILE *out, const struct cJSON *comparison, bool verbose);
/* How many cases fail in the second report alone. */
int64_t fa_report_new_failures(const struct cJSON *comparison);

#endif
