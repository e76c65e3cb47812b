/* Reports that are printed, as text, from the tree of the JSON report. */
#ifndef FA_REPORT_PRINTED_H
#define FA_REPORT_PRINTED_H

#include "cases/status.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* What put prints, as the file `path`: written whole or not at all. */
fa_status fa_report_write_printed(const cJSON *root, const char *path, void (*put)(FILE *, const cJSON *),
                                  fa_error *err);

/* What stands under key: "" or 0 where there is nothing of the kind. */
const char *fa_report_string(const cJSON *object, const char *key);
double fa_report_number(const cJSON *object, const char *key);

#endif
