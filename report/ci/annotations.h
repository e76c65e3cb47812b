/* --annotations github: what is wrong as workflow commands, which GitHub shows beside the source, and a table for the
 * page of the job. GitHub keeps ten commands of a kind for each step, so there is one for each cause, not for each
 * failure. */
#ifndef FA_REPORT_CI_ANNOTATIONS_H
#define FA_REPORT_CI_ANNOTATIONS_H

#include "cases/base/status.h"

#include <stdio.h>

struct cJSON;

/* FA_ERR_INPUT: nothing is known of that site; the message says what there is. */
fa_status fa_annotations_check(const char *site, fa_error *err);

/* Prints the commands. root: a complete report, whose counts are numbers. folder: of the repository, "" if unknown; paths
 * in it are made relative to it. */
void fa_annotations_print(FILE *out, const struct cJSON *root, const char *folder);

/* Appends the counts and the causes as a Markdown table to the file. */
fa_status fa_job_summary_append(const char *path, const struct cJSON *root, fa_error *err);

/* Both, as the environment says: GITHUB_WORKSPACE (else the current folder) and GITHUB_STEP_SUMMARY, if it is set. */
fa_status fa_annotations_write(FILE *out, const struct cJSON *root, fa_error *err);

#endif
