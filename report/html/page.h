/* A report as one HTML page that needs nothing else: no other file, no network. docs/reference/report.md says what is
 * on it. */
#ifndef FA_REPORT_HTML_PAGE_H
#define FA_REPORT_HTML_PAGE_H

#include "report/json.h"

/* root: a report as it was read, or merged (numbers are numbers in its tree). comparison: of fa_report_compare, whose
 * second report root is; or NULL. */
fa_status fa_page_write(const struct cJSON *root, const struct cJSON *comparison, const char *path,
                        fa_error *err);
/* The page of a run that has just ended and whose report is complete (fa_report_complete). */
fa_status fa_page_write_run(const fa_report *r, const char *path, fa_error *err);

#endif
