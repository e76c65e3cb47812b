#include "report/sampling/record.h"

#include "cases/base/figures.h"
#include "cases/codec/count.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

static void put_share(fa_text *t, int64_t n, int64_t odd, int64_t of, const char *what) {
  char judged[FA_COUNT_TEXT], all[FA_COUNT_TEXT];
  fa_text_put(t, "%s of %s %s", fa_count_text(n, judged), fa_count_text(of, all), what);
  if (odd) fa_text_put(t, " (and %s that hold NaN or infinity)", fa_count_text(odd, judged));
}

void fa_sampled_text(const fa_sampled *s, char out[FA_SAMPLED_TEXT]) {
  fa_text t = {out, FA_SAMPLED_TEXT};
  out[0] = 0;
  if (!fa_sample_is_asked(&s->asked)) return;
  fa_text_put(&t, "sampled: ");
  put_share(&t, s->rows, s->odd_rows, s->of_rows, "rows");
  if (s->of_strips) fa_text_put(&t, " and ");
  if (s->of_strips) put_share(&t, s->strips, s->odd_strips, s->of_strips, "strips of keys");
  fa_text_put(&t, "; a fault in at least ");
  if (s->rows) fa_text_put(&t, "%.2g %% of the rows", 100 * fa_sample_found(s->rows));
  if (s->rows && s->strips) fa_text_put(&t, " or ");
  if (s->strips) fa_text_put(&t, "%.2g %% of the strips", 100 * fa_sample_found(s->strips));
  if (!s->rows && !s->strips) fa_text_put(&t, "100 %%");
  fa_text_put(&t, " is found with 95 %%");
}

static void add_count(cJSON *o, const char *key, int64_t n) {
  cJSON_AddNumberToObject(o, key, (double)n);
}

static void add_found(cJSON *o, const char *key, int64_t n) {
  char number[40];
  snprintf(number, sizeof number, "%.3g", fa_sample_found(n));
  if (n) cJSON_AddRawToObject(o, key, number);
}

void fa_sampled_add(cJSON *entry, const fa_sampled *s) {
  char asked[FA_SAMPLE_TEXT];
  if (!fa_sample_is_asked(&s->asked)) return;
  cJSON *o = cJSON_AddObjectToObject(entry, "sample");
  fa_sample_text(&s->asked, asked);
  cJSON_AddStringToObject(o, "asked", asked);
  add_count(o, "rows", s->rows);
  add_count(o, "of_rows", s->of_rows);
  add_count(o, "strips", s->strips);
  add_count(o, "of_strips", s->of_strips);
  if (s->odd_rows) add_count(o, "odd_rows", s->odd_rows);
  if (s->odd_strips) add_count(o, "odd_strips", s->odd_strips);
  add_found(o, "rows_found", s->rows);
  add_found(o, "strips_found", s->strips);
}

void fa_sampled_entry_text(const cJSON *entry, char text[FA_SAMPLED_TEXT]) {
  const cJSON *o = cJSON_GetObjectItemCaseSensitive(entry, "sample");
  fa_sampled s = {.rows = fa_count_at(o, "rows"),
                  .strips = fa_count_at(o, "strips"),
                  .of_rows = fa_count_at(o, "of_rows"),
                  .of_strips = fa_count_at(o, "of_strips"),
                  .odd_rows = fa_count_at(o, "odd_rows"),
                  .odd_strips = fa_count_at(o, "odd_strips")};
  if (fa_sampled_read(entry, &s.asked, NULL) != FA_OK) s.asked = (fa_sample){0};
  fa_sampled_text(&s, text);
}

fa_status fa_sampled_read(const cJSON *entry, fa_sample *asked, fa_error *err) {
  const cJSON *o = cJSON_GetObjectItemCaseSensitive(entry, "sample"),
              *words = cJSON_GetObjectItemCaseSensitive(o, "asked");
  *asked = (fa_sample){0};
  if (!o) return FA_OK;
  if (!cJSON_IsString(words)) return fa_fail(err, FA_ERR_INPUT, "$.sample.asked: a string is needed");
  const fa_status status = fa_sample_parse(words->valuestring, asked, err);
  if (status != FA_OK) fa_error_prefix(err, "$.sample.asked");
  return status;
}
