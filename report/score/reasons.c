#include "report/score/reasons.h"

#include <cjson/cJSON.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void fa_score_reasons_add(fa_score_reasons *r, const char *text) {
  char kept[sizeof r->v[0].text];
  snprintf(kept, sizeof kept, "%s", *text ? text : "no reason given");
  for (int i = 0; i < r->n; ++i) {
    if (strcmp(r->v[i].text, kept) != 0) continue;
    r->v[i].count++;
    return;
  }
  if (r->n < FA_SCORE_REASONS) {
    snprintf(r->v[r->n].text, sizeof kept, "%s", r->n == FA_SCORE_REASONS - 1 ? "other reasons" : kept);
    r->v[r->n++].count = 1;
  } else {
    r->v[FA_SCORE_REASONS - 1].count++;
  }
}

/* Places in v, sorted; the comparison needs the list, which qsort does not hand on. */
static bool is_before(const fa_score_reasons *r, int a, int b) {
  if (r->v[a].count != r->v[b].count) return r->v[a].count > r->v[b].count;
  return strcmp(r->v[a].text, r->v[b].text) < 0;
}

cJSON *fa_score_reasons_json(const fa_score_reasons *r, int at_most) {
  cJSON *list = cJSON_CreateArray();
  int order[FA_SCORE_REASONS];
  for (int i = 0; i < r->n; ++i) {
    int at = i;
    for (; at > 0 && is_before(r, i, order[at - 1]); --at) order[at] = order[at - 1];
    order[at] = i;
  }
  for (int i = 0; i < r->n && i < at_most; ++i) {
    cJSON *one = cJSON_CreateObject();
    cJSON_AddStringToObject(one, "text", r->v[order[i]].text);
    cJSON_AddNumberToObject(one, "count", (double)r->v[order[i]].count);
    cJSON_AddItemToArray(list, one);
  }
  return list;
}
