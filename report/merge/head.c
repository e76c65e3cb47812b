#include "report/merge/head.h"

#include "report/printed.h"

#include <cjson/cJSON.h>

#include <string.h>

static void add_to(cJSON *o, const char *key, double n) {
  cJSON *old = cJSON_GetObjectItemCaseSensitive(o, key);
  if (n == 0) return;
  if (cJSON_IsNumber(old)) { /* add it in place */
    cJSON_SetNumberValue(old, old->valuedouble + n);
    return;
  }
  cJSON_DeleteItemFromObjectCaseSensitive(o, key);
  cJSON_AddNumberToObject(o, key, n);
}

static void add_numbers(cJSON *to, const cJSON *from) {
  const cJSON *n;
  cJSON_ArrayForEach(n, from) if (cJSON_IsNumber(n)) add_to(to, n->string, n->valuedouble);
}

static void add_summary(cJSON *to, const cJSON *from) {
  static const char *const keys[] = {"total",  "passed", "failed",    "skipped",           "error",
                                     "waived", "known",  "malformed", "backward_left_out", "sampled"};
  for (size_t k = 0; k < sizeof keys / sizeof *keys; ++k)
    add_to(to, keys[k], fa_report_number(from, keys[k]));
  if (fa_report_at(from, "judges")) fa_judged_counts_merge(to, from);
  if (fa_report_at(from, "skip_reasons") == NULL) return;
  cJSON *reasons = cJSON_GetObjectItemCaseSensitive(to, "skip_reasons");
  if (reasons == NULL) reasons = cJSON_AddObjectToObject(to, "skip_reasons");
  add_numbers(reasons, fa_report_at(from, "skip_reasons"));
}

static void add_coverage(cJSON *to, const cJSON *from) {
  const cJSON *part;
  add_numbers(to, from);
  cJSON_ArrayForEach(part, from) {
    cJSON *mine = cJSON_GetObjectItemCaseSensitive(to, part->string);
    if (cJSON_IsObject(part) && cJSON_IsObject(mine)) add_numbers(mine, part);
  }
}

/* True if contract a leaves out more words than b; of as many, the first by its text, so that the order of the reports
 * decides nothing. */
static bool claims_less(const cJSON *a, const cJSON *b) {
  const cJSON *side[2] = {a, b}, *list;
  int left_out[2] = {0, 0};
  for (int s = 0; s < 2; ++s)
    cJSON_ArrayForEach(list, fa_report_at(side[s], "not_claimed")) left_out[s] += cJSON_GetArraySize(list);
  if (left_out[0] != left_out[1]) return left_out[0] > left_out[1];
  char *x = cJSON_PrintUnformatted(a), *y = cJSON_PrintUnformatted(b);
  const bool less = x && y && strcmp(x, y) < 0;
  cJSON_free(x);
  cJSON_free(y);
  return less;
}

static void add_contracts(cJSON *head, const cJSON *from) {
  const cJSON *one;
  cJSON *mine = cJSON_GetObjectItemCaseSensitive(head, "contracts");
  if (!mine && from) mine = cJSON_AddObjectToObject(head, "contracts");
  cJSON_ArrayForEach(one, from) {
    const cJSON *other = fa_report_at(mine, one->string);
    if (other && !claims_less(one, other)) continue;
    cJSON_DeleteItemFromObjectCaseSensitive(mine, one->string);
    cJSON_AddItemToObject(mine, one->string, cJSON_Duplicate(one, 1));
  }
}

/* "sources": what a later report says of a backend that the earlier ones do not have. */
static void add_by_backend(cJSON *head, const char *key, const cJSON *from) {
  const cJSON *one;
  cJSON *mine = cJSON_GetObjectItemCaseSensitive(head, key);
  if (!mine && from) mine = cJSON_AddObjectToObject(head, key);
  cJSON_ArrayForEach(one, from) {
    if (!fa_report_at(mine, one->string)) cJSON_AddItemToObject(mine, one->string, cJSON_Duplicate(one, 1));
  }
}

/* {"causal": {"wanted": 3, "judged": 2}, ...}: a word that only one report has is copied. */
static void add_tried(cJSON *to, const cJSON *from) {
  const cJSON *one;
  cJSON_ArrayForEach(one, from) {
    cJSON *mine = cJSON_GetObjectItemCaseSensitive(to, one->string);
    if (mine)
      add_numbers(mine, one);
    else
      cJSON_AddItemToObject(to, one->string, cJSON_Duplicate(one, 1));
  }
}

/* Merges a skip's reason into the summary's list, whose last item collects other reasons. */
static void take_reason(cJSON *summary, const char *reason) {
  char text[160];
  cJSON *reasons = cJSON_GetObjectItemCaseSensitive(summary, "skip_reasons");
  snprintf(text, sizeof text, "%s", *reason ? reason : "no reason given");
  const char *key = fa_report_at(reasons, text) ? text : "other reasons";
  if (fa_report_at(reasons, key) == NULL) return;
  add_to(reasons, key, -1);
  if (fa_report_number(reasons, key) <= 0) cJSON_DeleteItemFromObjectCaseSensitive(reasons, key);
}

void fa_head_uncount(cJSON *head, const cJSON *entry) {
  cJSON *summary = cJSON_GetObjectItemCaseSensitive(head, "summary");
  const char *name = fa_report_string(entry, "state");
  fa_state state = FA_ERROR;
  fa_state_from_name(name, &state);
  const bool waived = cJSON_IsTrue(fa_report_at(entry, "waived"));
  const char *key = state == FA_PASS              ? "passed"
                    : state == FA_SKIP            ? "skipped"
                    : !fa_state_is_failure(state) ? "error"
                    : waived                      ? "waived"
                                                  : "failed";
  add_to(summary, "total", -1);
  add_to(summary, key, -1);
  if (cJSON_IsTrue(fa_report_at(entry, "known"))) add_to(summary, "known", -1);
  if (state == FA_SKIP) take_reason(summary, fa_report_string(entry, "reason"));
  if (cJSON_IsTrue(fa_report_at(entry, "malformed"))) add_to(summary, "malformed", -1);
  if (cJSON_IsTrue(fa_report_at(entry, "backward_left_out"))) add_to(summary, "backward_left_out", -1);
  if (fa_report_at(entry, "sample")) add_to(summary, "sampled", -1);
  if (fa_report_at(summary, "judges")) fa_judged_uncount(summary, entry);
}

void fa_head_add(cJSON *to, const cJSON *other) {
  cJSON *coverage = cJSON_GetObjectItemCaseSensitive(to, "coverage"),
        *tried = cJSON_GetObjectItemCaseSensitive(to, "tried");
  add_summary(cJSON_GetObjectItemCaseSensitive(to, "summary"), fa_report_at(other, "summary"));
  add_to(to, "seconds", fa_report_number(other, "seconds"));
  add_by_backend(to, "sources", fa_report_at(other, "sources"));
  add_contracts(to, fa_report_at(other, "contracts"));
  if (coverage) add_coverage(coverage, fa_report_at(other, "coverage"));
  if (tried) add_tried(tried, fa_report_at(other, "tried"));
}

bool fa_head_requires_same(const cJSON *a, const cJSON *b) {
  const cJSON *first = fa_report_at(fa_report_at(a, "require"), "wanted"),
              *other = fa_report_at(fa_report_at(b, "require"), "wanted");
  return first && other && cJSON_Compare(first, other, 1);
}
