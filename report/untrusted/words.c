#include "report/untrusted/words.h"

#include <cjson/cJSON.h>

#include <stdio.h>
#include <string.h>

bool fa_json_words_have(const cJSON *list, const char *word) {
  const cJSON *x;
  cJSON_ArrayForEach(x, list) if (cJSON_IsString(x) && strcmp(x->valuestring, word) == 0) return true;
  return false;
}

void fa_json_words_add(cJSON *list, const char *word) {
  if (!fa_json_words_have(list, word)) cJSON_AddItemToArray(list, cJSON_CreateString(word));
}

void fa_json_words_join(const cJSON *list, const char *separator, char *out, size_t size) {
  const cJSON *x;
  size_t used = 0;
  out[0] = 0;
  cJSON_ArrayForEach(x, list) if (cJSON_IsString(x) && used < size) used +=
      (size_t)snprintf(out + used, size - used, "%s%s", used ? separator : "", x->valuestring);
}
