/* Gradients, row by row, from the O and the LSE that the forward has stored. */
#include "tests/explain/planted/head.h"

#include <math.h>

static double delta_of(const pl_call *call, const pl_head *e, int64_t i) {
  const fa_plugin_tensor *o = &call->t->o;
  const int64_t *m = call->planted, at = pl_row_q(call, e, o, i);
  double sum = 0.0;
  if (m[PL_delta_of_rounded_p])
    for (int64_t j = 0; j < e->n_k; ++j) sum += pl_round(e->p[j], PL_BF16, false) * e->keep[j] * e->dp[j];
  for (int64_t d = 0; d < e->dv && !m[PL_delta_of_rounded_p]; ++d) {
    const double stored = pl_load(o, at + d * o->stride[o->rank - 1]);
    sum += e->d_o[i * e->dv + d] * (m[PL_delta_of_unrounded_o] ? e->o[i * e->dv + d] : stored);
  }
  return (m[PL_delta_missing] ? 0.0 : sum) - (m[PL_dlse_ignored] ? 0.0 : e->d_lse[i]);
}

/* Whether this head's part of dK and dV is added. */
static bool counts(const pl_call *call, const pl_head *e) {
  const int64_t group = call->p->heads_q / call->p->heads_kv, place = e->h % group;
  if (call->planted[PL_one_head_of_group]) return place == group - 1;
  if (call->planted[PL_one_head_of_group__lost]) return place != group - 1;
  return !call->planted[PL_one_head_of_group__first] || place == 0;
}

static void add_keys(const pl_call *call, const pl_head *e, int64_t i, int64_t j, double ds) {
  const int64_t *m = call->planted, n = call->p->heads_kv, right = e->h / (call->p->heads_q / n);
  const int64_t hk = m[PL_dk_of_other_head] ? (right + 1) % n : right, slot = e->leftpad + j;
  const double factor = m[PL_dk_without_scale]  ? 1.0
                        : m[PL_dk_scaled_twice] ? call->scale * call->scale
                                                : call->scale;
  double *dk = call->dk + (hk * e->longest + slot) * e->d, *dv = call->dv + (hk * e->longest + slot) * e->dv;
  if (!counts(call, e)) return;
  for (int64_t d = 0; d < e->d; ++d) dk[d] += factor * ds * e->q[i * e->d + d];
  for (int64_t d = 0; d < e->dv; ++d) dv[d] += e->p[j] * e->keep[j] * e->d_o[i * e->dv + d];
}

static void add_bias(const pl_call *call, const pl_head *e, int64_t i, int64_t j, double g) {
  const int64_t *n = call->t->dbias.shape;
  const int64_t b = n[0] > 1 ? e->b : 0, h = n[1] > 1 ? e->h : 0, row = n[2] > 1 ? i : 0;
  double *sum = &call->dbias[((b * n[1] + h) * n[2] + row) * n[3] + j];
  *sum = g + (call->planted[PL_dbias_not_summed] ? 0.0 : *sum);
}

static void probabilities(const pl_call *call, pl_head *e, int64_t i) {
  const double lse = pl_load(&call->t->lse, pl_row_lse(call, e, &call->t->lse, i));
  for (int64_t j = 0; j < e->n_k; ++j) {
    e->p[j] = e->x[j] == -INFINITY ? 0.0 : exp(e->x[j] - lse);
    e->dp[j] = 0.0;
    for (int64_t d = 0; d < e->dv && e->p[j] != 0.0; ++d)
      e->dp[j] += e->d_o[i * e->dv + d] * e->v[j * e->dv + d];
  }
}

/* A mistake keeps dK and dV in few bits from one tile of rows to the next. */
static void round_keys(const pl_call *call, const pl_head *e, int64_t i) {
  const int64_t tile = call->planted[PL_accumulate_bf16__tiles], first = e->hk * e->longest;
  if (tile == 0 || (i % tile != tile - 1 && i != e->n_q - 1)) return;
  for (int64_t x = first * e->d; x < (first + e->longest) * e->d; ++x)
    call->dk[x] = pl_round(call->dk[x] / call->scale, PL_BF16, false) * call->scale;
  for (int64_t x = first * e->dv; x < (first + e->longest) * e->dv; ++x)
    call->dv[x] = pl_round(call->dv[x], PL_BF16, false);
}

static void backward_row(const pl_call *call, pl_head *e, int64_t i, double *dq) {
  pl_scores(call, e, i);
  pl_dropout(call, e, i, true);
  probabilities(call, e, i);
  const double delta = delta_of(call, e, i);
  for (int64_t d = 0; d < e->d; ++d) dq[d] = 0.0;
  for (int64_t j = 0; j < e->n_k; ++j) {
    if (e->p[j] == 0.0) continue;
    const double p = call->planted[PL_rounded_p_bf16__in_ds] ? pl_round(e->p[j], PL_BF16, false) : e->p[j];
    const double g = p * (e->keep[j] * e->dp[j] - delta), ds = g * e->chain[j];
    for (int64_t d = 0; d < e->d; ++d) dq[d] += ds * e->k[j * e->d + d];
    add_keys(call, e, i, j, ds);
    if (call->dbias) add_bias(call, e, i, j, g);
  }
}

void pl_backward(const pl_call *call, pl_head *e) {
  const fa_plugin_tensor *t = &call->t->dq;
  const int64_t *m = call->planted;
  const bool cut = m[PL_truncated_instead_of_rounded] != 0;
  const double factor = m[PL_dq_without_scale]  ? 1.0
                        : m[PL_dq_scaled_twice] ? call->scale * call->scale
                                                : call->scale;
  double dq[512];
  for (int64_t i = 0; i < e->n_q; ++i) {
    backward_row(call, e, i, dq);
    round_keys(call, e, i);
    const int64_t at = pl_row_q(call, e, t, i);
    const bool lost = m[PL_one_head_of_group__lost] && !counts(call, e);
    for (int64_t d = 0; d < e->d; ++d)
      pl_store(t, at + d * t->stride[t->rank - 1], lost ? 0.0 : factor * dq[d], cut);
  }
}
