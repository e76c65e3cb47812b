#include "report/text/mode.h"

#include "report/printed.h"
#include "report/text/line.h"

#include <cjson/cJSON.h>

#include <stdio.h>
#include <string.h>

static void put_option(FILE *out, const char *option, const cJSON *word) {
  if (!cJSON_IsString(word)) return;
  fprintf(out, " --%s ", option);
  fa_print_shell_word(out, word->valuestring);
}

static bool is_drawn(const cJSON *layer) {
  return cJSON_IsString(layer) &&
         (strcmp(layer->valuestring, "seeds") == 0 || strcmp(layer->valuestring, "hidden") == 0);
}

char *fa_mode_text(const cJSON *untrusted) {
  const bool differ = cJSON_GetArraySize(fa_report_at(untrusted, "differ")) > 0;
  const cJSON *memory = fa_report_at(untrusted, "memory_limit_bytes"), *word;
  char *text = NULL;
  size_t n = 0;
  FILE *out = open_memstream(&text, &n);
  if (!out) return NULL;
  fputs("--untrusted", out);
  cJSON_ArrayForEach(word, fa_report_at(fa_report_at(untrusted, "layers"), "left_out")) if (!differ &&
                                                                                            !is_drawn(word))
      put_option(out, "without", word);
  fputs(" --without seeds --without hidden", out);
  cJSON_ArrayForEach(word, fa_report_at(untrusted, "allow")) put_option(out, "allow", word);
  cJSON_ArrayForEach(word, fa_report_at(untrusted, "hide")) put_option(out, "hide", word);
  put_option(out, "arithmetic", fa_report_at(fa_report_at(untrusted, "arithmetic"), "name"));
  if (cJSON_IsNumber(memory)) fprintf(out, " --memory-limit %.0f", memory->valuedouble);
  fclose(out);
  return text;
}
