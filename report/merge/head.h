/* Private to report/merge: everything of a report but its cases and failures, and how heads are added up. */
#ifndef FA_REPORT_MERGE_HEAD_H
#define FA_REPORT_MERGE_HEAD_H

#include "cases/base/status.h"

#include <stdbool.h>

struct cJSON;

/* Adds summary, seconds, sources, coverage and what was tried of another report's head. */
void fa_head_add(struct cJSON *to, const struct cJSON *other);
/* Subtracts an entry that its report's summary counted, but that is already in the merged report. */
void fa_head_uncount(struct cJSON *head, const struct cJSON *entry);
/* The heads' "require" wants the same of its cases. */
bool fa_head_requires_same(const struct cJSON *a, const struct cJSON *b);

#endif
