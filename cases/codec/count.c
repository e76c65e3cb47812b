#include "cases/codec/count.h"

#include <cjson/cJSON.h>
#include <stdbool.h>

int64_t fa_count_of(const cJSON *number) {
  const bool is_count = cJSON_IsNumber(number) && number->valuedouble >= 0 && number->valuedouble < 9e15;
  return is_count ? (int64_t)number->valuedouble : 0;
}

int64_t fa_count_at(const cJSON *object, const char *key) {
  return fa_count_of(cJSON_GetObjectItemCaseSensitive(object, key));
}
