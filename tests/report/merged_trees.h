/* Merging of reports that a test has as trees. */
#ifndef FA_TESTS_REPORT_MERGED_TREES_H
#define FA_TESTS_REPORT_MERGED_TREES_H

#include "cases/base/status.h"

struct cJSON;

/* Merges n reports, by way of their texts; paths are their names in messages. The caller frees *out. */
fa_status merge_trees(struct cJSON *const *reports, const char *const *paths, int n, struct cJSON **out,
                      fa_error *err);

#endif
