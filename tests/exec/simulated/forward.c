/* Softmax and the product with V: tile after tile with a running maximum, in splits, or a whole row at once. */
#include "tests/exec/simulated/head.h"
#include "tests/exec/simulated/sum.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LOG2_E 1.44269504088896340736f

/* 2^x by a polynomial of third degree between whole numbers: off by 1e-4 of itself. */
static float exp2_poly(float x) {
  if (x < -126.0f) return 0.0f;
  const float whole = floorf(x), r = x - whole;
  return ldexpf(1.0f + r * (0.695146f + r * (0.227651f + r * 0.077120f)), (int)whole);
}

/* A relative error below 2^-22 that depends on the argument alone. */
static float disturb(float y) {
  const union {
    float f;
    uint32_t u;
  } b = {.f = y};
  const uint32_t hash = (b.u * 2654435761u) >> 16;
  return y * (1.0f + ((float)hash - 32768.0f) * 0x1p-38f);
}

float sim_exp(const sim_config *c, float x, float m) {
  if (x == -INFINITY) return 0.0f;
  if (!c->exp_scaled && c->exp == SIM_EXP_LIBM) return expf(x - m);
  const bool fits = isfinite(m * LOG2_E) && isfinite(x * LOG2_E);
  const float y = c->exp_scaled && fits ? fmaf(x, LOG2_E, -m * LOG2_E) : (x - m) * LOG2_E;
  if (c->exp == SIM_EXP_POLY) return exp2_poly(y);
  return c->exp == SIM_EXP_APPROX ? disturb(exp2f(y)) : exp2f(y);
}

typedef struct state {
  float m, sum;
  float *acc; /* [dv] */
} state;

typedef struct row {
  const sim_call *call;
  const sim_head *e;
  sim_unit unit;
  const float *vt; /* [dv][n_k] */
  const float *x, *keep;
  float *p; /* [n_k]: P as the second product gets it */
  /* V's descale, where all keys have one, comes behind the sums; otherwise each key's is in P. */
  float rescale, unscale;
} row;

static float round_p(const sim_call *call, float p) {
  const sim_config *c = call->c;
  const sim_format f = c->p == SIM_IO ? call->io : (sim_format)c->p;
  if (f == SIM_F32 || p == 0.0f) return p;
  const float scaled = p * (float)c->p_scale;
  if (c->p_nan && f == SIM_E4M3 && scaled > 464.0f) return NAN;
  return sim_round(scaled, f, c->p_truncate) / (float)c->p_scale;
}

/* P as the product with V takes it, behind dropout. */
static float drop(const sim_call *call, float p, float keep) {
  return round_p(call, (call->c->dropout_rounded ? round_p(call, p) : p) * keep);
}

/* Keys from .. to - 1 join the state. */
static void add_tile(const row *r, int64_t from, int64_t to, state *s) {
  float m = s->m;
  for (int64_t j = from; j < to; ++j) m = fmaxf(m, r->x[j]);
  if (s->m != -INFINITY && (m - s->m) * LOG2_E < (float)r->call->c->max_lag) m = s->m;
  if (m == -INFINITY) {
    memset(r->p + from, 0, (size_t)(to - from) * sizeof *r->p);
    return;
  }
  const float alpha = s->m == -INFINITY ? 0.0f : sim_exp(r->call->c, s->m, m);
  float sum = 0.0f;
  for (int64_t j = from; j < to; ++j) {
    const float p = sim_exp(r->call->c, r->x[j], m);
    sum += p;
    r->p[j] = drop(r->call, p * r->e->dv_of[j] * r->unscale, r->keep[j]);
  }
  s->sum = s->sum * alpha + sum;
  s->m = m;
  for (int64_t d = 0; d < r->e->dv; ++d) {
    const float *v = r->vt + d * r->e->n_k + from;
    const float old = s->acc[d] * alpha;
    s->acc[d] = r->call->c->fresh_accumulator ? old + sim_dot(&r->unit, to - from, r->p + from, v, 0.0f)
                                              : sim_dot(&r->unit, to - from, r->p + from, v, old);
  }
}

static state attend(const row *r, int64_t from, int64_t to, float *acc) {
  const int64_t tile = r->call->c->block_n > 0 ? r->call->c->block_n : to - from;
  state s = {.m = -INFINITY, .sum = 0.0f, .acc = acc};
  memset(acc, 0, (size_t)r->e->dv * sizeof *acc);
  for (int64_t j = from; j < to; j += tile) add_tile(r, j, j + tile < to ? j + tile : to, &s);
  return s;
}

/* Partial results of ranges of keys, kept in a format of their own, and added up by weight. */
static state attend_in_splits(const row *r, float *acc, float *part) {
  const sim_config *c = r->call->c;
  const sim_format f = c->partial == SIM_IO ? r->call->io : (sim_format)c->partial;
  const int64_t n = r->e->n_k, each = (n + c->splits - 1) / c->splits, dv = r->e->dv;
  state all = {.m = -INFINITY, .sum = 0.0f, .acc = acc};
  memset(acc, 0, (size_t)dv * sizeof *acc);
  for (int64_t from = 0; from < n; from += each) {
    const state s = attend(r, from, from + each < n ? from + each : n, part);
    if (s.m == -INFINITY) continue;
    const float m = fmaxf(all.m, s.m), old = all.m == -INFINITY ? 0.0f : sim_exp(c, all.m, m);
    const float fresh = sim_exp(c, s.m, m);
    for (int64_t d = 0; d < dv; ++d) {
      const float kept = c->partial_unnormalised ? sim_round(s.acc[d], f, false)
                                                 : sim_round(s.acc[d] / s.sum, f, false) * s.sum;
      acc[d] = acc[d] * old + kept * fresh;
    }
    all.sum = all.sum * old + s.sum * fresh;
    all.m = m;
  }
  return all;
}

/* The softmax first, rounded, then the product: as libraries of matrix functions do it. */
static state attend_normalised(const row *r, float *acc) {
  const int64_t n = r->e->n_k;
  state s = {.m = -INFINITY, .sum = 0.0f, .acc = acc};
  for (int64_t j = 0; j < n; ++j) s.m = fmaxf(s.m, r->x[j]);
  for (int64_t j = 0; j < n; ++j)
    s.sum += r->p[j] = s.m == -INFINITY ? 0.0f : sim_exp(r->call->c, r->x[j], s.m);
  for (int64_t j = 0; j < n; ++j)
    r->p[j] = s.sum > 0.0f ? drop(r->call, r->p[j] / s.sum * r->e->dv_of[j] * r->unscale, r->keep[j]) : 0.0f;
  for (int64_t d = 0; d < r->e->dv; ++d) acc[d] = sim_dot(&r->unit, n, r->p, r->vt + d * n, 0.0f);
  return s;
}

static void empty_row(const sim_call *call, const sim_head *e, float *o, float *lse) {
  static const float values[] = {
      [SIM_POS_INF] = INFINITY, [SIM_NEG_INF] = -INFINITY, [SIM_NAN] = NAN, [SIM_ZERO] = 0};
  const int how = call->c->o_of_empty;
  *lse = call->c->lse_of_empty == SIM_AS_CASE ? call->p->empty_lse : values[call->c->lse_of_empty];
  for (int64_t d = 0; d < e->dv; ++d) {
    float sum = 0.0f;
    for (int64_t j = 0; j < e->n_k && how == SIM_MEAN_V; ++j) sum += e->v[j * e->dv + d];
    o[d] = how == SIM_NAN ? NAN : sum / (float)(e->n_k > 0 ? e->n_k : 1);
  }
}

static void store_row(const sim_call *call, const sim_head *e, int64_t i) {
  const sim_config *c = call->c;
  const fa_plugin_tensor *o = &call->t->o, *lse = &call->t->lse;
  const int64_t at = sim_row_q(call, e, o, i);
  for (int64_t d = 0; d < e->dv; ++d) sim_store_o(call, at + d * o->stride[o->rank - 1], e->o[i * e->dv + d]);
  float x = e->lse[i];
  if (isfinite(x) && c->lse_alibi_column && call->t->alibi_slopes.data) {
    const fa_plugin_tensor *t = &call->t->alibi_slopes;
    const int64_t slope = t->rank == 2 ? e->b * t->stride[0] + e->h * t->stride[1] : e->h * t->stride[0];
    x += sim_load(t->data, t->dtype, slope) * (float)(i + e->n_k - e->n_q);
  }
  if (isfinite(x) && c->lse_unscaled) x /= (float)call->p->scale;
  if (isfinite(x) && c->lse_base2) x *= LOG2_E;
  if (!c->lse_none && lse->data) sim_store(lse->data, lse->dtype, sim_row_lse(call, e, lse, i), x);
}

/* The debug matrix shows what dropout keeps; its magnitudes are free. */
static void store_signs(const sim_call *call, const sim_head *e, int64_t i) {
  const fa_plugin_tensor *t = &call->t->p_debug;
  const int64_t at = e->b * t->stride[0] + e->h * t->stride[1] + i * t->stride[2];
  for (int64_t j = 0; j < e->n_k && t->data; ++j)
    sim_store(t->data, t->dtype, at + j * t->stride[3], e->keep[i * e->n_k + j] > 0.0f ? 1.0f : -1.0f);
}

static void finish(const row *r, state s, bool normalised, float *o, float *lse) {
  *lse = s.m + logf(s.sum);
  const bool narrow =
      r->call->c->o_bug == SIM_O_ROUNDED_TWICE; /* else 16 bits, also where O has 8 in the end */
  const sim_format io = sim_format_of(narrow ? r->call->t->o.dtype : r->call->p->dtype);
  for (int64_t d = 0; d < r->e->dv; ++d) {
    const float x = normalised ? s.acc[d] : s.acc[d] / s.sum;
    o[d] = (r->call->c->o_descaled_late ? sim_round(x, io, false) : x) * r->rescale;
  }
}

void sim_forward(const sim_call *call, sim_head *e) {
  const sim_config *c = call->c;
  float *vt = e->scratch, *acc = vt + e->n_k * e->dv, *part = acc + e->dv;
  row r = {.call = call, .e = e, .unit = sim_unit_of(c, SIM_PV), .vt = vt, .rescale = 1.0f, .unscale = 1.0f};
  bool same = e->n_k > 0;
  for (int64_t j = 1; j < e->n_k; ++j) same &= e->dv_of[j] == e->dv_of[0];
  if (same) r.rescale = e->dv_of[0], r.unscale = 1.0f / e->dv_of[0];
  sim_dropout(call, e, e->keep);
  sim_operand(call, SIM_PV, e->v, e->n_k, e->dv, true, vt);
  for (int64_t i = 0; i < e->n_q; ++i) {
    r.x = e->x + i * e->n_k;
    r.keep = e->keep + i * e->n_k;
    r.p = e->prob + i * e->n_k;
    const state s = c->normalise_before ? attend_normalised(&r, acc)
                    : c->splits > 1     ? attend_in_splits(&r, acc, part)
                                        : attend(&r, 0, e->n_k, acc);
    if (s.m == -INFINITY)
      empty_row(call, e, e->o + i * e->dv, &e->lse[i]);
    else
      finish(&r, s, c->normalise_before, e->o + i * e->dv, &e->lse[i]);
    sim_amax_row(call, e, i, r.x, s.m, s.sum, r.rescale, r.p);
    store_row(call, e, i);
    store_signs(call, e, i);
  }
}
