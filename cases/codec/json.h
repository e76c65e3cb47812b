/* A case as JSON: parsed, printed. */
#ifndef FA_CASES_CODEC_JSON_H
#define FA_CASES_CODEC_JSON_H

#include "cases/recipe/case.h"

struct cJSON;
/* Reads one case object. path: its place for messages ("$.cases[3]", "$"). The result is valid. *out is set
 * only on FA_OK, then owned by the caller. "name" may be missing: it is then "". */
fa_status fa_case_from_json(const struct cJSON *object, const char *path, fa_case *out, fa_error *err);
fa_status fa_case_from_text(const char *json, fa_case *out, fa_error *err);
/* Canonical object: fixed key order; defaults and derived values left out; family and dtype always present.
 * Doubles have the fewest digits that read back to the same bits. *out is owned by the caller (cJSON_Delete).
 * Numbers that cJSON would round when printing are raw items, which fa_case_from_json also reads. The case
 * should be valid; for any other, the result is only good for display. */
fa_status fa_case_to_json(const fa_case *c, struct cJSON **out);
/* Canonical one-line text, malloc'd; NULL when out of memory.
 * parse(print(c)) == c and print(parse(print(c))) == print(c). */
char *fa_case_to_line(const fa_case *c);

#endif
