/* JUnit XML case by case, for reports that are not held as one tree. */
#ifndef FA_REPORT_JUNIT_H
#define FA_REPORT_JUNIT_H

#include <stdint.h>
#include <stdio.h>

struct cJSON;

typedef struct fa_junit {
  FILE *out;
  const struct cJSON *root;
  const struct cJSON **group; /* owned: of each failure; NULL: out of memory, and no group is named */
} fa_junit;

/* root: the report, whose "cases" and "failures" are not looked at; it must outlive *j. n_failures: how many there are. */
void fa_junit_begin(fa_junit *j, FILE *out, const struct cJSON *root, int64_t n_failures);
/* The next case. failure: its item of "failures", and which one that is; NULL: it has none. */
void fa_junit_put_case(fa_junit *j, const struct cJSON *entry, const struct cJSON *failure, int64_t place);
void fa_junit_end(fa_junit *j);

#endif
