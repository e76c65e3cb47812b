/* --coverage: how often each feature occurred in the cases of a run; printed, and stored in the report. */
#include "fuzz/campaign/session.h"
#include "fuzz/coverage/table.h"

#include <cjson/cJSON.h>

#include <stdlib.h>

static void add_to_report(const fa_coverage *v, cJSON *root) {
  cJSON *o = cJSON_AddObjectToObject(root, "coverage");
  cJSON_AddNumberToObject(o, "cases", (double)v->n_cases);
  for (int kind = 1; kind < FA_COVER_N_KINDS; ++kind) {
    cJSON *part = cJSON_AddObjectToObject(o, fa_bias_kind_name((fa_bias_kind)kind));
    for (int k = 0; k < v->n_rows; ++k)
      if ((int)v->row[k].kind == kind) cJSON_AddNumberToObject(part, v->row[k].name, (double)v->row[k].n);
  }
}

static fa_status cover(fa_session *s, int64_t index, int64_t draw, fa_error *err) {
  fa_case c;
  if (!s->coverage) s->coverage = calloc(1, sizeof *s->coverage);
  if (!s->coverage) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  const fa_status status = fa_source_get(&s->source, index, draw, &c, err);
  if (status != FA_OK) return status;
  fa_coverage_add(s->coverage, &c);
  fa_case_free(&c);
  return FA_OK;
}

static fa_status note_tier(fa_session *s, int64_t index, const fa_result *r, fa_error *err) {
  const bool judged = r->state == FA_PASS || fa_state_is_failure(r->state);
  fa_case c;
  const fa_status status = fa_source_get(&s->source, index, r->draw, &c, err);
  if (status != FA_OK) return status;
  fa_tier_note(s->source.tier, s->source.laws.n ? index / s->source.laws.n : index, &c, judged, r->seconds);
  fa_case_free(&c);
  return FA_OK;
}

void fa_session_say_tier(fa_session *s) {
  if (!s->cli->quiet) fa_tier_print_outcome(stdout, s->source.tier);
  if (s->report.root) cJSON_AddItemToObject(s->report.root, "tier", fa_tier_to_json(s->source.tier));
}

/* The other backends' and the other laws' items have the same cases. */
fa_status fa_session_note(fa_session *s, int64_t number, const fa_result *r, fa_error *err) {
  const fa_item item = fa_session_item(s, number);
  fa_status status = fa_session_keep_draw(s, r->draw, err);
  if (s->report.require) fa_require_note(s->report.require, r);
  if (status == FA_OK) status = fa_session_note_tried(s, item.case_index, r, err);
  const bool again = item.backend != 0 || (s->source.laws.n && item.case_index % s->source.laws.n != 0);
  if (status == FA_OK && s->source.tier && !again) status = note_tier(s, item.case_index, r, err);
  if (status == FA_OK && s->cli->coverage && !again) status = cover(s, item.case_index, r->draw, err);
  return status;
}

void fa_session_cover(fa_session *s) {
  if (!s->coverage) return;
  fa_coverage_print(stdout, s->coverage);
  if (s->report.root) add_to_report(s->coverage, s->report.root);
}
