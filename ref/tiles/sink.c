#include "ref/tiles/sink.h"

#include <math.h>
#include <string.h>

double fa_ref_sink(const fa_ref_call *c, int64_t h) {
  return c->p->sinks.present ? fa_tensor_get(&c->in->t[FA_T_SINKS], &h) : -INFINITY;
}

void fa_ref_sink_join(const fa_ref_call *c, const fa_ref_rows *r, fa_ref_scratch *w) {
  const double sink = fa_ref_sink(c, r->h);
  if (!c->p->sinks.present) return; /* key_m and key_l are m and l */
  memcpy(w->key_m, w->m, (size_t)r->n * sizeof *w->m);
  memcpy(w->key_l, w->l, (size_t)r->n * sizeof *w->l);
  for (int64_t k = 0; k < r->n && sink > -INFINITY; ++k) {
    const fa_ref_joined both = fa_ref_sink_joined(w->m[k], w->l[k], sink);
    w->l[k] = both.l;
    w->m[k] = both.m;
    for (int64_t x = k * c->dv; x < (k + 1) * c->dv; ++x) w->acc[x] *= both.by;
  }
}
