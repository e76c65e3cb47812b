#include "report/report_printed.h"

#include "cases/atomic_file.h"

#include <stdlib.h>

fa_status fa_report_write_printed(const cJSON *root, const char *path, void (*put)(FILE *, const cJSON *),
                                  fa_error *err) {
  char *text = NULL;
  size_t n = 0;
  FILE *out = open_memstream(&text, &n);
  if (!out) return fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", path);
  put(out, root);
  if (fclose(out) != 0) {
    free(text);
    return fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", path);
  }
  fa_status status = fa_file_write_atomic(path, text, n, err);
  free(text);
  return status;
}

const char *fa_report_string(const cJSON *object, const char *key) {
  const cJSON *s = cJSON_GetObjectItemCaseSensitive(object, key);
  return cJSON_IsString(s) ? s->valuestring : "";
}

double fa_report_number(const cJSON *object, const char *key) {
  const cJSON *n = cJSON_GetObjectItemCaseSensitive(object, key);
  return cJSON_IsNumber(n) ? n->valuedouble : 0;
}
