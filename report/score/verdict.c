/* What came of it, and what is wrong. */
#include "report/printed.h"
#include "report/score/cases.h"

#include <string.h>

static void copy(cJSON *to, const cJSON *from, const char *key) {
  const cJSON *x = fa_report_at(from, key);
  if (x) cJSON_AddItemToObject(to, key, cJSON_Duplicate(x, 1));
}

/* The first of the names are enough to find the group again. */
static cJSON *group_json(const cJSON *group) {
  enum { NAMES = 5 };
  cJSON *o = cJSON_CreateObject(), *names;
  const cJSON *name;
  int n = 0;
  copy(o, group, "title");
  copy(o, group, "hypothesis");
  copy(o, group, "class");
  copy(o, group, "count");
  copy(o, group, "tensors");
  cJSON_AddStringToObject(o, "when", fa_report_string(fa_report_at(group, "predicate"), "text"));
  names = cJSON_AddArrayToObject(o, "names");
  cJSON_ArrayForEach(name, fa_report_at(group, "names")) {
    if (n++ == NAMES) break;
    cJSON_AddItemToArray(names, cJSON_Duplicate(name, 1));
  }
  return o;
}

cJSON *fa_score_verdict_json(const fa_score_cases *c, const cJSON *head) {
  cJSON *o = cJSON_CreateObject(), *states, *groups;
  const cJSON *group;
  int64_t failed = 0;
  for (int s = 0; s < FA_N_STATES; ++s)
    if (fa_state_is_failure((fa_state)s)) failed += c->states[s];
  const bool whole = c->judged && !c->states[FA_ERROR] && fa_score_is_met(head);
  cJSON_AddStringToObject(o, "result", failed ? "failed" : whole ? "passed" : "not judged");
  cJSON_AddNumberToObject(o, "failed", (double)failed);
  cJSON_AddNumberToObject(o, "waived", (double)c->waived);
  states = cJSON_AddObjectToObject(o, "states");
  for (int s = 0; s < FA_N_STATES; ++s)
    if (c->states[s]) cJSON_AddNumberToObject(states, fa_state_name((fa_state)s), (double)c->states[s]);
  groups = cJSON_AddArrayToObject(o, "groups");
  cJSON_ArrayForEach(group, fa_report_at(head, "groups")) cJSON_AddItemToArray(groups, group_json(group));
  return o;
}
