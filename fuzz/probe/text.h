/* Findings as a table, as the fragment of a hello, and against what the subject says of itself. */
#ifndef FA_FUZZ_PROBE_TEXT_H
#define FA_FUZZ_PROBE_TEXT_H

#include "fuzz/probe/findings.h"

#include <stdio.h>

struct cJSON;

/* evidence: with the numbers that each finding rests on. */
void fa_probe_print(FILE *to, const fa_probe_report *r, bool evidence);
/* The keys of a hello (docs/reference/protocol.md) that were found: "outputs", "lse", "empty_o", "arithmetic". Several
 * element types share what they have in common. NULL: no memory. */
struct cJSON *fa_probe_hello(const fa_probe_report *r, int n);
/* Everything: findings with their evidence. */
struct cJSON *fa_probe_json(const fa_probe_report *r);
/* Marks findings that contradict the declaration: it promises more than was found, or another convention. Returns their
 * number, those of conventions of the case included. */
int fa_probe_contradictions(fa_probe_report *r, const fa_declaration *declared);

#endif
