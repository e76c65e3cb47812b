/* Reads a report from its first byte to its last, a value at a time, each by cJSON. */
#include "report/merge/parts.h"

#include "report/printed.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

typedef struct walk {
  fa_merged *m;
  fa_view *window;
  const fa_input *in;
  int report;
  int64_t at;
  cJSON *head;
  bool seen_backend, seen_failures, seen_cases;
  int64_t cases_at; /* to be read when the head is known; -1: they were read */
  fa_spots failures;
  int64_t n_used; /* failures that belong to cases already read */
  fa_status *status;
  fa_error *err;
} walk;

/* ---- text ---- */

/* False: an error of reading or memory, which stands in the walk. A malformed report is false without one. */
static bool fails(walk *w, fa_status status) {
  if (status != FA_OK) *w->status = status;
  return status != FA_OK;
}

/* The next byte that is no white space, which cJSON takes to be all up to the space; 0 at the end. */
static char peek(walk *w) {
  const char *text;
  for (; w->at < w->in->n; ++w->at) {
    if (fails(w, fa_view_get(w->window, w->in, w->at, 1, &text, w->err))) return 0;
    if ((unsigned char)*text > 32) return *text;
  }
  return 0;
}

static bool take(walk *w, char c) {
  if (peek(w) != c) return false;
  ++w->at;
  return true;
}

/* The value that begins here; NULL: there is none. What is in memory may end in the middle of it: then more is read. */
static cJSON *value(walk *w, fa_spot *at) {
  const char *text, *end;
  if (!peek(w)) return NULL;
  const int64_t left = w->in->n - w->at;
  for (int64_t want = 1;;) {
    if (fails(w, fa_view_get(w->window, w->in, w->at, want, &text, w->err))) return NULL;
    const int64_t has = fa_view_has(w->window, w->at);
    cJSON *v = cJSON_ParseWithLengthOpts(text, (size_t)has, &end, 0);
    const bool whole = has >= left || (v && end < text + has); /* "1" may be the first digit of 12 */
    if (v && whole && end - text <= (ptrdiff_t)UINT32_MAX) {
      *at = (fa_spot){w->at, (uint32_t)(end - text), w->report};
      w->at += end - text;
      return v;
    }
    cJSON_Delete(v);
    if (whole) return NULL;
    want = 2 * has < left ? 2 * has : left;
  }
}

/* ---- cases and failures ---- */

static bool has_state(const cJSON *entry, bool *good) {
  fa_state state;
  if (!cJSON_IsObject(entry) || !fa_state_from_name(fa_report_string(entry, "state"), &state)) return false;
  *good = state == FA_PASS || state == FA_SKIP;
  return true;
}

static bool take_failure(walk *w, const cJSON *failure, fa_spot at) {
  bool good;
  if (!has_state(failure, &good) || !cJSON_IsObject(fa_report_at(failure, "case"))) return false;
  return !fails(w, fa_spots_add(&w->failures, at) ? FA_OK
                                                  : fa_fail(w->err, FA_ERR_MEMORY, "merge: out of memory"));
}

/* Failures are in the order of their cases. */
static bool take_case(walk *w, const cJSON *entry, fa_spot at) {
  bool good;
  if (!has_state(entry, &good)) return false;
  const bool has_failure = !good && w->n_used < w->failures.n;
  const fa_spot *failure = has_failure ? &w->failures.v[w->n_used++] : NULL;
  return !fails(w, fa_merge_take(w->m, entry, at, failure, w->err));
}

static bool pass_over(walk *w, const cJSON *entry, fa_spot at) {
  (void)w, (void)entry, (void)at;
  return true;
}

static bool each_item(walk *w, bool (*use)(walk *, const cJSON *, fa_spot)) {
  if (!take(w, '[')) return false;
  if (take(w, ']')) return true;
  do {
    fa_spot at;
    cJSON *item = value(w, &at);
    const bool good = item && use(w, item, at);
    cJSON_Delete(item);
    if (!good) return false;
  } while (take(w, ','));
  return take(w, ']');
}

/* ---- the report ---- */

/* Which case an entry is of depends on the report's device, and its failure must be known. */
static bool read_cases(walk *w) {
  if (w->seen_cases) return each_item(w, pass_over);
  w->seen_cases = true;
  if (w->seen_backend && w->seen_failures) return each_item(w, take_case);
  w->cases_at = w->at;
  return each_item(w, pass_over);
}

static bool read_failures(walk *w) {
  if (w->seen_failures) return each_item(w, pass_over);
  w->seen_failures = true;
  return each_item(w, take_failure);
}

static bool know_subject(walk *w) {
  const cJSON *backend = fa_report_at(w->head, "backend");
  char **subject = &w->m->subject[w->report];
  if (*subject) return true;
  w->seen_backend = true;
  if (asprintf(subject, "%s\n%s", fa_report_string(backend, "device"), fa_report_string(backend, "driver")) <
      0)
    *subject = NULL;
  return *subject || !fails(w, fa_fail(w->err, FA_ERR_MEMORY, "merge: out of memory"));
}

static bool read_member(walk *w) {
  fa_spot at;
  cJSON *key = value(w, &at), *item = NULL;
  bool good = cJSON_IsString(key) && take(w, ':');
  const bool list = good && peek(w) == '[';
  if (list && strcmp(key->valuestring, "cases") == 0)
    good = read_cases(w) && (item = cJSON_CreateArray());
  else if (list && strcmp(key->valuestring, "failures") == 0)
    good = read_failures(w) && (item = cJSON_CreateArray());
  else if (good)
    good = (item = value(w, &at)) != NULL;
  if (good) cJSON_AddItemToObject(w->head, key->valuestring, item);
  if (good && strcmp(key->valuestring, "backend") == 0) good = know_subject(w);
  cJSON_Delete(key);
  return good;
}

static bool read_report(walk *w) {
  if (!take(w, '{')) return false;
  bool more = !take(w, '}');
  while (more) {
    if (!read_member(w)) return false;
    more = take(w, ',');
    if (!more && !take(w, '}')) return false;
  }
  if (peek(w) || *w->status != FA_OK || !know_subject(w)) return false;
  if (w->cases_at < 0) return true;
  w->at = w->cases_at;
  return each_item(w, take_case);
}

/* Failures that no case is for are kept too. */
static bool keep_others(walk *w) {
  for (; w->n_used < w->failures.n; ++w->n_used)
    if (!fa_spots_add(&w->m->failures, w->failures.v[w->n_used]))
      return !fails(w, fa_fail(w->err, FA_ERR_MEMORY, "merge: out of memory"));
  return true;
}

/* What is wrong is said by the function that reads reports whole. */
static fa_status explain(const fa_input *in, fa_error *err) {
  cJSON *root = NULL;
  const fa_status status = in->text ? fa_report_parse(in->text, (size_t)in->n, in->path, &root, err)
                                    : fa_report_load(in->path, &root, err);
  cJSON_Delete(root);
  return status != FA_OK ? status : fa_fail(err, FA_ERR_INPUT, "%s: no valid JSON", in->path);
}

fa_status fa_merge_walk(fa_merged *m, int report, cJSON **head, fa_error *err) {
  fa_status status = FA_OK;
  walk w = {.m = m,
            .window = &m->here,
            .in = &m->input[report],
            .report = report,
            .head = cJSON_CreateObject(),
            .cases_at = -1,
            .status = &status,
            .err = err};
  const bool good =
      w.head && read_report(&w) && fa_report_check(w.in->path, w.head, err) == FA_OK && keep_others(&w);
  free(w.failures.v);
  if (good) {
    *head = w.head;
    return FA_OK;
  }
  cJSON_Delete(w.head);
  return status != FA_OK ? status : explain(w.in, err);
}
