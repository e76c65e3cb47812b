#include "fuzz/judging/lse_hint.h"

#include "fuzz/judging/judge.h"

#include <math.h>

#define LOG2_E 1.4426950408889634

static bool has_failed(const fa_result *r) {
  for (int i = 0; i < r->n_verdicts; ++i)
    if (r->verdict[i].id == FA_T_LSE) return r->verdict[i].bad > 0;
  return false;
}

/* True if every finite LSE is about this factor times the expected one. A factor near 1 tells nothing. */
static bool is_times(const fa_want *want, const fa_tensor *got, double factor) {
  if (fabs(factor - 1) < 0x1p-4) return false;
  int64_t index[FA_MAX_RANK], seen = 0;
  for (int64_t n = 0, e = 0; n < (want->span ? want->n_spans : want->n); ++n, ++e) {
    if (want->span) e = want->span[n].first; /* an element each */
    if (!isfinite(want->value[e])) continue;
    fa_tensor_unravel(got, e, index);
    const double expected = factor * want->value[e];
    if (!(fabs(fa_tensor_get(got, index) - expected) <= 0x1p-7 * fabs(expected) + 0x1p-10)) return false;
    ++seen;
  }
  return seen > 0;
}

void fa_lse_hint(const fa_problem *p, const fa_want *want, const fa_tensor *got, fa_result *r) {
  const struct {
    double factor;
    const char *what;
  } known[] = {{LOG2_E, "in base 2: \"lse\": {\"base\": \"2\"} declares it"},
               {1 / p->scale, "divided by the scale: \"lse\": {\"scaled\": false} declares it"},
               {LOG2_E / p->scale, "in base 2 and divided by the scale: \"base\" and \"scaled\" of \"lse\""},
               {-1, "negated, which nothing declares"}};
  if (!got->data || !has_failed(r)) return;
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (is_times(want, got, known[i].factor)) {
      fa_result_note(r, "lse seems to be %s", known[i].what);
      return;
    }
}
