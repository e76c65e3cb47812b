/* A case as JSON: parsed, printed. */
#ifndef FA_CASES_CODEC_JSON_H
#define FA_CASES_CODEC_JSON_H

#include "cases/recipe/case.h"

struct cJSON;
/* One case object. path: where it stands, for messages ("$.cases[3]", "$"). The case is valid. *out is set
 * only on FA_OK, then owned by the caller. "name" may be missing: then it is "". */
fa_status fa_case_from_json(const struct cJSON *object, const char *path, fa_case *out, fa_error *err);
fa_status fa_case_from_text(const char *json, fa_case *out, fa_error *err);
/* Canonical object: fixed key order; defaults and what follows from other keys left out, family and dtype
 * always there. Doubles have as few digits as read back to the same bits. *out is the caller's
 * (cJSON_Delete); numbers that cJSON would round when printing are raw items, which fa_case_from_json reads
 * too. The case must be valid; of any other the result is only good for showing. */
fa_status fa_case_to_json(const fa_case *c, struct cJSON **out);
/* Canonical one-line text, malloc'd; NULL when out of memory. parse(print(c)) == c, print(parse(print(c))) ==
 * print(c). */
char *fa_case_to_line(const fa_case *c);

#endif
