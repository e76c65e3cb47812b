#include "report/judges/record.h"

#include "cases/base/figures.h"
#include "cases/codec/count.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void count_left(fa_judged_counts *c, const char *why, int64_t n) {
  int i = 0;
  while (i < c->n && strcmp(c->left[i].text, why) != 0) ++i;
  if (i == FA_LEFT_REASONS) i = FA_LEFT_REASONS - 1;
  if (i == c->n) {
    const char *text = i == FA_LEFT_REASONS - 1 ? "other reasons" : why;
    snprintf(c->left[c->n++].text, FA_LEFT_TEXT, "%s", text);
  }
  c->left[i].n += n;
}

void fa_judged_count(fa_judged_counts *c, const fa_judged_how *one) {
  c->gpu += one->by == FA_JUDGED_BY_GPU;
  c->both += one->by == FA_JUDGED_BY_BOTH;
  c->apart = fmax(c->apart, one->apart);
  c->made_gpu += one->made == FA_MADE_BY_GPU;
  c->made_failed += one->made == FA_MADE_AFTER_GPU;
  if (one->by != FA_JUDGED_BY_CPU || !one->left[0]) return;
  c->cpu += 1;
  count_left(c, one->left, 1);
}

static bool is_asked(const fa_judged_counts *c) {
  return c->gpu + c->both + c->cpu + c->made_gpu + c->made_failed > 0;
}

void fa_judged_text(const fa_judged_counts *c, char out[FA_JUDGED_TEXT]) {
  fa_text t = {out, FA_JUDGED_TEXT};
  char number[FA_COUNT_TEXT];
  out[0] = 0;
  if (!is_asked(c)) return;
  fa_text_put(&t, "judged on the GPU: %s", fa_count_text(c->gpu, number));
  if (c->both)
    fa_text_put(&t, ", by both: %s, whose ratios are %.2g apart at most", fa_count_text(c->both, number),
                c->apart);
  if (c->cpu) fa_text_put(&t, ", left to the CPU: %s (", fa_count_text(c->cpu, number));
  for (int i = 0; i < c->n; ++i)
    fa_text_put(&t, "%s%s %s", i ? ", " : "", fa_count_text(c->left[i].n, number), c->left[i].text);
  if (c->cpu) fa_text_put(&t, ")");
  if (c->made_gpu + c->made_failed) fa_text_put(&t, "; its data: %s", fa_count_text(c->made_gpu, number));
  if (c->made_failed) fa_text_put(&t, ", failed at: %s", fa_count_text(c->made_failed, number));
}

void fa_judged_add(cJSON *entry, const fa_judged_how *one) {
  if (one->by != FA_JUDGED_BY_CPU)
    cJSON_AddStringToObject(entry, "judge", one->by == FA_JUDGED_BY_GPU ? "gpu" : "both");
  if (one->by == FA_JUDGED_BY_BOTH) cJSON_AddNumberToObject(entry, "ratios_apart", one->apart);
  if (one->by == FA_JUDGED_BY_CPU && one->left[0]) cJSON_AddStringToObject(entry, "left_to_cpu", one->left);
  if (one->made != FA_MADE_BY_CPU)
    cJSON_AddStringToObject(entry, "data", one->made == FA_MADE_BY_GPU ? "gpu" : "gpu failed");
}

static const char *word_at(const cJSON *entry, const char *key) {
  const cJSON *s = cJSON_GetObjectItemCaseSensitive(entry, key);
  return cJSON_IsString(s) ? s->valuestring : "";
}

static double double_at(const cJSON *o, const char *key) {
  const cJSON *n = cJSON_GetObjectItemCaseSensitive(o, key);
  return cJSON_IsNumber(n) ? n->valuedouble : 0;
}

fa_judged_how fa_judged_read(const cJSON *entry) {
  const char *judge = word_at(entry, "judge"), *data = word_at(entry, "data");
  fa_judged_how how = {.by = strcmp(judge, "gpu") == 0    ? FA_JUDGED_BY_GPU
                             : strcmp(judge, "both") == 0 ? FA_JUDGED_BY_BOTH
                                                          : FA_JUDGED_BY_CPU,
                       .made = strcmp(data, "gpu") == 0          ? FA_MADE_BY_GPU
                               : strcmp(data, "gpu failed") == 0 ? FA_MADE_AFTER_GPU
                                                                 : FA_MADE_BY_CPU,
                       .apart = double_at(entry, "ratios_apart")};
  snprintf(how.left, sizeof how.left, "%s", word_at(entry, "left_to_cpu"));
  return how;
}

void fa_judged_counts_add(cJSON *summary, const fa_judged_counts *c) {
  cJSON_DeleteItemFromObjectCaseSensitive(summary, "judges");
  if (!is_asked(c)) return;
  cJSON *judges = cJSON_AddObjectToObject(summary, "judges");
  cJSON_AddNumberToObject(judges, "gpu", (double)c->gpu);
  cJSON_AddNumberToObject(judges, "both", (double)c->both);
  if (c->both) cJSON_AddNumberToObject(judges, "ratios_apart", c->apart);
  cJSON *left = cJSON_AddObjectToObject(judges, "left_to_cpu");
  for (int i = 0; i < c->n; ++i)
    if (c->left[i].n > 0) cJSON_AddNumberToObject(left, c->left[i].text, (double)c->left[i].n);
  if (c->made_gpu + c->made_failed == 0) return;
  cJSON *data = cJSON_AddObjectToObject(judges, "data");
  cJSON_AddNumberToObject(data, "gpu", (double)c->made_gpu);
  cJSON_AddNumberToObject(data, "failed", (double)c->made_failed);
}

/* Adds to what c has. */
static void read_counts(const cJSON *summary, fa_judged_counts *c) {
  const cJSON *judges = cJSON_GetObjectItemCaseSensitive(summary, "judges"), *one;
  const cJSON *data = cJSON_GetObjectItemCaseSensitive(judges, "data");
  c->gpu += fa_count_at(judges, "gpu");
  c->both += fa_count_at(judges, "both");
  c->apart = fmax(c->apart, double_at(judges, "ratios_apart"));
  c->made_gpu += fa_count_at(data, "gpu");
  c->made_failed += fa_count_at(data, "failed");
  cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(judges, "left_to_cpu")) {
    if (!cJSON_IsNumber(one) || !one->string) continue;
    c->cpu += fa_count_of(one);
    count_left(c, one->string, fa_count_of(one));
  }
}

void fa_judged_counts_read(const cJSON *summary, fa_judged_counts *c) {
  memset(c, 0, sizeof *c);
  read_counts(summary, c);
}

void fa_judged_counts_merge(cJSON *summary, const cJSON *other) {
  fa_judged_counts c = {0};
  read_counts(summary, &c);
  read_counts(other, &c);
  fa_judged_counts_add(summary, &c);
}

void fa_judged_uncount(cJSON *summary, const cJSON *entry) {
  const fa_judged_how how = fa_judged_read(entry);
  fa_judged_counts c = {0};
  read_counts(summary, &c);
  c.gpu -= how.by == FA_JUDGED_BY_GPU;
  c.both -= how.by == FA_JUDGED_BY_BOTH;
  c.made_gpu -= how.made == FA_MADE_BY_GPU;
  c.made_failed -= how.made == FA_MADE_AFTER_GPU;
  for (int i = 0; how.left[0] && i < c.n; ++i) {
    const bool same = strcmp(c.left[i].text, how.left) == 0;
    c.left[i].n -= same;
    c.cpu -= same;
  }
  fa_judged_counts_add(summary, &c);
}
