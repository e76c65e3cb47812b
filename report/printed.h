/* Reports that are printed, as text, from the tree of the JSON report. */
#ifndef FA_REPORT_PRINTED_H
#define FA_REPORT_PRINTED_H

#include "cases/base/status.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* What put prints, as the file `path`: written whole or not at all. */
fa_status fa_report_write_printed(const cJSON *root, const char *path, void (*put)(FILE *, const cJSON *),
                                  fa_error *err);

/* Text between or in tags, of HTML as of XML: what means something there, and line ends, as references;
 * characters that XML 1.0 cannot hold as '?'. */
void fa_report_put_markup(FILE *out, const char *text);

/* What stands under key: "" or 0 where there is nothing of the kind. */
const char *fa_report_string(const cJSON *object, const char *key);
double fa_report_number(const cJSON *object, const char *key);

#endif
