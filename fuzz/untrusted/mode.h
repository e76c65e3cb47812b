/* A run of a candidate that nobody trusts as its report has it, so far as it can be run again by that. */
#ifndef FA_FUZZ_UNTRUSTED_MODE_H
#define FA_FUZZ_UNTRUSTED_MODE_H

#include "fuzz/untrusted/rules.h"
#include "gpu/wall/terms.h"

struct cJSON;

/* Adds what the wall was made with: "allow", "hide", "memory_limit_bytes". */
void fa_terms_add_to_report(const fa_wall_terms *terms, struct cJSON *untrusted);
/* Adds "layers" and "arithmetic". */
void fa_rules_add_mode(const fa_rules *r, struct cJSON *untrusted);
/* The options of report/text/mode.h. malloc'd; NULL: out of memory. */
char *fa_rules_mode(const fa_rules *r, const fa_wall_terms *terms);

#endif
