#include "ref/tiles/sink.h"

#include <math.h>
#include <string.h>

double fa_ref_sink(const fa_ref_call *c, int64_t h) {
  return c->p->sinks.present ? fa_tensor_get(&c->in->t[FA_T_SINKS], &h) : -INFINITY;
}

bool fa_ref_sink_left_out(const fa_ref_call *c) {
  return c->p->sinks.present && !c->p->sinks.in_lse;
}

void fa_ref_sink_join(const fa_ref_call *c, const fa_ref_rows *r, fa_ref_scratch *w) {
  const double sink = fa_ref_sink(c, r->h);
  if (!c->p->sinks.present) return; /* key_m and key_l are m and l */
  memcpy(w->key_m, w->m, (size_t)r->n * sizeof *w->m);
  memcpy(w->key_l, w->l, (size_t)r->n * sizeof *w->l);
  for (int64_t k = 0; k < r->n && sink > -INFINITY; ++k) {
    const double top = fmax(w->m[k], sink), by = exp(w->m[k] - top);
    w->l[k] = w->l[k] * by + exp(sink - top);
    w->m[k] = top;
    for (int64_t x = k * c->dv; x < (k + 1) * c->dv; ++x) w->acc[x] *= by;
  }
}

fa_ref_lse fa_ref_sink_add(fa_ref_lse keys, double sink) {
  if (sink == -INFINITY || keys.value == INFINITY) return keys; /* +inf: the sign of a row without keys */
  const double top = fmax(keys.value, sink);
  return fa_ref_lse_of(top, exp(keys.value - top + keys.rest) + exp(sink - top));
}
