/* Scores: the first product and the chain after it. */
#include "tests/exec/simulated/head.h"
#include "tests/exec/simulated/sum.h"

#include <math.h>

static bool is_visible(const sim_call *call, const sim_head *e, int64_t i, int64_t j) {
  const fa_plugin_problem *p = call->p;
  const bool top_left = p->align_top_left || call->c->top_left;
  const int64_t at = i + (top_left ? 0 : e->n_k - e->n_q);
  const bool causal = p->window_left < 0 && p->window_right == 0;
  const int64_t left = p->window_left + call->c->window_left_more;
  const int64_t right = p->window_right + (causal ? 0 : call->c->window_right_more);
  if (call->c->tall_unmasked && causal && i / 64 * 64 + at - i < 0) return true;
  if (call->c->drop_last_key && j == e->n_k - 1 && e->n_k > 1) return false;
  if (p->window_left >= 0 && j < at - left) return false;
  return p->window_right < 0 || j <= at + right;
}

static float bias_at(const sim_call *call, const sim_head *e, int64_t i, int64_t j) {
  const fa_plugin_tensor *t = &call->t->bias;
  const int64_t b = t->shape[0] > 1 ? e->b : 0, h = t->shape[1] > 1 ? e->h : 0, q = t->shape[2] > 1 ? i : 0;
  return sim_load(t->data, t->dtype,
                  b * t->stride[0] + h * t->stride[1] + q * t->stride[2] + j * t->stride[3]);
}

static float slope_of(const sim_call *call, const sim_head *e) {
  const fa_plugin_tensor *t = &call->t->alibi_slopes;
  if (!t->data) return 0.0f;
  return sim_load(t->data, t->dtype,
                  t->rank == 2 ? e->b * t->stride[0] + e->h * t->stride[1] : e->h * t->stride[0]);
}

static float softcap(const sim_call *call, float x, float *derivative) {
  const float cap = (float)call->p->softcap, th = tanhf(x / cap);
  *derivative = 1.0f - th * th;
  return cap * th;
}

/* One score's way from the product to the softmax, rounded after every step if the configuration says so. */
static float chain(const sim_call *call, const sim_head *e, float s, float slope, int64_t i, int64_t j,
                   float *derivative) {
  const sim_config *c = call->c;
  const sim_format f = c->scores == SIM_IO ? call->io : (sim_format)c->scores;
  const float scale = (float)(call->p->scale * c->scale_factor);
  const int64_t distance = i + e->n_k - e->n_q - j;
  float x = sim_round(s, f, false);
  x *= e->dq[i] * e->dk[j];
  *derivative = 1.0f;
  if (call->p->softcap > 0 && c->softcap_before_scale) x = softcap(call, x, derivative);
  x = sim_round(x * scale, f, false);
  if (call->p->softcap > 0 && !c->softcap_before_scale) x = sim_round(softcap(call, x, derivative), f, false);
  if (slope != 0.0f) {
    const float away = slope * (float)(distance < 0 ? -distance : distance);
    x = sim_round(c->alibi_flipped ? x + away : x - away, f, false);
  }
  if (call->t->bias.data) x = sim_round(x + bias_at(call, e, i, j), f, false);
  return x;
}

void sim_scores(const sim_call *call, sim_head *e) {
  const sim_unit unit = sim_unit_of(call->c, SIM_QK);
  float *q = e->scratch, *k = q + e->n_q * e->d;
  const float slope = slope_of(call, e);
  const float root = call->c->root_scale ? sqrtf((float)call->p->scale) : 1.0f;
  sim_operand(call, SIM_QK, e->q, e->n_q, e->d, false, q);
  sim_operand(call, SIM_QK, e->k, e->n_k, e->d, false, k);
  for (int64_t i = 0; root != 1.0f && i < (e->n_q + e->n_k) * e->d; ++i) q[i] *= root;
  for (int64_t i = 0; i < e->n_q; ++i)
    for (int64_t j = 0; j < e->n_k; ++j) {
      const int64_t at = i * e->n_k + j;
      e->x[at] = -INFINITY;
      if (!is_visible(call, e, i, j)) continue;
      const float s = sim_dot(&unit, e->d, q + i * e->d, k + j * e->d, 0.0f) / (root * root);
      e->x[at] = chain(call, e, s, slope, i, j, &e->chain[at]);
    }
}
