/* Private to report/merge: when two entries are of one case, and when they say the same. */
#ifndef FA_REPORT_MERGE_SAME_H
#define FA_REPORT_MERGE_SAME_H

#include <stdbool.h>

struct cJSON;

/* True if "record", "name" and "backend" are the same; device and driver are the report's. */
bool fa_same_case(const struct cJSON *a, const struct cJSON *b);
/* Entries, or failures; NULL: there is none. */
bool fa_same_result(const struct cJSON *a, const struct cJSON *b);
/* True if the entries name different kernels. */
bool fa_of_other_kernels(const struct cJSON *a, const struct cJSON *b);

#endif
