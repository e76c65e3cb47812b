#include "ref/tiles/sink.h"

#include <math.h>

void fa_ref_lse_probabilities(const fa_rows *rows, double *x, int64_t n, fa_ref_lse lse) {
  if (lse.rest == 0) {
    rows->exp(x, n, lse.value);
    return;
  }
  /* The difference is exact where the two are close, which is where rest counts. */
  for (int64_t j = 0; j < n; ++j) x[j] -= lse.value;
  rows->exp(x, n, lse.rest);
}

bool fa_ref_lse_is_given(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i) {
  if (!c->given_lse || (c->profile && c->profile->p_kept)) return false;
  const double size = fabs(fa_ref_lse_get(c, c->given_lse, e, h, i));
  return !(size >= FA_COARSE_LSE && size < INFINITY);
}

fa_ref_lse fa_ref_lse_load(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i) {
  const fa_want *own = &c->forward->t[FA_T_LSE];
  const int64_t at = fa_ref_lse_index(c, e, h, i);
  const bool given = fa_ref_lse_is_given(c, e, h, i);
  const fa_ref_lse lse = {given ? fa_ref_lse_get(c, c->given_lse, e, h, i) : own->value[at],
                          given ? 0 : own->rest[at]};
  return fa_ref_sink_left_out(c) ? fa_ref_sink_add(lse, fa_ref_sink(c, h)) : lse;
}
