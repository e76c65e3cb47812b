/* A failure in a few lines, for whoever sees it first. */
#ifndef FA_REPORT_BRIEF_H
#define FA_REPORT_BRIEF_H

#include "report/text/line.h"

/* The lines behind the first one, at most five, each indented by four spaces: what is wrong and where, what explains
 * it (or, if nothing does, what the notes say), the worst element and its bound (or the statistic that left its band,
 * and what that means), the command that repeats it. Of a waived failure only what is wrong. */
void fa_brief_print(FILE *out, const fa_result *r, const fa_line_style *style);

/* "    explained by: ..."; prints nothing if nothing explains it. */
void fa_brief_print_explanation(FILE *out, const fa_result *r);

#endif
