/* Gradients of one head. */
#include "tests/exec/simulated/head.h"
#include "tests/exec/simulated/sum.h"

#include <math.h>
#include <string.h>

static sim_format format_of(const sim_call *call, int f) {
  return f == SIM_IO ? call->io : (sim_format)f;
}

static sim_format p_format_of(const sim_call *call) {
  return format_of(call, call->c->p == SIM_E4M3 ? SIM_IO : call->c->p);
}

static float round_p(const sim_call *call, float p) {
  return sim_round(p, p_format_of(call), call->c->p_truncate);
}

/* P in dS = P (Z dP - delta). */
static float p_of_ds(const sim_call *call, float p) {
  return call->c->p_in_ds ? round_p(call, p) : p;
}

/* dP holds Z dP. */
static float delta_of(const sim_call *call, const sim_head *e, int64_t i) {
  const sim_config *c = call->c;
  const int64_t at = i * e->n_k;
  float sum = 0.0f;
  const sim_format each = c->delta_rounded ? call->io : SIM_F32;
  for (int64_t d = 0; d < e->dv && c->delta != SIM_SUM_P_DP; ++d) {
    const float o = e->o[i * e->dv + d], given = c->delta == SIM_STORED_O ? sim_round(o, call->io, false) : o;
    sum += sim_round(e->d_o[i * e->dv + d] * given, each, false);
  }
  sum = sim_round(sum, each, false);
  for (int64_t j = 0; j < e->n_k && c->delta == SIM_SUM_P_DP; ++j)
    sum += p_of_ds(call, e->prob[at + j]) * e->dp[at + j];
  return c->dlse_ignored ? sum : sum - e->d_lse[i];
}

/* P without dropout, as the backward has it. */
static void set_probabilities(const sim_call *call, sim_head *e, int64_t i) {
  const int64_t at = i * e->n_k;
  const sim_config *c = call->c;
  float m = -INFINITY, sum = 0.0f;
  for (int64_t j = 0; j < e->n_k; ++j) m = fmaxf(m, e->x[at + j]);
  for (int64_t j = 0; j < e->n_k && c->p_kept; ++j) sum += sim_exp(c, e->x[at + j], m);
  for (int64_t j = 0; j < e->n_k; ++j) {
    e->prob[at + j] = m == -INFINITY ? 0.0f
                      : c->p_kept    ? sim_exp(c, e->x[at + j], m) / sum
                                     : sim_exp(c, e->x[at + j], e->lse[i]);
  }
}

static float scale_of(const sim_call *call) {
  return (float)(call->p->scale * call->c->scale_factor);
}

/* Z dP of row i. */
static void set_dp(const sim_call *call, sim_head *e, int64_t i, const float *d_o, const float *v) {
  const sim_unit unit = sim_unit_of(call->c, SIM_DP);
  const sim_format f = format_of(call, call->c->dp);
  for (int64_t j = 0; j < e->n_k; ++j) {
    const float dp = sim_round(sim_dot(&unit, e->dv, d_o + i * e->dv, v + j * e->dv, 0.0f), f, false);
    e->dp[i * e->n_k + j] = sim_round(e->keep[i * e->n_k + j] * dp, f, false);
  }
}

/* dP, then dS; prob becomes the operand of dV. */
static void softmax_gradient(const sim_call *call, sim_head *e, const float *v) {
  const sim_config *c = call->c;
  const sim_format ds_format = format_of(call, c->ds);
  const float early = c->ds_scaled ? scale_of(call) : 1.0f;
  float *d_o = e->scratch + e->n_k * e->dv;
  sim_operand(call, SIM_DP, e->d_o, e->n_q, e->dv, false, d_o);
  for (int64_t i = 0; i < e->n_q; ++i) {
    const int64_t at = i * e->n_k;
    set_dp(call, e, i, d_o, v);
    set_probabilities(call, e, i);
    const float delta = delta_of(call, e, i);
    for (int64_t j = 0; j < e->n_k; ++j) {
      float *p = &e->prob[at + j];
      const float used = p_of_ds(call, *p), ds = used * (e->dp[at + j] - delta);
      e->dp[at + j] = used == 0.0f ? 0.0f : ds; /* of the bias */
      e->ds[at + j] =
          used == 0.0f ? 0.0f : sim_round(ds * e->chain[at + j] * early, ds_format, c->ds_truncate);
      *p = round_p(call, (c->dropout_rounded ? round_p(call, *p) : *p) * e->keep[at + j]);
    }
  }
}

static void transpose(const float *x, int64_t rows, int64_t width, float *to) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t w = 0; w < width; ++w) to[w * rows + r] = x[r * width + w];
}

static void write_dq(const sim_call *call, sim_head *e) {
  const fa_plugin_tensor *t = &call->t->dq;
  const sim_unit unit = sim_unit_of(call->c, SIM_DQ);
  const float scale = call->c->dq_unscaled || call->c->ds_scaled ? 1.0f : scale_of(call);
  float *kt = e->scratch;
  if (!t->data) return;
  sim_operand(call, SIM_DQ, e->k, e->n_k, e->d, true, kt);
  for (int64_t i = 0; i < e->n_q; ++i)
    for (int64_t d = 0; d < e->d; ++d) {
      float x = scale * sim_dot(&unit, e->n_k, e->ds + i * e->n_k, kt + d * e->n_k, 0.0f);
      if (call->c->nondeterministic && call->runs % 2) x *= 1.0f + 0x1p-7f;
      sim_store(t->data, t->dtype, sim_row_q(call, e, t, i) + d * t->stride[t->rank - 1], x);
    }
}

/* to[n_k][width] += a^T b, a [n_q][n_k], b [n_q][width]; at: room for both, transposed. */
static void add_keys(const sim_call *call, const sim_head *e, sim_product which, const float *a,
                     const float *b, int64_t width, float factor, float *at, float *to) {
  const sim_unit unit = sim_unit_of(call->c, which);
  float *bt = at + e->n_q * e->n_k;
  transpose(a, e->n_q, e->n_k, at);
  sim_operand(call, which, b, e->n_q, width, true, bt);
  for (int64_t j = 0; j < e->n_k; ++j)
    for (int64_t d = 0; d < width; ++d) {
      const float part = factor * sim_dot(&unit, e->n_q, at + j * e->n_q, bt + d * e->n_q, 0.0f);
      to[j * width + d] += call->c->gqa_partials_rounded ? sim_round(part, call->io, false) : part;
    }
}

bool sim_backward(const sim_call *call, sim_head *e) {
  const float scale = call->c->dk_unscaled || call->c->ds_scaled ? 1.0f : scale_of(call);
  const int64_t first = e->hk * e->longest + e->leftpad;
  float *v = e->scratch;
  sim_operand(call, SIM_DP, e->v, e->n_k, e->dv, false, v);
  softmax_gradient(call, e, v);
  write_dq(call, e);
  add_keys(call, e, SIM_DV, e->prob, e->d_o, e->dv, 1.0f, e->scratch, call->d_v + first * e->dv);
  add_keys(call, e, SIM_DK, e->ds, e->q, e->d, scale, e->scratch, call->d_k + first * e->d);
  return true;
}
