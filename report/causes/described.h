/* Private to report/causes: groups as JSON, with a title, the smallest case and the command that repeats it. */
#ifndef FA_REPORT_CAUSES_DESCRIBED_H
#define FA_REPORT_CAUSES_DESCRIBED_H

#include "report/causes/group.h"

/* As for fa_causes_conclude. */
typedef struct fa_cause_description {
  const struct cJSON *failures;
  const char *path, *program;
} fa_cause_description;

/* NULL: out of memory. */
struct cJSON *fa_cause_describe(const fa_cause_groups *g, const fa_cause_description *about);

#endif
