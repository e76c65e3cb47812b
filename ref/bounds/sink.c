/* How far a kernel's share of a sink may be off (docs/reference/bounds.md, "Sinks"). */
#include "ref/tiles/sink.h"
#include "ref/bounds/terms.h"

#include <math.h>

fa_bound_maxima fa_bound_maxima_of(const fa_ref_scratch *w, int64_t k) {
  return (fa_bound_maxima){w->key_m[k], w->key_l[k], w->m[k], w->l[k]};
}

/* A kernel's maximum is that of the keys or of the keys and the sink: both are covered. */
fa_bound_sink fa_bound_sink_forward(const fa_ref_call *c, const fa_ref_rows *r, int64_t k,
                                    const fa_ref_scratch *w, double extra) {
  const fa_bound_maxima maxima = fa_bound_maxima_of(w, k);
  return fa_bound_sink_of_maxima(&maxima, fa_ref_sink(c, r->h), extra);
}

fa_bound_sink fa_bound_sink_backward(const fa_ref_call *c, const fa_ref_rows *r, int64_t k,
                                     const fa_ref_scratch *w, double lse_slack) {
  return fa_bound_sink_of_lse(c, fa_ref_sink(c, r->h), (fa_ref_lse){w->l[k], w->rest[k]}, lse_slack);
}

double fa_bound_sink_added(const fa_ref_call *c, const fa_ref_rows *r, int64_t k, const fa_ref_scratch *w) {
  return fa_bound_sink_joined(c, fa_ref_sink(c, r->h), w->l[k]);
}

void fa_bound_sink_rows(const fa_ref_call *c, const fa_ref_rows *r, const fa_ref_scratch *w) {
  fa_want *lse = &c->out->t[FA_T_LSE];
  const double sink = fabs(fa_ref_sink(c, r->h));
  for (int64_t k = 0; k < r->n && c->p->sinks.in_lse && sink < INFINITY; ++k) {
    const int64_t at = fa_ref_lse_index(c, r->e, r->h, r->row[k]);
    if (w->key_l[k] > 0) continue;
    lse->accum[at] = fa_bound_sink_alone(c->profile, sink);
  }
}
