#include "report/work/json.h"

#include "cases/codec/count.h"

#include <cjson/cJSON.h>

#include <stdbool.h>
#include <stddef.h>

static const struct {
  const char *key;
  size_t at;
} counts[] = {{"products", offsetof(fa_work, products)},
              {"loaded", offsetof(fa_work, loaded)},
              {"stored", offsetof(fa_work, stored)},
              {"barriers", offsetof(fa_work, barriers)}};
enum { N_COUNTS = sizeof counts / sizeof *counts };

static int64_t *count_of(fa_work *work, int i) {
  return (int64_t *)(void *)((char *)work + counts[i].at);
}

void fa_report_add_work(cJSON *entry, const fa_work *work) {
  fa_work copy = *work;
  bool counted = false;
  for (int i = 0; i < N_COUNTS; ++i) counted |= *count_of(&copy, i) != 0;
  cJSON *o = counted ? cJSON_AddObjectToObject(entry, "work") : NULL;
  for (int i = 0; o && i < N_COUNTS; ++i)
    cJSON_AddNumberToObject(o, counts[i].key, (double)*count_of(&copy, i));
}

void fa_report_read_work(const cJSON *entry, fa_work *out) {
  const cJSON *o = cJSON_GetObjectItemCaseSensitive(entry, "work");
  for (int i = 0; i < N_COUNTS; ++i) *count_of(out, i) = fa_count_at(o, counts[i].key);
}
