/* Reports printed as text from the tree of the JSON report. */
#ifndef FA_REPORT_PRINTED_H
#define FA_REPORT_PRINTED_H

#include "report/result.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* Writes what put prints to the file `path`, atomically. */
fa_status fa_report_write_printed(const cJSON *root, const char *path, void (*put)(FILE *, const cJSON *),
                                  fa_error *err);

/* Escapes text for content or attributes, in HTML and XML: special characters and line ends become
 * references, characters that XML 1.0 cannot hold become '?'. */
void fa_report_put_markup(FILE *out, const char *text);

/* Names and reasons come from users and subjects: control characters, with which lines could be forged, become
 * '?'. */
void fa_print_clean(FILE *out, const char *text);

/* What stands at key; NULL: nothing, or object is NULL or no object. */
const cJSON *fa_report_at(const cJSON *object, const char *key);
/* The value of key; "" or 0 if there is none of that type. */
const char *fa_report_string(const cJSON *object, const char *key);
double fa_report_number(const cJSON *object, const char *key);
/* An entry of "cases" that passed or was skipped: "failures" has no item for it. */
bool fa_report_is_good(const cJSON *entry);

/* Sets features, shape, passes and outputs of *brief from an entry of a report's "cases". */
void fa_report_read_judged(const cJSON *entry, fa_result *brief);

#endif
