/* Conventions of the LSE. */
#include "fuzz/explain/hypothesis.h"

static bool of_parts(double by_max, double by_log, fa_mistake *m) {
  m->twist.lse_astray = true;
  m->twist.lse_by_max = by_max;
  m->twist.lse_by_log = by_log;
  return true;
}

static bool base_2(const fa_failure *x, int v, fa_mistake *m) {
  static const char *const texts[] = {"LSE in base 2: \"lse\": {\"base\": \"2\"} declares it",
                                      "LSE with its maximum in base 2, its sum not",
                                      "LSE with its sum in base 2, its maximum not"};
  (void)x;
  fa_mistake_say(m, "%s", texts[v]);
  return of_parts(v == 2 ? 1 : LOG2_E, v == 1 ? 1 : LOG2_E, m);
}

static bool without_max(const fa_failure *x, int v, fa_mistake *m) {
  (void)x, (void)v;
  fa_mistake_say(m, "LSE without the maximum");
  return of_parts(0, 1, m);
}

static bool without_sum(const fa_failure *x, int v, fa_mistake *m) {
  (void)x, (void)v;
  fa_mistake_say(m, "LSE is the maximum alone");
  return of_parts(1, 0, m);
}

static bool without_scale(const fa_failure *x, int v, fa_mistake *m) {
  static const char *const texts[] = {
      "LSE divided by the scale: \"lse\": {\"scaled\": false} declares it",
      "LSE in base 2 and divided by the scale: \"base\" and \"scaled\" of \"lse\"",
      "LSE with a maximum that is not scaled"};
  const double by = 1 / x->p->scale;
  if (x->p->scale == 1) return false;
  fa_mistake_say(m, "%s", texts[v]);
  return of_parts(v == 1 ? by * LOG2_E : by, v == 2 ? 1 : v == 1 ? by * LOG2_E : by, m);
}

static bool negated(const fa_failure *x, int v, fa_mistake *m) {
  (void)x, (void)v;
  fa_mistake_say(m, "LSE negated");
  return of_parts(-1, -1, m);
}

const fa_hypothesis fa_hypotheses_of_lse[] = {
    {"lse_base_2", "the LSE is in base 2, or a part of it", FA_BIT(FA_T_LSE), 3, base_2},
    {"lse_without_max", "the LSE is the log of the sum alone", FA_BIT(FA_T_LSE), 1, without_max},
    {"lse_without_sum", "the LSE is the maximum alone", FA_BIT(FA_T_LSE), 1, without_sum},
    {"lse_without_scale", "the LSE, or its maximum, is not scaled", FA_BIT(FA_T_LSE), 3, without_scale},
    {"lse_negated", "the LSE has the other sign", FA_BIT(FA_T_LSE), 1, negated},
    {.name = NULL}};
