/* How far a kernel's share of a sink may be off (docs/reference/bounds.md, "Sinks"). */
#include "ref/tiles/sink.h"
#include "ref/bounds/terms.h"

#include <math.h>

static const double u = 0x1p-24;

static double grown(double eta) {
  return expm1(fmin(eta, 30));
}

/* A kernel's maximum is that of the keys or of the keys and the sink: both are covered. */
fa_bound_sink fa_bound_sink_forward(const fa_ref_call *c, const fa_ref_rows *r, int64_t k,
                                    const fa_ref_scratch *w, double extra) {
  const double sink = fa_ref_sink(c, r->h), m = w->key_m[k];
  if (sink == -INFINITY || w->key_l[k] == 0) return (fa_bound_sink){0, 0};
  const double most = fmax(fabs(m), fabs(sink));
  return (fa_bound_sink){exp(sink - w->m[k]) / w->l[k],
                         grown(u * (2 * fabs(sink - m) + 3 * fabs(sink) + 3 * most) + extra)};
}

fa_bound_sink fa_bound_sink_backward(const fa_ref_call *c, const fa_ref_rows *r, int64_t k,
                                     const fa_ref_scratch *w, double lse_slack) {
  const double sink = fa_ref_sink(c, r->h), lse = w->l[k];
  if (sink == -INFINITY) return (fa_bound_sink){0, 0};
  const double eta =
      u * (2 * fabs(sink - lse) + fabs(sink) + 3 * fabs(lse)) + c->profile->eps_exp + lse_slack;
  return (fa_bound_sink){exp(sink - lse - w->rest[k]), grown(eta)};
}

double fa_bound_sink_added(const fa_ref_call *c, const fa_ref_rows *r, int64_t k, const fa_ref_scratch *w) {
  const double sink = fa_ref_sink(c, r->h);
  if (!fa_ref_sink_left_out(c) || sink == -INFINITY) return 0;
  return 2 * c->profile->eps_exp + c->profile->eps_log + 8 * u * (fabs(sink) + fabs(w->l[k]));
}

void fa_bound_sink_rows(const fa_ref_call *c, const fa_ref_rows *r, const fa_ref_scratch *w) {
  const fa_profile *p = c->profile;
  fa_want *lse = &c->out->t[FA_T_LSE];
  const double sink = fabs(fa_ref_sink(c, r->h)), rounds = p->max_splits > 1 ? p->max_splits : 0;
  for (int64_t k = 0; k < r->n && c->p->sinks.in_lse && sink < INFINITY; ++k) {
    const int64_t at = fa_ref_lse_index(c, r->e, r->h, r->row[k]);
    if (w->key_l[k] > 0) continue;
    lse->accum[at] = (float)((1 + rounds) * (p->eps_log + p->eps_exp + 4 * u * sink) + 4 * u * sink);
  }
}
