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

fa_status fa_session_cover(fa_session *s, fa_error *err) {
  if (!s->cli->coverage) return FA_OK;
  fa_coverage *v = calloc(1, sizeof *v);
  if (!v) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  const int64_t n = s->item ? s->n_items : s->next_item;
  fa_status status = FA_OK;
  for (int64_t i = 0; status == FA_OK && i < n; ++i) {
    int64_t index = s->item ? s->item[i].case_index : s->shard.index + i / s->n_choices * s->shard.total;
    const bool again = s->item ? s->item[i].backend != 0 : i % s->n_choices != 0; /* on the next backend */
    if (again || (s->source.laws.n && index % s->source.laws.n != 0)) continue;
    fa_case c;
    status = fa_source_get(&s->source, index, &c, err);
    if (status != FA_OK) break;
    fa_coverage_add(v, &c);
    fa_case_free(&c);
  }
  if (status == FA_OK) {
    fa_coverage_print(stdout, v);
    if (s->report.root) add_to_report(v, s->report.root);
  }
  free(v);
  return status;
}
