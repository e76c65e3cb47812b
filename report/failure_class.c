#include "report/failure_class.h"

#include "report/journal_line.h"
#include "report/printed.h"

#include <cjson/cJSON.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

_Static_assert(FA_T_COUNT < 126, "a bit for each tensor");

/* The first "SIG..." of a crash's reason. */
static void find_signal(const char *reason, char *out, size_t size) {
  const char *at = strstr(reason, "SIG");
  size_t n = 0;
  for (; at && n + 1 < size && isalnum((unsigned char)at[n]); ++n) out[n] = at[n];
  out[n] = 0;
}

/* Reasons about one tensor start with its name: "dq: 3 elements differ ...". */
static fa_tensor_id find_tensor(const char *reason) {
  size_t n = strcspn(reason, ":");
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const char *name = fa_tensor_id_name((fa_tensor_id)id);
    if (reason[n] == ':' && strlen(name) == n && strncmp(name, reason, n) == 0) return (fa_tensor_id)id;
  }
  return FA_T_COUNT;
}

/* Sets what the state alone does not say, if it is not about numbers. */
static void set_reason(fa_failure_class *c, const char *reason) {
  if (c->state == FA_CRASH) find_signal(reason, c->signal, sizeof c->signal);
  if (c->state == FA_NONDETERMINISTIC) c->tensor = find_tensor(reason);
}

/* The first output; caches come after the outputs. */
static void set_law(fa_failure_class *c, fa_law law, fa_tensor_bits broken, fa_tensor_bits nan) {
  for (int i = 0; i < FA_T_COUNT && c->tensor == FA_T_COUNT; ++i) {
    const int id = (i + FA_T_O) % FA_T_COUNT;
    if (broken >> id & 1) c->tensor = (fa_tensor_id)id;
  }
  c->law = law;
  c->kind = c->tensor < FA_T_COUNT && (nan >> c->tensor & 1) ? FA_KIND_CLASS : FA_KIND_LAW;
}

fa_tensor_bits fa_failure_tensors(const fa_result *r) {
  static const char word[] = "NONDETERMINISTIC: ";
  fa_tensor_bits which = r->law_broken;
  for (int i = 0; i < r->n_verdicts; ++i)
    if (r->verdict[i].fail || r->verdict[i].vacuous[0]) which |= FA_TENSOR_BIT(r->verdict[i].id);
  if (r->state == FA_NONDETERMINISTIC) which |= FA_TENSOR_BIT(find_tensor(r->reason));
  for (const char *at = r->notes; (at = strstr(at, word)); at += sizeof word - 1)
    which |= FA_TENSOR_BIT(find_tensor(at + sizeof word - 1));
  return which & (FA_TENSOR_BIT(FA_T_COUNT) - 1);
}

fa_failure_class fa_failure_class_of(const fa_result *r) {
  fa_failure_class c = {.state = r->state, .tensor = FA_T_COUNT};
  set_reason(&c, r->reason);
  if (r->state != FA_FAIL && r->state != FA_VACUOUS) return c;
  if (r->law_broken) set_law(&c, r->law, r->law_broken, r->law_nan);
  for (int i = 0; i < r->n_verdicts && c.kind == FA_KIND_NONE; ++i) {
    const fa_verdict *v = &r->verdict[i];
    if (r->state == FA_VACUOUS && v->vacuous[0]) c.kind = FA_KIND_VACUOUS;
    if (r->state == FA_FAIL && v->fail)
      c.kind = v->class_bad ? FA_KIND_CLASS : v->bad ? FA_KIND_BOUND : FA_KIND_STATISTIC;
    if (c.kind != FA_KIND_NONE) c.tensor = v->id;
  }
  return c;
}

/* A vacuous tensor counts as failed in a report, whatever the case's state. */
static fa_failure_kind kind_of_entry(const cJSON *tensor, fa_state state) {
  const cJSON *statistics = cJSON_GetObjectItemCaseSensitive(tensor, "statistics");
  if (state == FA_VACUOUS) return fa_report_string(tensor, "vacuous")[0] ? FA_KIND_VACUOUS : FA_KIND_NONE;
  if (fa_report_number(tensor, "class_bad") > 0) return FA_KIND_CLASS;
  if (fa_report_number(tensor, "bad") > 0) return FA_KIND_BOUND;
  return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(statistics, "bad")) ? FA_KIND_STATISTIC : FA_KIND_NONE;
}

bool fa_failure_class_from_json(const cJSON *failure, fa_failure_class *out) {
  fa_failure_class c = {.tensor = FA_T_COUNT};
  if (!fa_state_from_name(fa_report_string(failure, "state"), &c.state) || !fa_state_is_failure(c.state))
    return false;
  set_reason(&c, fa_report_string(failure, "reason"));
  const cJSON *t;
  const char *law = fa_report_string(cJSON_GetObjectItemCaseSensitive(failure, "case"), "law");
  if (c.state == FA_FAIL && law[0] && strcmp(law, "none") != 0) {
    const fa_tensor_bits broken = fa_report_tensors_at(failure, "law_broken");
    if (!broken || !fa_law_from_name(law, &c.law)) return false;
    set_law(&c, c.law, broken, fa_report_tensors_at(failure, "law_nan"));
  }
  const bool numbers = c.state == FA_FAIL || c.state == FA_VACUOUS;
  cJSON_ArrayForEach(t, cJSON_GetObjectItemCaseSensitive(failure, "tensors")) {
    if (!numbers || c.kind != FA_KIND_NONE) break;
    c.kind = kind_of_entry(t, c.state);
    for (int id = 0; id < FA_T_COUNT && c.kind != FA_KIND_NONE; ++id)
      if (strcmp(fa_tensor_id_name((fa_tensor_id)id), fa_report_string(t, "name")) == 0)
        c.tensor = (fa_tensor_id)id;
    if (c.kind != FA_KIND_NONE && c.tensor == FA_T_COUNT) return false;
  }
  *out = c;
  return true;
}

bool fa_failure_class_equal(const fa_failure_class *a, const fa_failure_class *b) {
  return a->state == b->state && a->tensor == b->tensor && a->kind == b->kind && a->law == b->law &&
         strcmp(a->signal, b->signal) == 0;
}

void fa_failure_class_text(const fa_failure_class *c, char *text, size_t size) {
  static const char *const what[] = {[FA_KIND_NONE] = "",
                                     [FA_KIND_CLASS] = " has NaN or infinity in the wrong place",
                                     [FA_KIND_BOUND] = " outside its bound",
                                     [FA_KIND_STATISTIC] = ": error statistics off",
                                     [FA_KIND_LAW] = " breaks the law",
                                     [FA_KIND_VACUOUS] = ": the bound would let nonsense pass"};
  snprintf(text, size, "%s%s%s%s%s%s%s", fa_state_name(c->state), c->law ? ": " : "",
           c->law ? fa_law_describe(c->law)->name : "", c->tensor < FA_T_COUNT ? ": " : "",
           c->tensor < FA_T_COUNT ? fa_tensor_id_name(c->tensor) : "", what[c->kind],
           c->signal[0] ? ": " : "");
  size_t n = strlen(text);
  snprintf(text + n, size - n, "%s", c->signal);
}
