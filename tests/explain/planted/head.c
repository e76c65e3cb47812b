/* Which elements belong to a head, and its operands. */
#include "tests/explain/planted/head.h"

#include <math.h>
#include <stdlib.h>

static int64_t whole(const fa_plugin_tensor *t, int64_t b) {
  return (int64_t)pl_load(t, b * t->stride[0]);
}

void pl_lengths(const pl_call *call, pl_head *e) {
  const fa_plugin_problem *p = call->p;
  const fa_plugin_tensors *t = call->t;
  e->n_q = p->seqlen_q;
  e->n_k = e->longest = p->seqlen_k;
  if (p->cu_seqlens_q) {
    e->q_start = p->cu_seqlens_q[e->b];
    e->n_q = p->cu_seqlens_q[e->b + 1] - e->q_start;
  }
  if (p->cu_seqlens_k) {
    e->k_start = p->cu_seqlens_k[e->b];
    e->n_k = e->longest = p->cu_seqlens_k[e->b + 1] - e->k_start;
  }
  if (p->cache) {
    e->len = whole(&t->cache_seqlens, e->b);
    e->n_k = e->len + (call->planted[PL_cache_not_appended] ? 0 : p->n_new);
  }
  if (t->seqused_k.data) e->n_k = whole(&t->seqused_k, e->b);
  if (t->leftpad_k.data) e->leftpad = whole(&t->leftpad_k, e->b);
  e->n_k -= e->leftpad;
}

int64_t pl_row_q(const pl_call *call, const pl_head *e, const fa_plugin_tensor *t, int64_t i) {
  const int64_t *s = t->stride;
  return call->p->cu_seqlens_q ? (e->q_start + i) * s[0] + e->h * s[1] : e->b * s[0] + i * s[1] + e->h * s[2];
}

int64_t pl_row_lse(const pl_call *call, const pl_head *e, const fa_plugin_tensor *t, int64_t i) {
  const int64_t *s = t->stride;
  return call->p->cu_seqlens_q ? e->h * s[0] + (e->q_start + i) * s[1] : e->b * s[0] + e->h * s[1] + i * s[2];
}

static int64_t page_row(const pl_call *call, const pl_head *e, int64_t page) {
  const fa_plugin_tensor *t = &call->t->block_table;
  return (int64_t)pl_load(t, e->b * t->stride[0] + page * t->stride[1]);
}

int64_t pl_row_k(const pl_call *call, const pl_head *e, const fa_plugin_tensor *t, int64_t hk, int64_t j) {
  const int64_t *s = t->stride, size = call->p->page_size;
  if (call->p->cu_seqlens_k) return (e->k_start + j) * s[0] + hk * s[1];
  int64_t row = e->b;
  if (call->t->block_table.data) {
    row = page_row(call, e, j / size);
    j %= size;
  } else if (call->t->cache_batch_idx.data) {
    row = whole(&call->t->cache_batch_idx, e->b);
  }
  return row * s[0] + j * s[1] + hk * s[2];
}

/* Where the kernel looks for key j: pl_row_k, but for mistakes. The next page is taken where it is full. */
static int64_t read_from(const pl_call *call, const pl_head *e, const fa_plugin_tensor *t, int64_t j) {
  const int64_t size = call->p->page_size, full = size ? (e->n_k + e->leftpad) / size : 0;
  pl_head other = *e;
  if (call->planted[PL_other_page] && j / size + 1 < full) j += size;
  if (call->planted[PL_other_sequence]) other.b = (e->b + 1) % call->p->batch;
  if (call->planted[PL_other_sequence] && call->p->cu_seqlens_k)
    other.k_start = call->p->cu_seqlens_k[other.b];
  return pl_row_k(call, &other, t, e->hk, j);
}

static void load_row(const pl_call *call, const fa_plugin_tensor *t, int64_t at, int64_t width, double *to) {
  const bool tf32 = call->planted[PL_operands_tf32] != 0, bf16 = call->planted[PL_operands_bf16] != 0;
  for (int64_t d = 0; d < width; ++d) {
    to[d] = pl_load(t, at + d * t->stride[t->rank - 1]);
    if (tf32 || bf16) to[d] = pl_round(to[d], tf32 ? PL_TF32 : PL_BF16, false);
  }
}

static void load_queries(const pl_call *call, pl_head *e) {
  const fa_plugin_tensors *t = call->t;
  const bool masked = call->p->mask[0] != 'n';
  const int64_t again = call->planted[PL_output_of_other_rows__queries];
  for (int64_t i = 0; i < e->n_q; ++i) {
    const int64_t from = again ? i / (2 * again) * 2 * again + i % again : i;
    load_row(call, &t->q, pl_row_q(call, e, &t->q, from), e->d, e->q + i * e->d);
    if (call->p->rotary_dim) pl_rotate(call, e->q + i * e->d, e->len + (masked ? i : 0));
    if (call->backward) load_row(call, &t->d_o, pl_row_q(call, e, &t->d_o, i), e->dv, e->d_o + i * e->dv);
    e->d_lse[i] =
        call->backward && t->d_lse.data ? pl_load(&t->d_lse, pl_row_lse(call, e, &t->d_lse, i)) : 0.0;
  }
}

static void load_keys(const pl_call *call, pl_head *e) {
  const fa_plugin_tensor *k = &call->t->k, *v = &call->t->v;
  for (int64_t j = 0; j < e->n_k; ++j) {
    const int64_t slot = e->leftpad + j;
    const bool k_is_v = call->planted[PL_v_for_k], v_is_k = call->planted[PL_k_for_v];
    load_row(call, k_is_v ? v : k, read_from(call, e, k_is_v ? v : k, slot), e->d, e->k + j * e->d);
    load_row(call, v_is_k ? k : v, read_from(call, e, v_is_k ? k : v, slot), e->dv, e->v + j * e->dv);
    for (int64_t d = 0; call->planted[PL_q_for_k] && j < e->n_q && d < e->d; ++d)
      e->k[j * e->d + d] = e->q[j * e->d + d];
  }
}

static int64_t kv_head(const pl_call *call, int64_t h) {
  const int64_t n = call->p->heads_kv, right = h / (call->p->heads_q / n);
  if (call->planted[PL_other_kv_head_modulo]) return h % n;
  if (call->planted[PL_other_kv_head_neighbour]) return (right + 1) % n;
  return call->planted[PL_first_kv_head_for_all] ? 0 : right;
}

static double *reserve(double **at, int64_t n) {
  double *mine = *at;
  *at += n;
  return mine;
}

bool pl_head_make(const pl_call *call, int64_t b, int64_t h, pl_head *e) {
  *e = (pl_head){.b = b, .h = h, .hk = kv_head(call, h), .d = call->p->head_dim, .dv = call->p->head_dim_v};
  pl_lengths(call, e);
  const int64_t n = e->n_q * (e->d + 2 * e->dv + 2) + e->n_k * (e->d + e->dv + 5);
  double *at = e->memory = calloc((size_t)n + 1, sizeof *at);
  if (!at) return false;
  e->q = reserve(&at, e->n_q * e->d);
  e->d_o = reserve(&at, e->n_q * e->dv);
  e->o = reserve(&at, e->n_q * e->dv);
  e->lse = reserve(&at, e->n_q);
  e->d_lse = reserve(&at, e->n_q);
  e->k = reserve(&at, e->n_k * e->d);
  e->v = reserve(&at, e->n_k * e->dv);
  e->x = reserve(&at, e->n_k);
  e->chain = reserve(&at, e->n_k);
  e->p = reserve(&at, e->n_k);
  e->keep = reserve(&at, e->n_k);
  e->dp = reserve(&at, e->n_k);
  load_queries(call, e);
  load_keys(call, e);
  return true;
}

void pl_head_free(pl_head *e) {
  free(e->memory);
}

/* A mistake adds in few bits: 16 products at a time, and the sum is rounded after each. */
double pl_dot(const pl_call *call, int64_t n, const double *a, const double *b, int64_t step) {
  const bool f16 = call->planted[PL_accumulate_f16] != 0, bf16 = call->planted[PL_accumulate_bf16] != 0;
  double sum = 0.0;
  for (int64_t i = 0; i < n; ++i) {
    sum += a[i] == 0.0 ? 0.0 : a[i] * b[i * step];
    if ((f16 || bf16) && (i % 16 == 15 || i == n - 1)) sum = pl_round(sum, f16 ? PL_F16 : PL_BF16, false);
  }
  return sum;
}
