#include "report/score/document.h"

#include "report/claims.h"
#include "report/printed.h"
#include "report/score/speed.h"
#include "report/untrusted/words.h"

#include <stdarg.h>
#include <string.h>

#define FORMULA                                                                                              \
  "value = verdict x coverage; verdict: 1 if a case was judged, none failed or ended in an error, and all "  \
  "that is required was judged, else 0; coverage: the mean of judged / selected over the families, dtypes, " \
  "features, passes and outputs that are required by name or, if none is, that the selected cases have"

static void copy(cJSON *to, const char *as, const cJSON *from, const char *key) {
  const cJSON *x = fa_report_at(from, key);
  cJSON_AddItemToObject(to, as, x ? cJSON_Duplicate(x, 1) : cJSON_CreateNull());
}

static const cJSON *contract_of(const fa_score_cases *c) {
  return fa_report_at(c->contracts, c->backend);
}

static void add_subject(cJSON *score, const fa_score_cases *c, const cJSON *head) {
  cJSON *o = cJSON_AddObjectToObject(score, "subject");
  const cJSON *backend = fa_report_at(head, "backend");
  cJSON_AddStringToObject(o, "backend", c->backend[0] ? c->backend : fa_report_string(backend, "name"));
  cJSON_AddStringToObject(o, "name", fa_report_string(contract_of(c), "name"));
  cJSON_AddStringToObject(o, "device", fa_report_string(backend, "device"));
  cJSON_AddStringToObject(o, "driver", fa_report_string(backend, "driver"));
  cJSON_AddStringToObject(o, "source", fa_report_string(fa_report_at(head, "sources"), c->backend));
}

/* ---- the number ---- */

/* Why the verdict is 0; "" if it is 1. */
static void explain_zero(const fa_score_cases *c, const cJSON *head, const cJSON *verdict, char *why,
                         size_t size) {
  why[0] = 0;
  if (fa_report_number(verdict, "failed") > 0)
    snprintf(why, size, "%.0f of %lld judged cases failed", fa_report_number(verdict, "failed"),
             (long long)c->judged);
  else if (c->states[FA_ERROR])
    snprintf(why, size, "%lld cases ended in an error", (long long)c->states[FA_ERROR]);
  else if (c->judged == 0)
    snprintf(why, size, "nothing was judged");
  else if (!fa_score_is_met(head))
    snprintf(why, size, "not all that is required was judged");
}

static void add_share(cJSON *o, const char *key, double share) {
  char text[40];
  snprintf(text, sizeof text, "%.6g", share);
  cJSON_AddRawToObject(o, key, text);
}

static void add_number(cJSON *score, const fa_score_cases *c, const cJSON *head, const cJSON *verdict) {
  const char *over;
  char why[200];
  const double coverage = fa_score_covered(c, head, &over);
  explain_zero(c, head, verdict, why, sizeof why);
  cJSON *o = cJSON_AddObjectToObject(score, "score");
  add_share(o, "value", why[0] ? 0 : coverage);
  cJSON_AddNumberToObject(o, "verdict", why[0] ? 0 : 1);
  add_share(o, "coverage", coverage);
  cJSON_AddStringToObject(o, "over", over);
  cJSON_AddStringToObject(o, "why_zero", why);
  cJSON_AddStringToObject(o, "formula", FORMULA);
}

/* ---- what a reader must know beside the number ---- */

static void __attribute__((format(printf, 2, 3))) add_caveat(cJSON *list, const char *format, ...) {
  char line[1400];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  cJSON_AddItemToArray(list, cJSON_CreateString(line));
}

static void add_layers_left_out(cJSON *list, const cJSON *untrusted) {
  const cJSON *layer;
  if (fa_json_words_have(fa_report_at(untrusted, "differ"), "trusted")) return; /* which says more */
  cJSON_ArrayForEach(layer,
                     fa_report_at(fa_report_at(untrusted, "layers"), "left_out")) if (cJSON_IsString(layer))
      add_caveat(list, "the layer %s was left out", layer->valuestring);
}

/* Merged reports of several runs by other rules: what is said holds for the weakest of them. */
static void add_differences(cJSON *list, const cJSON *untrusted) {
  char text[200];
  const cJSON *part;
  cJSON_ArrayForEach(part, fa_report_at(untrusted, "parts")) if (fa_report_at(part, "trusted"))
      add_caveat(list, "in %s the kernel was trusted: no wall, public data, its own word for its arithmetic",
                 fa_report_string(part, "report"));
  fa_json_words_join(fa_report_at(untrusted, "differ"), ", ", text, sizeof text);
  if (text[0]) add_caveat(list, "the reports differ (%s): what holds for all of them is said", text);
}

static void add_not_claimed(cJSON *list, const cJSON *contract) {
  fa_not_claimed row[FA_NOT_CLAIMED_ROWS];
  const int n = contract ? fa_not_claimed_rows(contract, row) : 0;
  for (int i = 0; i < n; ++i) add_caveat(list, "not claimed, not judged: %s: %s", row[i].what, row[i].text);
}

/* Times of something else than what was judged. */
static void add_other_kernel(cJSON *list, const fa_score_cases *c, const cJSON *bench) {
  const char *timed = fa_report_string(fa_report_at(bench, "backend"), "name");
  if (bench && strcmp(timed, c->backend) != 0) add_caveat(list, "the times are of %s", timed);
}

static void add_caveats(cJSON *score, const fa_score_cases *c, const cJSON *head, const cJSON *bench) {
  cJSON *list = cJSON_AddArrayToObject(score, "caveats");
  const cJSON *untrusted = fa_report_at(head, "untrusted");
  if (!untrusted)
    add_caveat(list, "the kernel was trusted: no wall, public data, its own word for its arithmetic");
  add_layers_left_out(list, untrusted);
  add_differences(list, untrusted);
  if (!fa_report_at(head, "require"))
    add_caveat(list, "nothing was required: what it skips costs coverage alone");
  if (cJSON_IsFalse(fa_report_at(head, "finished"))) add_caveat(list, "the run is not finished");
  if (c->sampled)
    add_caveat(list, "%lld of %lld cases were judged in a sample of their places", (long long)c->sampled,
               (long long)c->judged);
  if (c->waived) add_caveat(list, "%lld failures are waived; here they count", (long long)c->waived);
  if (c->refused)
    add_caveat(list, "%lld cases were refused although all that they ask for is claimed",
               (long long)c->refused);
  add_other_kernel(list, c, bench);
  add_not_claimed(list, contract_of(c));
}

/* ---- the parts ---- */

static void add_contract(cJSON *score, const fa_score_cases *c, const cJSON *head) {
  const cJSON *contract = contract_of(c), *untrusted = fa_report_at(head, "untrusted");
  cJSON *o = cJSON_AddObjectToObject(score, "contract");
  copy(o, "claims", contract, "claims");
  copy(o, "not_claimed", contract, "not_claimed");
  copy(o, "sha256", untrusted, "contract_sha256");
}

cJSON *fa_score_document(fa_score_cases *c, const cJSON *head, const cJSON *bench) {
  char identity[65];
  cJSON *o = cJSON_CreateObject(), *verdict = fa_score_verdict_json(c, head);
  fa_score_cases_identity(c, identity);
  cJSON_AddNumberToObject(o, "fa_score", FA_SCORE_VERSION);
  copy(o, "tool", head, "tool");
  add_subject(o, c, head);
  add_number(o, c, head, verdict);
  add_caveats(o, c, head, bench);
  add_contract(o, c, head);
  copy(o, "untrusted", head, "untrusted");
  cJSON_AddStringToObject(o, "cases_sha256", identity);
  cJSON_AddItemToObject(o, "verdict", verdict);
  cJSON_AddItemToObject(o, "coverage", fa_score_coverage_json(c, head));
  cJSON_AddItemToObject(o, "accuracy", fa_score_accuracy_json(c));
  cJSON_AddItemToObject(o, "speed", fa_score_speed_json(bench));
  return o;
}
