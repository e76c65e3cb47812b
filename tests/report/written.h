/* A report as it is written, read again. */
#ifndef FA_TESTS_REPORT_WRITTEN_H
#define FA_TESTS_REPORT_WRITTEN_H

#include <stdbool.h>

struct cJSON;

/* The text of the page, or of JUnit; the caller frees it. */
char *written(const struct cJSON *root, bool page);

#endif
