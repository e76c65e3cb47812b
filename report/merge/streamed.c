#include "report/merge/streamed.h"

#include "report/journal_line.h"
#include "report/kernels.h"
#include "report/merge/head.h"
#include "report/merge/parts.h"
#include "report/merge/same.h"
#include "report/printed.h"
#include "report/require.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

/* ---- lists ---- */

/* Makes room for one more item in a list of at most 2^31. */
static bool make_room(void **v, size_t size, int64_t n, int64_t *capacity) {
  if (n < *capacity) return true;
  const int64_t more = *capacity ? 2 * *capacity : 256;
  void *larger = n < INT32_MAX ? realloc(*v, (size_t)more * size) : NULL;
  if (!larger) return false;
  *v = larger;
  *capacity = more;
  return true;
}

bool fa_spots_add(fa_spots *list, fa_spot at) {
  void *v = list->v;
  const bool good = make_room(&v, sizeof at, list->n, &list->capacity);
  list->v = v;
  if (good) list->v[list->n++] = at;
  return good;
}

bool fa_kept_add(fa_merged *m, fa_kept kept) {
  void *v = m->kept;
  const bool good = make_room(&v, sizeof kept, m->n_kept, &m->kept_capacity);
  m->kept = v;
  if (good) m->kept[m->n_kept++] = kept;
  return good;
}

static fa_status out_of_memory(fa_error *err) {
  return fa_fail(err, FA_ERR_MEMORY, "merge: out of memory");
}

fa_status fa_merge_read(fa_merged *m, fa_view *w, fa_spot at, cJSON **out, fa_error *err) {
  const fa_input *in = &m->input[at.report];
  const char *text;
  const fa_status status = fa_view_get(w, in, at.offset, at.n, &text, err);
  *out = status == FA_OK ? cJSON_ParseWithLength(text, at.n) : NULL;
  return status != FA_OK || *out ? status
                                 : fa_fail(err, FA_ERR_IO, "%s: changed while it was read", in->path);
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

static fa_status show(fa_merged *m, cJSON *entry, const fa_kept *kept, fa_merged_visit *visit, void *ctx,
                      fa_error *err) {
  cJSON *failure = NULL;
  fa_status status = FA_OK;
  if (kept->failure >= 0) status = fa_merge_read(m, &m->there, m->failures.v[kept->failure], &failure, err);
  if (status == FA_OK && m->zero_times) fa_report_zero_times(entry);
  if (status == FA_OK && m->zero_times && failure) fa_report_zero_times(failure);
  if (status == FA_OK) status = visit(ctx, &(fa_merged_case){entry, failure, kept->failure}, err);
  cJSON_Delete(failure);
  return status;
}

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
  return m->visit ? show(m, (cJSON *)s->entry, &kept, m->visit, m->ctx, s->err) : FA_OK;
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

/* ---- reports ---- */

/* Results that are there already were counted by their report. */
static fa_status uncount_dropped(fa_merged *m, fa_error *err) {
  fa_status status = FA_OK;
  for (int64_t i = 0; status == FA_OK && i < m->dropped.n; ++i) {
    cJSON *entry = NULL;
    status = fa_merge_read(m, &m->there, m->dropped.v[i], &entry, err);
    if (status == FA_OK) fa_head_uncount(m->head, entry);
    cJSON_Delete(entry);
  }
  m->n_dropped += m->dropped.n;
  m->dropped.n = 0;
  return status;
}

static fa_status take_report(fa_merged *m, int i, bool *required, fa_error *err) {
  cJSON *head = NULL;
  fa_status status = fa_merge_walk(m, i, &head, err);
  if (status != FA_OK) return status;
  if (i == 0) {
    m->head = head;
    *required = fa_head_requires_same(head, head);
  } else {
    *required = *required && fa_head_requires_same(m->head, head);
    fa_head_add(m->head, head);
    cJSON_Delete(head);
  }
  return uncount_dropped(m, err);
}

static fa_status note_required(void *ctx, const fa_merged_case *c, fa_error *err) {
  return fa_require_note_entry(ctx, c->entry, err);
}

/* Counts what the reports required over all their cases: a shard need not have judged everything itself. */
static fa_status count_required(fa_merged *m, fa_error *err) {
  fa_require r;
  fa_status status = fa_require_from_json(fa_report_at(m->head, "require"), &r, err);
  if (status == FA_OK) status = fa_merged_each(m, note_required, &r, err);
  if (status == FA_OK) fa_require_put(&r, m->head);
  fa_require_free(&r);
  return status;
}

static fa_status finish(fa_merged *m, bool required, fa_error *err) {
  static const char *const of_one_run[] = {"run", "finished", "baseline", "tier"};
  cJSON_DeleteItemFromObjectCaseSensitive(m->head, "kernels");
  cJSON_AddItemToObject(m->head, "kernels", fa_kernel_counts_to_json(&m->kernels));
  if (m->n_dropped) { /* what was counted twice? */
    cJSON_DeleteItemFromObjectCaseSensitive(m->head, "coverage");
    cJSON_DeleteItemFromObjectCaseSensitive(m->head, "tried");
  }
  if (m->n_inputs == 1) return FA_OK;
  for (size_t k = 0; k < sizeof of_one_run / sizeof *of_one_run; ++k)
    cJSON_DeleteItemFromObjectCaseSensitive(m->head, of_one_run[k]);
  const fa_status status = required ? count_required(m, err) : FA_OK;
  if (!required) cJSON_DeleteItemFromObjectCaseSensitive(m->head, "require");
  return status == FA_OK ? fa_report_check("merge", m->head, err) : status;
}

static fa_status open_inputs(fa_merged *m, const fa_merge_source *source, int n, fa_error *err) {
  m->input = calloc((size_t)n, sizeof *m->input);
  m->subject = calloc((size_t)n, sizeof *m->subject);
  if (!m->input || !m->subject) return out_of_memory(err);
  for (m->n_inputs = 0; m->n_inputs < n; ++m->n_inputs) {
    const fa_status status = fa_input_open(&m->input[m->n_inputs], &source[m->n_inputs], err);
    if (status != FA_OK) return status;
  }
  return FA_OK;
}

fa_status fa_merge_open(const fa_merge_source *source, int n, fa_merged_visit *visit, void *ctx,
                        fa_merged **out, fa_error *err) {
  FA_ASSERT(n >= 1);
  fa_merged *m = calloc(1, sizeof *m);
  bool required = false;
  *out = NULL;
  if (!m) return out_of_memory(err);
  m->here = m->there = fa_view_make();
  m->visit = visit;
  m->ctx = ctx;
  fa_status status = open_inputs(m, source, n, err);
  for (int i = 0; status == FA_OK && i < n; ++i) status = take_report(m, i, &required, err);
  if (status == FA_OK) status = finish(m, required, err);
  if (status == FA_OK)
    *out = m;
  else
    fa_merged_free(m);
  return status;
}

void fa_merged_free(fa_merged *m) {
  if (!m) return;
  for (int i = 0; i < m->n_inputs; ++i) {
    fa_input_close(&m->input[i]);
    free(m->subject[i]);
  }
  fa_view_free(&m->here);
  fa_view_free(&m->there);
  cJSON_Delete(m->head);
  free(m->input);
  free(m->subject);
  free(m->kept);
  free(m->failures.v);
  free(m->dropped.v);
  free(m->twins.v);
  free(m->twins.slot);
  free(m);
}

/* ---- what was merged ---- */

cJSON *fa_merged_head(fa_merged *m) {
  return m->head;
}

const fa_kernel_counts *fa_merged_kernels(const fa_merged *m) {
  return &m->kernels;
}

int64_t fa_merged_cases(const fa_merged *m) {
  return m->n_kept;
}

int64_t fa_merged_failures(const fa_merged *m) {
  return m->failures.n;
}

void fa_merged_zero_times(fa_merged *m) {
  m->zero_times = true;
  fa_report_zero_times(m->head);
}

cJSON *fa_merged_failure(fa_merged *m, int64_t place) {
  cJSON *failure = NULL;
  fa_error err = {""};
  if (place < 0 || place >= m->failures.n) return NULL;
  if (fa_merge_read(m, &m->there, m->failures.v[place], &failure, &err) != FA_OK) return NULL;
  if (m->zero_times) fa_report_zero_times(failure);
  return failure;
}

fa_status fa_merged_each(fa_merged *m, fa_merged_visit *visit, void *ctx, fa_error *err) {
  fa_status status = FA_OK;
  for (int64_t i = 0; status == FA_OK && i < m->n_kept; ++i) {
    cJSON *entry = NULL;
    status = fa_merge_read(m, &m->here, m->kept[i].at, &entry, err);
    if (status == FA_OK) status = show(m, entry, &m->kept[i], visit, ctx, err);
    cJSON_Delete(entry);
  }
  return status;
}
