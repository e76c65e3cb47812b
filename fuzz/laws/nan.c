/* A NaN is no result: two runs that both have one do not agree. */
#include "fuzz/laws/parts.h"
#include "report/text/line.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double largest_row(const fa_tensor *t) {
  int64_t index[FA_MAX_RANK], n = t->data ? fa_tensor_count(t) : 0;
  double most = 0, sum = 0;
  for (int64_t e = 0; e < n; ++e) {
    fa_tensor_unravel(t, e, index);
    const double x = fa_tensor_get(t, index);
    sum += x * x;
    if (index[t->rank - 1] + 1 < t->shape[t->rank - 1]) continue;
    most = fmax(most, sqrt(sum)); /* ignores rows that nobody reads, which are NaN */
    sum = 0;
  }
  return most;
}

/* dS = P (Z dP - delta) may exceed its type's largest value: it is then infinite, and inf - inf may
 * follow. */
static bool ds_may_overflow(const fa_law_side *s) {
  const fa_tensor *dlse = &s->in.t[FA_T_DLSE];
  int64_t index[FA_MAX_RANK], n = dlse->data ? fa_tensor_count(dlse) : 0;
  double most = 2 * largest_row(&s->in.t[FA_T_DO]) * largest_row(&s->in.t[FA_T_V]) / (1 - s->p.dropout.p);
  double added = 0;
  for (int64_t e = 0; e < n; ++e) {
    fa_tensor_unravel(dlse, e, index);
    added = fmax(added, fabs(fa_tensor_get(dlse, index)));
  }
  return !(most + added <= s->profile.max_p);
}

static void mismatch(fa_law_work *w, const fa_law_side *s, fa_tensor_id id) {
  const fa_tensor *t = &s->out.t[id];
  int64_t index[FA_MAX_RANK], first[FA_MAX_RANK] = {0}, n = fa_tensor_count(t), bad = 0, unwritten = 0;
  for (int64_t e = 0; e < n; ++e) {
    fa_tensor_unravel(t, e, index);
    if (!isnan(fa_tensor_get(t, index))) continue;
    if (bad++ == 0) memcpy(first, index, sizeof first);
    unwritten += fa_tensor_is_poison(t, index, FA_POISON_A);
  }
  char at[128], never[48] = "";
  fa_index_text(first, t->rank, at, sizeof at);
  if (unwritten) snprintf(never, sizeof never, " (%lld never written)", (long long)unwritten);
  fa_law_break(w, id, true, "%lld of %lld elements are NaN%s in run %lld, the first %s", (long long)bad,
               (long long)n, never, (long long)w->n_runs, at);
}

/* If an expression has no value somewhere, the case has no meaning; the reference can tell. */
static fa_status ask_expressions(fa_law_work *w, fa_law_side *s, fa_error *err) {
  if (!s->p.score_mod && !s->p.mask_mod) return FA_OK;
  const fa_status status = fa_law_bounds(w, s, err);
  return status == FA_ERR_INPUT || status == FA_ERR_MEMORY ? status : FA_OK;
}

static bool has_nan(const fa_tensor *t) {
  int64_t index[FA_MAX_RANK];
  const int64_t n = t->data ? fa_tensor_count(t) : 0;
  for (int64_t e = 0; e < n; ++e) {
    fa_tensor_unravel(t, e, index);
    if (isnan(fa_tensor_get(t, index))) return true;
  }
  return false;
}

fa_status fa_law_check_nan(fa_law_work *w, fa_law_side *s, fa_error *err) {
  const fa_tensor_bits written = fa_tensors_written_by(FA_PASS_FORWARD | w->passes);
  for (int id = 0; id < FA_T_COUNT; ++id) {
    if (!(written >> id & 1) || fa_tensor_describe((fa_tensor_id)id)->axes == FA_AXES_SCORES) continue;
    if (!has_nan(&s->out.t[id])) continue;
    if (s->p.family != FA_MERGE && fa_tensor_is_through_ds((fa_tensor_id)id) && ds_may_overflow(s)) continue;
    const fa_status status = ask_expressions(w, s, err);
    if (status != FA_OK) return status;
    mismatch(w, s, (fa_tensor_id)id);
    w->over = true;
  }
  return FA_OK;
}
