/* What kernels did, in reports and journals: "work": {"products": 4096, "loaded": 768, "stored": 320, "barriers": 0}. */
#ifndef FA_REPORT_WORK_JSON_H
#define FA_REPORT_WORK_JSON_H

#include "cases/vocabulary/work.h"

struct cJSON;

/* Adds "work" to an entry of "cases", or nothing if nobody counted. */
void fa_report_add_work(struct cJSON *entry, const fa_work *work);
/* All 0 if the entry has none. */
void fa_report_read_work(const struct cJSON *entry, fa_work *out);

#endif
