#include "report/require.h"

#include "cases/tensors/table.h"
#include "report/require_kinds.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

const char *const fa_require_keys[FA_REQUIRE_N_KINDS] = {
    [FA_REQUIRE_JUDGED] = "judged",   [FA_REQUIRE_FEATURE] = "features", [FA_REQUIRE_DTYPE] = "dtypes",
    [FA_REQUIRE_FAMILY] = "families", [FA_REQUIRE_PASS] = "passes",      [FA_REQUIRE_OUTPUT] = "outputs",
    [FA_REQUIRE_CASES] = "cases",     [FA_REQUIRE_WHOLE] = "whole"};

void fa_require_free(fa_require *r) {
  for (int i = 0; i < r->n; ++i) free(r->item[i].text);
  free(r->item);
  *r = (fa_require){0};
}

bool fa_require_share(const char *text, double *share) {
  char *end = NULL;
  const double x = strtod(text, &end);
  if (end == text || strcmp(end, "%") != 0 || !(x > 0 && x <= 100)) return false;
  *share = x / 100;
  return true;
}

/* ---- counting ---- */

static bool is_judged(const fa_result *r) {
  return r->state == FA_PASS || fa_state_is_failure(r->state);
}

static bool is_sampled(const fa_result *r) {
  return fa_sample_is_asked(&r->sampled.asked);
}

static bool has_word(const char *text, const char *word) {
  const size_t n = strlen(word);
  for (const char *at = text; (at = strstr(at, word)); at += n)
    if ((at == text || at[-1] == ' ') && (at[n] == 0 || at[n] == ' ')) return true;
  return false;
}

bool fa_require_needs_backward(const char *word) {
  static const char *const needs[] = {"backward", "bias_grad", "dlse", "captures_grad", "captures_half_grad"};
  for (size_t i = 0; i < sizeof needs / sizeof *needs; ++i)
    if (strcmp(needs[i], word) == 0) return true;
  return false;
}

static bool judged_output(const fa_result *r, const char *name) {
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (strcmp(fa_tensor_id_name((fa_tensor_id)id), name) == 0 && r->outputs >> id & 1) return true;
  for (int i = 0; i < r->n_verdicts; ++i)
    if (r->verdict[i].judged && strcmp(fa_tensor_id_name(r->verdict[i].id), name) == 0) return true;
  return false;
}

static bool is_about(const fa_require_item *item, const fa_result *r) {
  switch (item->kind) {
  case FA_REQUIRE_FEATURE:
  case FA_REQUIRE_DTYPE:
  case FA_REQUIRE_FAMILY:
    return has_word(r->features, item->text);
  case FA_REQUIRE_PASS:
    return strcmp(item->text, "backward") != 0 || has_word(r->features, "backward");
  case FA_REQUIRE_CASES:
  case FA_REQUIRE_WHOLE:
    return fnmatch(item->text, r->name ? r->name : "", 0) == 0;
  default:
    return true;
  }
}

static bool is_shown_by(const fa_require_item *item, const fa_result *r) {
  if (!is_judged(r)) return false;
  switch (item->kind) {
  case FA_REQUIRE_FEATURE:
    return (r->passes & FA_PASS_BACKWARD) || !fa_require_needs_backward(item->text);
  case FA_REQUIRE_PASS:
    return (r->passes & (strcmp(item->text, "backward") == 0 ? FA_PASS_BACKWARD : FA_PASS_FORWARD)) != 0;
  case FA_REQUIRE_OUTPUT:
    return judged_output(r, item->text);
  case FA_REQUIRE_WHOLE:
    return !is_sampled(r);
  default:
    return true;
  }
}

/* Why it was not shown; "" if the case just has no such thing. */
static const char *reason_of(const fa_require_item *item, const fa_result *r) {
  if (!is_judged(r)) return r->reason;
  if (item->kind == FA_REQUIRE_WHOLE) return "it was judged in a sample of its places";
  return item->kind == FA_REQUIRE_OUTPUT && !r->not_delivered ? "" : r->notes;
}

void fa_require_note(fa_require *r, const fa_result *result) {
  if (fa_result_proves_nothing(result)) return;
  for (int i = 0; i < r->n; ++i) {
    fa_require_item *item = &r->item[i];
    if (!is_about(item, result)) continue;
    const bool shown = is_shown_by(item, result);
    item->selected++;
    item->judged += shown;
    item->sampled += shown && is_sampled(result);
    if (shown || item->why[0]) continue;
    snprintf(item->why, sizeof item->why, "%.*s", (int)sizeof item->why - 1, reason_of(item, result));
  }
}

bool fa_require_is_met(const fa_require_item *item) {
  double share = 1;
  if (item->kind == FA_REQUIRE_CASES || item->kind == FA_REQUIRE_WHOLE)
    return item->selected > 0 && item->judged == item->selected;
  if (item->kind != FA_REQUIRE_JUDGED) return item->judged > 0;
  fa_require_share(item->text, &share);
  return item->selected > 0 && (double)item->judged >= share * (double)item->selected * (1 - 1e-12);
}

int fa_require_unmet(const fa_require *r) {
  int n = 0;
  for (int i = 0; i < r->n; ++i) n += !fa_require_is_met(&r->item[i]);
  return n;
}

/* "judged 90%: 8 of 60 cases are (13.3 %); the first reason: exec: it has no bf16" */
static void print_item(const fa_require_item *item, FILE *out) {
  fprintf(out, "fa-verify: required, but not judged: %s %s: ", fa_require_keys[item->kind], item->text);
  if (item->selected == 0)
    fputs("no selected case is of that kind", out);
  else
    fprintf(out, "%lld of %lld case%s (%.4g %%)", (long long)item->judged, (long long)item->selected,
            item->selected == 1 ? "" : "s", 100.0 * (double)item->judged / (double)item->selected);
  fprintf(out, "%s%s\n", item->why[0] ? "; the first reason: " : "", item->why);
}

void fa_require_print(const fa_require *r, FILE *out) {
  for (int i = 0; i < r->n; ++i)
    if (!fa_require_is_met(&r->item[i])) print_item(&r->item[i], out);
}
