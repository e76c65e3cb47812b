/* Failures of a campaign put together by what may have caused them.
 *
 * Every result is noted as it comes: of a passing case a row of bits, of a failure also what is wrong and what explains
 * it. At the end failures with one explanation are a group; the others are grouped by their class. For each group the
 * simplest predicate over the cases' features is looked for that passing cases do not satisfy (report/causes/fit.h).
 * Then groups that two predicates describe better than one are split, and groups that one describes as well as two are
 * put together. Cases that were skipped or ended in an error tell nothing, and failures that a waiver expects are left
 * out. */
#ifndef FA_REPORT_CAUSES_COLLECT_H
#define FA_REPORT_CAUSES_COLLECT_H

#include "report/result.h"

struct cJSON;
typedef struct fa_causes fa_causes;

fa_causes *fa_causes_make(void); /* NULL: out of memory */
void fa_causes_free(fa_causes *c);

/* Options that a command with a case in it needs beside the backend, from now on; NULL: none. The text outlives *c. */
void fa_causes_set_mode(fa_causes *c, const char *mode);

/* Notes a result; failure: its entry in the "failures" of a report that outlives *c, NULL if there is none. */
fa_status fa_causes_note(fa_causes *c, const fa_result *r, const struct cJSON *failure, fa_error *err);
/* The same for an entry of a report's "cases" and the one of "failures" that belongs to it. */
fa_status fa_causes_note_entry(fa_causes *c, const struct cJSON *entry, const struct cJSON *failure,
                               fa_error *err);
/* The same, where the failure does not outlive the call: its place among the failures is noted. */
fa_status fa_causes_note_passing_by(fa_causes *c, const struct cJSON *entry, const struct cJSON *failure,
                                    int64_t place, fa_error *err);
/* All of a report. */
fa_status fa_causes_note_report(fa_causes *c, const struct cJSON *root, fa_error *err);

/* The groups as in docs/reference/report.md, to be freed by the caller. Called once, after the last result.
 * failures: those of the report, NULL if there is none. path: of the report, for the commands; NULL: the failures have
 * commands of their own ("repro"), or, without failures, the command has the case in it. program: for such commands. */
fa_status fa_causes_conclude(fa_causes *c, const struct cJSON *failures, const char *path,
                             const char *program, struct cJSON **groups, fa_error *err);

/* The same where failures were noted by their places. read gives the failure at one, to be freed; NULL: it cannot. */
fa_status fa_causes_conclude_read(fa_causes *c, struct cJSON *(*read)(void *ctx, int64_t place), void *ctx,
                                  const char *program, struct cJSON **groups, fa_error *err);

#endif
