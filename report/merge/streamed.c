#include "report/merge/streamed.h"

#include "report/journal_line.h"
#include "report/kernels.h"
#include "report/merge/head.h"
#include "report/merge/parts.h"
#include "report/printed.h"
#include "report/require.h"
#include "report/untrusted/parts.h"

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

fa_status fa_merge_show(fa_merged *m, cJSON *entry, const fa_kept *kept, fa_merged_visit *visit, void *ctx,
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
  const bool gathered = fa_untrusted_gather(m->rules, head, m->input[i].path);
  if (i == 0) {
    m->head = head;
    *required = fa_head_requires_same(head, head);
  } else {
    *required = *required && fa_head_requires_same(m->head, head);
    fa_head_add(m->head, head);
    cJSON_Delete(head);
  }
  return gathered ? uncount_dropped(m, err) : out_of_memory(err);
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
  fa_untrusted_join(m->head, m->rules, m->n_dropped == 0);
  m->rules = NULL;
  const fa_status status = required ? count_required(m, err) : FA_OK;
  if (!required) cJSON_DeleteItemFromObjectCaseSensitive(m->head, "require");
  return status == FA_OK ? fa_report_check("merge", m->head, err) : status;
}

static fa_status open_inputs(fa_merged *m, const fa_merge_source *source, int n, fa_error *err) {
  m->input = calloc((size_t)n, sizeof *m->input);
  m->subject = calloc((size_t)n, sizeof *m->subject);
  m->rules = cJSON_CreateArray();
  if (!m->input || !m->subject || !m->rules) return out_of_memory(err);
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
  cJSON_Delete(m->rules);
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
    if (status == FA_OK) status = fa_merge_show(m, entry, &m->kept[i], visit, ctx, err);
    cJSON_Delete(entry);
  }
  return status;
}
