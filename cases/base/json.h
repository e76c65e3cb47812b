/* Strict JSON text to a cJSON tree.
 *
 * cJSON alone accepts raw control characters in strings, \u0000, numbers like 01 or 1., invalid UTF-8, any
 * byte below 33 as space, and an object that gives a key twice. RFC 8259 does not, and a case that two
 * programs read in two ways is worth nothing. So the text is checked first, and cJSON only builds the
 * tree. */
#ifndef FA_CASES_BASE_JSON_H
#define FA_CASES_BASE_JSON_H

#include "cases/base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct cJSON;

#define FA_JSON_MAX_DEPTH 64        /* of nested arrays and objects */
#define FA_JSON_MAX_NUMBER_BYTES 60 /* length of one number's text: cJSON's own buffer */

/* Parses n_bytes of text that hold exactly one value; no terminating NUL is needed. name is the file's name
 * in messages: `name:LINE:COLUMN: $.path: what is wrong`, columns counted in bytes from 1. *out is owned by
 * the caller (cJSON_Delete); NULL on errors. */
fa_status fa_json_parse(const char *text, size_t n_bytes, const char *name, struct cJSON **out,
                        fa_error *err);

/* The same for one of several values (JSON lines). Starts at *at and sets *at past the value and the space
 * after it; the text is used up when *at == n_bytes. */
fa_status fa_json_parse_next(const char *text, size_t n_bytes, size_t *at, const char *name,
                             struct cJSON **out, fa_error *err);

/* Writes ".key", or ["key"] if key is not a plain identifier, for use in a path. Truncates to size. */
void fa_json_path_key(char *buffer, size_t size, const char *key, size_t key_bytes);

/* The fewest digits that read back as the same double, or (single) as the same f32. For finite x, size >= 32.
 */
void fa_json_number_text(char *buffer, size_t size, double x, bool single);

#endif
