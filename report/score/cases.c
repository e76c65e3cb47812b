#include "report/score/cases.h"

#include "cases/base/sha256.h"
#include "report/json.h"
#include "report/printed.h"

#include <stdlib.h>
#include <string.h>

void fa_score_cases_init(fa_score_cases *c, const cJSON *contracts) {
  memset(c, 0, sizeof *c);
  c->contracts = contracts;
}

void fa_score_cases_free(fa_score_cases *c) {
  for (int i = 0; i < c->n_maps; ++i) {
    free(c->map[i].ratio);
    free(c->map[i].rms);
    free(c->map[i].by);
  }
  free(c->map);
  free(c->row);
  free(c->record);
  memset(c, 0, sizeof *c);
}

bool fa_score_is_judged(fa_state s) {
  return s == FA_PASS || fa_state_is_failure(s);
}

bool fa_score_word(const char *text, int n, char *word, size_t size) {
  for (text += strspn(text, " "); *text && n > 0; --n) {
    text += strcspn(text, " ");
    text += strspn(text, " ");
  }
  snprintf(word, size, "%.*s", (int)strcspn(text, " "), text);
  return *text != 0;
}

fa_score_kind fa_score_kind_of(const char *word) {
  fa_dtype dtype;
  if (strcmp(word, "backward") == 0) return FA_SCORE_PASS;
  for (int f = 0; f < FA_N_FAMILIES; ++f)
    if (strcmp(word, fa_family_name((fa_family)f)) == 0) return FA_SCORE_FAMILY;
  return fa_dtype_from_name(word, &dtype) ? FA_SCORE_DTYPE : FA_SCORE_FEATURE;
}

static fa_status keep_record(fa_score_cases *c, const cJSON *entry, fa_error *err) {
  if (c->n_records == c->room_records) {
    const int64_t room = c->room_records ? 2 * c->room_records : 256;
    char(*bigger)[20] = realloc(c->record, (size_t)room * sizeof *bigger);
    if (!bigger) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
    c->record = bigger;
    c->room_records = room;
  }
  snprintf(c->record[c->n_records++], sizeof *c->record, "%s", fa_report_string(entry, "record"));
  return FA_OK;
}

static fa_status check_backend(fa_score_cases *c, const cJSON *entry, fa_error *err) {
  const char *name = fa_report_string(entry, "backend");
  if (!c->backend[0]) snprintf(c->backend, sizeof c->backend, "%s", name);
  if (strcmp(c->backend, name) == 0) return FA_OK;
  return fa_fail(err, FA_ERR_INPUT,
                 "--score: the reports are of several kernels, %s and %s; a score is of one", c->backend,
                 name);
}

fa_status fa_score_cases_add(fa_score_cases *c, const cJSON *entry, fa_error *err) {
  fa_result *brief = malloc(sizeof *brief);
  if (!brief) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  fa_result_init(brief);
  if (!fa_state_from_name(fa_report_string(entry, "state"), &brief->state)) brief->state = FA_ERROR;
  fa_report_read_judged(entry, brief);
  snprintf(brief->reason, sizeof brief->reason, "%s", fa_report_string(entry, "reason"));
  const bool vacuous = fa_result_proves_nothing(brief);
  c->total++;
  c->vacuous += vacuous;
  c->states[brief->state]++;
  c->judged += fa_score_is_judged(brief->state);
  c->sampled += fa_score_is_judged(brief->state) && fa_report_at(entry, "sample");
  c->waived += cJSON_IsTrue(fa_report_at(entry, "waived"));
  fa_status status = check_backend(c, entry, err);
  if (status == FA_OK) status = keep_record(c, entry, err);
  if (status == FA_OK && !vacuous) status = fa_score_cover(c, entry, brief, err);
  if (status == FA_OK && !vacuous) status = fa_score_map_errors(c, entry, brief->features, err);
  fa_result_free(brief);
  free(brief);
  return status;
}

static int compare_records(const void *a, const void *b) {
  return strcmp(a, b);
}

void fa_score_cases_identity(fa_score_cases *c, char hex[65]) {
  fa_sha256 s;
  fa_sha256_init(&s);
  if (c->n_records) qsort(c->record, (size_t)c->n_records, sizeof *c->record, compare_records);
  for (int64_t i = 0; i < c->n_records; ++i) fa_sha256_add(&s, c->record[i], strlen(c->record[i]) + 1);
  fa_sha256_hex(&s, hex);
}
