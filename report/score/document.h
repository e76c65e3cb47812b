/* The score of a kernel: one JSON document for other tools, docs/reference/score.md. */
#ifndef FA_REPORT_SCORE_DOCUMENT_H
#define FA_REPORT_SCORE_DOCUMENT_H

#include "report/score/cases.h"

#include <stdio.h>

#define FA_SCORE_VERSION 1 /* of "fa_score": docs/reference/versions.md */

/* head: of the report that the cases are from, with "groups" and, where something was required, "require". bench: what
 * `fa-verify bench --report` wrote about the same kernel, or NULL. It depends on nothing else: no clock, no path. The caller
 * owns the tree; NULL: out of memory. */
struct cJSON *fa_score_document(fa_score_cases *c, const struct cJSON *head, const struct cJSON *bench);
/* The number with its formula, and a line for each caveat. */
void fa_score_print(FILE *out, const struct cJSON *score);

#endif
