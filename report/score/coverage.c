/* Of everything that the selected cases have: how many were judged, and why the others were not. */
#include "cases/tensors/table.h"
#include "report/printed.h"
#include "report/require.h"
#include "report/score/cases.h"

#include <stdlib.h>
#include <string.h>

const char *const fa_score_kinds[FA_SCORE_KINDS] = {[FA_SCORE_FAMILY] = "families",
                                                    [FA_SCORE_DTYPE] = "dtypes",
                                                    [FA_SCORE_FEATURE] = "features",
                                                    [FA_SCORE_PASS] = "passes",
                                                    [FA_SCORE_OUTPUT] = "outputs"};

/* ---- counting ---- */

static fa_score_row *row_of(fa_score_cases *c, fa_score_kind kind, const char *name) {
  for (int i = 0; i < c->n_rows; ++i)
    if (c->row[i].kind == kind && strcmp(c->row[i].name, name) == 0) return &c->row[i];
  fa_score_row *bigger = realloc(c->row, (size_t)(c->n_rows + 1) * sizeof *bigger);
  if (!bigger) return NULL;
  c->row = bigger;
  fa_score_row *row = &c->row[c->n_rows++];
  memset(row, 0, sizeof *row);
  row->kind = kind;
  snprintf(row->name, sizeof row->name, "%s", name);
  return row;
}

static bool has_string(const cJSON *list, const char *text) {
  const cJSON *x;
  cJSON_ArrayForEach(x, list) if (cJSON_IsString(x) && strcmp(x->valuestring, text) == 0) return true;
  return false;
}

/* "exec: head_dim 96 is more than 64": a declared limit is part of the contract. */
static bool names_a_limit(const cJSON *claims, const char *reason) {
  const char *text = strstr(reason, ": ");
  const cJSON *limit;
  text = text ? text + 2 : reason;
  cJSON_ArrayForEach(limit, fa_report_at(claims, "limits")) {
    const size_t n = strlen(limit->string);
    if (strncmp(text, limit->string, n) == 0 && text[n] == ' ') return true;
  }
  return false;
}

/* A skip of a case that has nothing which the contract leaves out; of an untrusted kernel that is a failure, and says so. */
#define REFUSED "refused inside its contract"
static bool is_refusal(const fa_score_cases *c, const cJSON *entry, const fa_result *r) {
  const cJSON *contract = fa_report_at(c->contracts, fa_report_string(entry, "backend"));
  const cJSON *rest = fa_report_at(contract, "not_claimed");
  char word[48];
  if (strncmp(fa_report_string(entry, "reason"), REFUSED, sizeof REFUSED - 1) == 0) return true;
  if (r->state != FA_SKIP || !contract) return false;
  for (int i = 0; fa_score_word(r->features, i, word, sizeof word); ++i) {
    const fa_score_kind kind = fa_score_kind_of(word);
    if (kind != FA_SCORE_PASS && has_string(fa_report_at(rest, fa_score_kinds[kind]), word)) return false;
  }
  return !names_a_limit(fa_report_at(contract, "claims"), fa_report_string(entry, "reason"));
}

typedef struct counted {
  fa_score_cases *c;
  const cJSON *entry;
  bool refused;
} counted;

static fa_status count(const counted *k, fa_score_kind kind, const char *name, bool judged, const char *why,
                       fa_error *err) {
  fa_score_row *row = row_of(k->c, kind, name);
  if (!row) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  row->selected++;
  row->judged += judged;
  row->refused += k->refused;
  if (!judged) fa_score_reasons_add(&row->why, why);
  return FA_OK;
}

/* An output that was judged, or that the kernel says it does not write. */
static fa_status count_outputs(const counted *k, const fa_result *r, fa_error *err) {
  const cJSON *missing = fa_report_at(k->entry, "not_delivered");
  fa_status status = FA_OK;
  for (int id = 0; status == FA_OK && id < FA_T_COUNT; ++id) {
    const char *name = fa_tensor_id_name((fa_tensor_id)id);
    if (r->outputs >> id & 1)
      status = count(k, FA_SCORE_OUTPUT, name, true, "", err);
    else if (has_string(missing, name))
      status = count(k, FA_SCORE_OUTPUT, name, false, "the kernel does not write it", err);
  }
  return status;
}

fa_status fa_score_cover(fa_score_cases *c, const cJSON *entry, const fa_result *r, fa_error *err) {
  const bool judged = fa_score_is_judged(r->state), backward = judged && r->passes & FA_PASS_BACKWARD;
  const char *reason = fa_report_string(entry, "reason");
  const char *no_backward = judged ? fa_report_string(entry, "notes") : reason;
  const counted k = {c, entry, is_refusal(c, entry, r)};
  char word[48];
  c->refused += k.refused;
  if (!judged) fa_score_reasons_add(&c->why, reason);
  fa_status status = count(&k, FA_SCORE_PASS, "forward", judged, reason, err);
  for (int i = 0; status == FA_OK && fa_score_word(r->features, i, word, sizeof word); ++i) {
    const bool needs = fa_require_needs_backward(word);
    status =
        count(&k, fa_score_kind_of(word), word, needs ? backward : judged, needs ? no_backward : reason, err);
  }
  return status == FA_OK ? count_outputs(&k, r, err) : status;
}

/* ---- what is required ---- */

/* 1: required and met; 0: required and not met; -1: nobody requires it. */
static int required(const cJSON *head, const fa_score_row *row) {
  const cJSON *item;
  cJSON_ArrayForEach(item, fa_report_at(fa_report_at(head, "require"), "items")) {
    const bool same = strcmp(fa_report_string(item, "what"), fa_score_kinds[row->kind]) == 0 &&
                      strcmp(fa_report_string(item, "wanted"), row->name) == 0;
    if (same) return cJSON_IsTrue(fa_report_at(item, "met"));
  }
  return -1;
}

bool fa_score_is_met(const cJSON *head) {
  const cJSON *require = fa_report_at(head, "require"), *untrusted = fa_report_at(head, "untrusted");
  /* What an untrusted kernel claims and nobody could test, it may not have. */
  if (cJSON_GetArraySize(fa_report_at(fa_report_at(untrusted, "claims"), "untested")) > 0) return false;
  return !require || cJSON_IsTrue(fa_report_at(require, "met"));
}

double fa_score_covered(const fa_score_cases *c, const cJSON *head, const char **over) {
  double sum[2] = {0, 0};
  int n[2] = {0, 0};
  for (int i = 0; i < c->n_rows; ++i) {
    const fa_score_row *row = &c->row[i];
    const double share = (double)row->judged / (double)row->selected;
    const bool is_required = required(head, row) >= 0;
    sum[0] += share, n[0]++;
    if (is_required) sum[1] += share, n[1]++;
  }
  const int which = n[1] > 0;
  *over = which ? "required" : "selected";
  return n[which] ? sum[which] / n[which] : 0;
}

/* ---- as JSON ---- */

static int compare_rows(const void *a, const void *b) {
  const fa_score_row *x = a, *y = b;
  return x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(x->name, y->name);
}

static cJSON *row_json(const fa_score_row *row, const cJSON *head) {
  cJSON *o = cJSON_CreateObject();
  const int met = required(head, row);
  cJSON_AddStringToObject(o, "name", row->name);
  cJSON_AddNumberToObject(o, "selected", (double)row->selected);
  cJSON_AddNumberToObject(o, "judged", (double)row->judged);
  cJSON_AddNumberToObject(o, "refused", (double)row->refused);
  if (met >= 0) cJSON_AddBoolToObject(o, "required", true);
  if (row->judged < row->selected) cJSON_AddItemToObject(o, "reasons", fa_score_reasons_json(&row->why, 3));
  return o;
}

cJSON *fa_score_coverage_json(fa_score_cases *c, const cJSON *head) {
  cJSON *o = cJSON_CreateObject(), *cases = cJSON_AddObjectToObject(o, "cases");
  const int64_t errors = c->states[FA_ERROR], skipped = c->states[FA_SKIP] - c->vacuous;
  cJSON_AddNumberToObject(cases, "selected", (double)(c->total - c->vacuous));
  cJSON_AddNumberToObject(cases, "judged", (double)c->judged);
  cJSON_AddNumberToObject(cases, "skipped", (double)skipped);
  cJSON_AddNumberToObject(cases, "refused", (double)c->refused);
  cJSON_AddNumberToObject(cases, "errors", (double)errors);
  cJSON_AddNumberToObject(cases, "vacuous", (double)c->vacuous);
  if (c->n_rows) qsort(c->row, (size_t)c->n_rows, sizeof *c->row, compare_rows);
  for (int kind = 0; kind < FA_SCORE_KINDS; ++kind) {
    cJSON *list = cJSON_AddArrayToObject(o, fa_score_kinds[kind]);
    for (int i = 0; i < c->n_rows; ++i)
      if ((int)c->row[i].kind == kind) cJSON_AddItemToArray(list, row_json(&c->row[i], head));
  }
  cJSON_AddItemToObject(o, "reasons", fa_score_reasons_json(&c->why, FA_SCORE_REASONS));
  const cJSON *require = fa_report_at(head, "require");
  cJSON_AddItemToObject(o, "require", require ? cJSON_Duplicate(require, 1) : cJSON_CreateNull());
  return o;
}
