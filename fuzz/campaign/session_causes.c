/* Groups of the failures of a run: noted with each result, printed and added to the report at its end. */
#include "fuzz/campaign/session.h"
#include "report/causes/print.h"

#include <cjson/cJSON.h>

#include <stdlib.h>

const cJSON *fa_report_last_failure(const fa_report *r) {
  const cJSON *first = r->failures->child;
  return first ? first->prev : NULL; /* cJSON keeps the last item there */
}

/* What the report has of the newest result; NULL: it keeps none, or only that it passed. */
static const cJSON *newest_failure(fa_session *s) {
  const cJSON *last = fa_report_last_failure(&s->report);
  const bool is_new = last != s->last_failure;
  s->last_failure = last;
  return is_new ? last : NULL;
}

fa_status fa_session_note_cause(fa_session *s, const fa_result *r, fa_error *err) {
  return fa_causes_note(s->causes, r, newest_failure(s), err);
}

fa_status fa_session_note_cause_again(fa_session *s, const cJSON *entry, fa_error *err) {
  return fa_causes_note_entry(s->causes, entry, newest_failure(s), err);
}

static bool has_several_failures(const cJSON *groups) {
  const cJSON *group;
  double n = 0;
  cJSON_ArrayForEach(group, groups) n += cJSON_GetObjectItemCaseSensitive(group, "count")->valuedouble;
  return n > 1;
}

void fa_report_print_causes(const cJSON *groups, const fa_cli *cli) {
  if (has_several_failures(groups)) fa_causes_print(stdout, groups, cli->verbose);
}

fa_status fa_report_find_causes(fa_report *r, fa_causes *causes, const fa_cli *cli, fa_error *err) {
  cJSON *groups = NULL;
  const fa_status status = fa_causes_conclude(causes, r->failures, cli->report, cli->program, &groups, err);
  if (status != FA_OK) return status;
  fa_report_print_causes(groups, cli);
  cJSON_AddItemToObject(r->root, "groups", groups);
  return FA_OK;
}
