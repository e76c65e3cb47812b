/* The failures of a run that is under way, or was killed: its journal has them, its report does not exist yet, or is
 * that of an earlier run. */
#ifndef FA_REPORT_UNFINISHED_H
#define FA_REPORT_UNFINISHED_H

#include "report/json.h"

/* The journal of the report at path: PATH.journal. */
void fa_report_journal_of(const char *path, char *journal, size_t size);
/* True if PATH.journal exists and was written to after the report at PATH, or there is no report. */
bool fa_report_is_unfinished(const char *path);

/* Reads PATH.journal as a report (as fa_report_load) whose "failures" have the numbers that those of the finished
 * report will have; it has no "cases". Failures behind the first missing result are left out, because a failure may
 * yet come before them. The caller owns *root. */
fa_status fa_report_load_unfinished(const char *path, struct cJSON **root, fa_error *err);

#endif
