/* The largest magnitudes of P and of O. */
#include "tests/exec/simulated/head.h"

#include <math.h>

void sim_amax_begin(const sim_call *call) {
  const fa_plugin_tensor *p = &call->t->amax_p, *o = &call->t->amax_o;
  *call->amax = (sim_amax){0.0f, 0.0f};
  if (!p->data || call->c->amax_bug != SIM_UNCLEARED) return;
  call->amax->p = fmaxf(0.0f, sim_load(p->data, p->dtype, 0)); /* a NaN is passed over */
  call->amax->o = fmaxf(0.0f, sim_load(o->data, o->dtype, 0));
}

static bool is_left_out(const sim_call *call, const sim_head *e, int64_t i) {
  const int bug = call->c->amax_bug;
  return (bug == SIM_FIRST_ROWS && i >= 64) || (bug == SIM_FIRST_HEAD && e->h > 0) ||
         (bug == SIM_LAST_SEQUENCE && e->b + 1 < call->p->batch);
}

static float largest_p(const sim_call *call, const sim_head *e, const float *x, float m, float sum,
                       const float *p) {
  const sim_config *c = call->c;
  const int64_t n = c->amax_bug == SIM_FIRST_KEYS && c->block_n < e->n_k ? c->block_n : e->n_k;
  float most = 0.0f, rounded = 0.0f;
  if (c->amax_from_lse) {
    for (int64_t j = 0; j < e->n_k; ++j) most = fmaxf(most, sim_exp(c, x[j], m + logf(sum)));
    return most;
  }
  for (int64_t j = 0; j < n; ++j) most = fmaxf(most, sim_exp(c, x[j], m));
  for (int64_t j = 0; j < n; ++j) rounded = fmaxf(rounded, p[j]);
  switch (c->amax_bug) {
  case SIM_RELATIVE:
    return most;
  case SIM_SCALED:
    return most / sum * (float)c->p_scale;
  case SIM_DROPPED:
    return rounded / sum;
  default:
    return most / sum;
  }
}

void sim_amax_row(const sim_call *call, const sim_head *e, int64_t i, const float *x, float m, float sum,
                  float descale, const float *p) {
  const int bug = call->c->amax_bug;
  if (m == -INFINITY || is_left_out(call, e, i)) return;
  call->amax->p = fmaxf(call->amax->p, largest_p(call, e, x, m, sum, p));
  for (int64_t d = 0; d < e->dv; ++d) {
    const float o = e->o[i * e->dv + d] / (bug == SIM_BEFORE_DESCALE ? descale : 1.0f) *
                    (call->c->o_bug == SIM_AMAX_BEHIND_SCALE ? sim_o_scale(call) : 1.0f);
    call->amax->o = fmaxf(call->amax->o, bug == SIM_SIGNED ? o : fabsf(o));
  }
}

void sim_amax_store(const sim_call *call) {
  const fa_plugin_tensor *p = &call->t->amax_p, *o = &call->t->amax_o;
  if (p->data) sim_store(p->data, p->dtype, 0, call->amax->p);
  if (o->data) sim_store(o->data, o->dtype, 0, call->amax->o);
}
