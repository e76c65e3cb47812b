/* Private to report/causes: groups as JSON, with a title, the smallest case and the command that repeats it. */
#ifndef FA_REPORT_CAUSES_DESCRIBED_H
#define FA_REPORT_CAUSES_DESCRIBED_H

#include "report/causes/group.h"

/* As for fa_causes_conclude and fa_causes_conclude_read. */
typedef struct fa_cause_description {
  const struct cJSON *failures;
  const char *path, *program, *mode;
  struct cJSON *(*read)(void *ctx, int64_t place); /* of failures without an entry; NULL: there are none */
  void *ctx;
} fa_cause_description;

/* How much there is to compute in a failure's "shrunk". */
double fa_cause_work_of_shrunk(const struct cJSON *shrunk);

/* NULL: out of memory. */
struct cJSON *fa_cause_describe(const fa_cause_groups *g, const fa_cause_description *about);

#endif
