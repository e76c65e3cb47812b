#include "report/printed.h"

#include "cases/base/atomic_file.h"

#include <stdlib.h>
#include <string.h>

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

void fa_report_put_markup(FILE *out, const char *text) {
  for (const unsigned char *c = (const unsigned char *)text; *c; ++c) {
    if (strchr("&<>\"'\n\t", *c))
      fprintf(out, "&#%d;", *c);
    else
      fputc(*c < 0x20 || *c == 0x7f ? '?' : *c, out);
  }
}

void fa_print_clean(FILE *out, const char *text) {
  for (const unsigned char *c = (const unsigned char *)text; *c; ++c)
    fputc(*c < 0x20 || *c == 0x7f ? '?' : *c, out);
}

const cJSON *fa_report_at(const cJSON *object, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(object, key);
}

const char *fa_report_string(const cJSON *object, const char *key) {
  const cJSON *s = cJSON_GetObjectItemCaseSensitive(object, key);
  return cJSON_IsString(s) ? s->valuestring : "";
}

double fa_report_number(const cJSON *object, const char *key) {
  const cJSON *n = cJSON_GetObjectItemCaseSensitive(object, key);
  return cJSON_IsNumber(n) ? n->valuedouble : 0;
}

bool fa_report_is_good(const cJSON *entry) {
  const char *state = fa_report_string(entry, "state");
  return strcmp(state, fa_state_name(FA_PASS)) == 0 || strcmp(state, fa_state_name(FA_SKIP)) == 0;
}
