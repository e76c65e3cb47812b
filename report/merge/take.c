/* An entry among those that are kept: twins that say the same are dropped, others contradict each other. */
#include "report/kernels.h"
#include "report/merge/parts.h"
#include "report/merge/same.h"
#include "report/printed.h"

#include <cjson/cJSON.h>

#include <string.h>

static fa_status out_of_memory(fa_error *err) {
  return fa_fail(err, FA_ERR_MEMORY, "merge: out of memory");
}

/* ---- entries of the same case ---- */

/* An entry that is looked for among those that are kept. */
typedef struct search {
  fa_merged *m;
  const cJSON *entry;
  fa_spot at;
  const fa_spot *failure;
  fa_status status;
  fa_error *err;
} search;

static bool is_twin(void *ctx, const fa_twin *twin) {
  search *s = ctx;
  const fa_spot at = s->m->kept[twin->first].at;
  cJSON *other = NULL;
  if (strcmp(s->m->subject[at.report], s->m->subject[s->at.report]) != 0) return false;
  if (s->status == FA_OK) s->status = fa_merge_read(s->m, &s->m->there, at, &other, s->err);
  const bool same = other && fa_same_case(other, s->entry);
  cJSON_Delete(other);
  return same;
}

static bool has_same_failure(search *s, const fa_kept *a) {
  cJSON *x = NULL, *y = NULL;
  if (a->failure < 0 || !s->failure) return a->failure < 0 && !s->failure;
  s->status = fa_merge_read(s->m, &s->m->there, s->m->failures.v[a->failure], &x, s->err);
  if (s->status == FA_OK) s->status = fa_merge_read(s->m, &s->m->there, *s->failure, &y, s->err);
  const bool same = s->status == FA_OK && fa_same_result(x, y);
  cJSON_Delete(x);
  cJSON_Delete(y);
  return same;
}

typedef enum likeness { UNRELATED, EQUAL, DIFFERENT } likeness;

static likeness compare(search *s, const fa_kept *a, int32_t occurrence) {
  cJSON *other = NULL;
  if (a->occurrence != occurrence || a->at.report == s->at.report) return UNRELATED;
  s->status = fa_merge_read(s->m, &s->m->there, a->at, &other, s->err);
  likeness like = UNRELATED;
  if (s->status == FA_OK && !fa_of_other_kernels(other, s->entry))
    like = fa_same_result(other, s->entry) && has_same_failure(s, a) ? EQUAL : DIFFERENT;
  cJSON_Delete(other);
  return like;
}

/* ---- contradictions ---- */

static void add_side(const fa_merged *m, cJSON *to, const cJSON *entry, int report) {
  cJSON *side = cJSON_CreateObject();
  cJSON_AddStringToObject(side, "report", m->input[report].path);
  cJSON_AddStringToObject(side, "state", fa_report_string(entry, "state"));
  cJSON_AddItemToObject(side, "worst_ratio", cJSON_Duplicate(fa_report_at(entry, "worst_ratio"), 1));
  cJSON_AddItemToArray(to, side);
}

static fa_status add_contradiction(search *s, const fa_kept *a) {
  fa_merged *m = s->m;
  cJSON *other = NULL;
  const fa_status status = fa_merge_read(m, &m->there, a->at, &other, s->err);
  if (status != FA_OK) return status;
  if (!m->contradictions) m->contradictions = cJSON_GetObjectItemCaseSensitive(m->head, "contradictions");
  if (!m->contradictions) m->contradictions = cJSON_AddArrayToObject(m->head, "contradictions");
  cJSON *o = cJSON_CreateObject();
  cJSON_AddStringToObject(o, "name", fa_report_string(s->entry, "name"));
  cJSON_AddStringToObject(o, "backend", fa_report_string(s->entry, "backend"));
  cJSON *sides = cJSON_AddArrayToObject(o, "results");
  add_side(m, sides, other, a->at.report);
  add_side(m, sides, s->entry, s->at.report);
  cJSON_Delete(other);
  if (cJSON_AddItemToArray(m->contradictions, o)) return FA_OK;
  cJSON_Delete(o);
  return out_of_memory(s->err);
}

/* ---- taking entries ---- */

static fa_status keep(search *s, fa_twin *twin, int32_t occurrence) {
  fa_merged *m = s->m;
  fa_kept kept = {.at = s->at, .failure = -1, .occurrence = occurrence, .next = twin ? twin->first : -1};
  if (s->failure) {
    kept.failure = (int32_t)m->failures.n;
    if (!fa_spots_add(&m->failures, *s->failure)) return out_of_memory(s->err);
  }
  if (twin) twin->first = (int32_t)m->n_kept;
  if (!fa_kept_add(m, kept)) return out_of_memory(s->err);
  fa_kernel_counts_add_entry(&m->kernels, s->entry);
  return m->visit ? fa_merge_show(m, (cJSON *)s->entry, &kept, m->visit, m->ctx, s->err) : FA_OK;
}

/* Among the entries of the same case: drops the new one if it says nothing new. */
static fa_status take_twin(search *s, fa_twin *twin) {
  fa_merged *m = s->m;
  if (twin->report != s->at.report) twin->count = 0;
  twin->report = s->at.report;
  const int32_t occurrence = twin->count++;
  int32_t against = -1;
  for (int32_t k = twin->first; k >= 0; k = m->kept[k].next) {
    const likeness like = compare(s, &m->kept[k], occurrence);
    if (s->status != FA_OK) return s->status;
    if (like == EQUAL) return fa_spots_add(&m->dropped, s->at) ? FA_OK : out_of_memory(s->err);
    if (like == DIFFERENT) against = k;
  }
  const fa_status status = against >= 0 ? add_contradiction(s, &m->kept[against]) : FA_OK;
  return status == FA_OK ? keep(s, twin, occurrence) : status;
}

fa_status fa_merge_take(fa_merged *m, const cJSON *entry, fa_spot at, const fa_spot *failure, fa_error *err) {
  search s = {m, entry, at, failure, FA_OK, err};
  const char *record = fa_report_string(entry, "record");
  if (!*record) return keep(&s, NULL, 0); /* the case is unknown */
  const uint64_t hash = fa_twin_hash(record, fa_report_string(entry, "name"),
                                     fa_report_string(entry, "backend"), m->subject[at.report]);
  fa_twin *twin = fa_twins_find(&m->twins, hash, is_twin, &s);
  if (s.status != FA_OK) return s.status;
  if (!twin) twin = fa_twins_add(&m->twins, hash);
  return twin ? take_twin(&s, twin) : out_of_memory(err);
}
