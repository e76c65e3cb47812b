/* Groups of failures as text, from their JSON. */
#ifndef FA_REPORT_CAUSES_PRINT_H
#define FA_REPORT_CAUSES_PRINT_H

#include <stdbool.h>
#include <stdio.h>

struct cJSON;

/* A line a group, the largest first; verbose: below it the tensors, other predicates and the names of its cases. */
void fa_causes_print(FILE *out, const struct cJSON *groups, bool verbose);

#endif
