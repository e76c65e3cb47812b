/* Which elements belong to a head, and its operands. */
#include "tests/exec/simulated/head.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void set_lengths(const sim_call *call, sim_head *e) {
  const fa_plugin_problem *p = call->p;
  const fa_plugin_tensors *t = call->t;
  const bool cache = t->cache_seqlens.data != NULL;
  e->n_q = p->seqlen_q;
  e->n_k = e->longest = p->seqlen_k;
  if (p->cu_seqlens_q) {
    e->q_start = p->cu_seqlens_q[e->b];
    e->k_start = p->cu_seqlens_k[e->b];
    e->n_q = p->cu_seqlens_q[e->b + 1] - e->q_start;
    e->n_k = e->longest = p->cu_seqlens_k[e->b + 1] - e->k_start;
  }
  if (cache) e->n_k = sim_load_int(t->cache_seqlens.data, e->b * t->cache_seqlens.stride[0]);
  if (t->seqused_k.data) e->n_k = sim_load_int(t->seqused_k.data, e->b * t->seqused_k.stride[0]);
  if (t->leftpad_k.data) e->leftpad = sim_load_int(t->leftpad_k.data, e->b * t->leftpad_k.stride[0]);
  e->n_k -= e->leftpad;
}

int64_t sim_row_q(const sim_call *call, const sim_head *e, const fa_plugin_tensor *t, int64_t i) {
  if (call->p->cu_seqlens_q) return (e->q_start + i) * t->stride[0] + e->h * t->stride[1];
  return e->b * t->stride[0] + i * t->stride[1] + e->h * t->stride[2];
}

/* j counts slots, leftpad included. */
int64_t sim_row_k(const sim_call *call, const sim_head *e, const fa_plugin_tensor *t, int64_t hk, int64_t j) {
  const fa_plugin_tensors *all = call->t;
  if (call->p->cu_seqlens_q) return (e->k_start + j) * t->stride[0] + hk * t->stride[1];
  int64_t row = e->b;
  if (all->block_table.data) {
    const int64_t *s = all->block_table.stride, page = j / call->p->page_size;
    row = sim_load_int(all->block_table.data, e->b * s[0] + page * s[1]);
    j %= call->p->page_size;
  } else if (all->cache_batch_idx.data) {
    row = sim_load_int(all->cache_batch_idx.data, e->b * all->cache_batch_idx.stride[0]);
  }
  return row * t->stride[0] + j * t->stride[1] + hk * t->stride[2];
}

int64_t sim_row_lse(const sim_call *call, const sim_head *e, const fa_plugin_tensor *t, int64_t i) {
  if (call->p->cu_seqlens_q) return e->h * t->stride[0] + (e->q_start + i) * t->stride[1];
  return e->b * t->stride[0] + e->h * t->stride[1] + i * t->stride[2];
}

static void load_row(const fa_plugin_tensor *t, int64_t at, int64_t width, float *to) {
  const int64_t step = t->stride[t->rank - 1];
  for (int64_t d = 0; d < width; ++d) to[d] = sim_load(t->data, t->dtype, at + d * step);
}

static void load_operands(const sim_call *call, sim_head *e) {
  const fa_plugin_tensors *t = call->t;
  for (int64_t i = 0; i < e->n_q; ++i) {
    load_row(&t->q, sim_row_q(call, e, &t->q, i), e->d, e->q + i * e->d);
    if (e->d_o) load_row(&t->d_o, sim_row_q(call, e, &t->d_o, i), e->dv, e->d_o + i * e->dv);
    e->d_lse[i] = t->d_lse.data && call->d_k
                      ? sim_load(t->d_lse.data, t->d_lse.dtype, sim_row_lse(call, e, &t->d_lse, i))
                      : 0.0f;
  }
  for (int64_t j = 0; j < e->n_k; ++j) {
    load_row(&t->k, sim_row_k(call, e, &t->k, e->hk, e->leftpad + j), e->d, e->k + j * e->d);
    load_row(&t->v, sim_row_k(call, e, &t->v, e->hk, e->leftpad + j), e->dv, e->v + j * e->dv);
  }
}

static float *reserve(float **at, int64_t n) {
  float *mine = *at;
  *at += n;
  return mine;
}

bool sim_head_make(const sim_call *call, int64_t b, int64_t h, sim_head *e) {
  const fa_plugin_problem *p = call->p;
  const int64_t group = p->heads_q / p->heads_kv;
  *e = (sim_head){.b = b, .h = h, .d = p->head_dim, .dv = p->head_dim_v};
  e->hk = call->c->gqa_modulo ? h % p->heads_kv : h / group;
  set_lengths(call, e);
  const int64_t pairs = e->n_q * e->n_k, rows = e->n_q + e->n_k, widest = e->d > e->dv ? e->d : e->dv;
  const bool backward = call->d_k != NULL;
  float *at = e->memory =
      calloc((size_t)(rows * widest * 6 + pairs * (backward ? 7 : 4) + 2 * e->n_q + 1), sizeof *e->memory);
  if (!at) return false;
  e->q = reserve(&at, e->n_q * e->d);
  e->k = reserve(&at, e->n_k * e->d);
  e->v = reserve(&at, e->n_k * e->dv);
  e->o = reserve(&at, e->n_q * e->dv);
  if (backward) e->d_o = reserve(&at, e->n_q * e->dv);
  e->x = reserve(&at, pairs);
  e->chain = reserve(&at, pairs);
  e->prob = reserve(&at, pairs);
  e->keep = reserve(&at, pairs);
  if (backward) e->dp = reserve(&at, pairs), e->ds = reserve(&at, pairs);
  e->lse = reserve(&at, e->n_q);
  e->d_lse = reserve(&at, e->n_q);
  e->scratch = at; /* the rest: at least 2 rows * widest, and with a backward pairs */
  load_operands(call, e);
  return true;
}

void sim_head_free(sim_head *e) {
  free(e->memory);
}

void sim_operand(const sim_call *call, sim_product which, const float *x, int64_t rows, int64_t width,
                 bool transpose, float *to) {
  const sim_format f = (sim_format)call->c->operand[which];
  const bool cut = call->c->operand_truncate != 0;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t d = 0; d < width; ++d)
      to[transpose ? d * rows + r : r * width + d] = sim_round(x[r * width + d], f, cut);
  if (f == SIM_INT8) sim_round_int8(to, rows * width, 64 * width);
}
