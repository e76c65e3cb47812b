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
    e->n_q = p->cu_seqlens_q[e->b + 1] - e->q_start;
  }
  if (p->cu_seqlens_k) {
    e->k_start = p->cu_seqlens_k[e->b];
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
  if (call->p->cu_seqlens_k) return (e->k_start + j) * t->stride[0] + hk * t->stride[1];
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

/* Bits of column d: the first of two is low. */
static int bits_of(const fa_plugin_tensor *t, int64_t at, int64_t d, int bug) {
  const int byte = ((const unsigned char *)t->data)[at + d / 2];
  const bool high = bug == SIM_HIGH_FIRST ? d % 2 == 0 : d % 2 != 0;
  const int bits = high ? byte >> 4 : byte & 15;
  return bug == SIM_SIGN_OF_ZERO ? (bits & 7) | (byte >> 4 & 8) : bits;
}

static float number_of_four_bits(int bits, int bug) {
  static const float size[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  float x = size[bits & 7];
  if (bug == SIM_HALVES_LOST && (bits & 7) == 1) x = 0.0f;
  if (bug == SIM_SIX_IS_EIGHT && (bits & 7) == 7) x = 8.0f;
  return bits & 8 ? -x : x;
}

/* A row of a cache of 4 bits: two numbers in a byte, and a scale for every 16. */
static void load_four(const sim_call *call, const sim_head *e, const fa_plugin_tensor *t, int64_t j,
                      int64_t width, float *to) {
  const fa_plugin_tensors *all = call->t;
  const int bug = call->c->four_bug;
  const bool keys = t == &all->k || bug == SIM_SCALES_OF_K;
  const fa_plugin_tensor *scales = keys ? &all->k_scales : &all->v_scales;
  const int64_t at = sim_row_k(call, e, t, e->hk, j), last = e->leftpad + e->n_k - 1;
  const int64_t of = sim_row_k(call, e, scales, e->hk, bug == SIM_NEXT_SLOT && j < last ? j + 1 : j);
  for (int64_t d = 0; d < width; ++d) {
    int64_t block = d / 16;
    if (bug == SIM_NEXT_BLOCK && block + 1 < width / 16) ++block;
    if (bug == SIM_BLOCKS_OF_32) block = block / 2 * 2;
    const float scale = bug == SIM_SCALES_MISSING ? 1.0f : sim_load(scales->data, scales->dtype, of + block);
    to[d] = number_of_four_bits(bits_of(t, at, d, bug), bug) * scale;
  }
}

static void load_key(const sim_call *call, const sim_head *e, const fa_plugin_tensor *t, int64_t j,
                     int64_t width, float *to) {
  if (call->t->k_scales.data)
    load_four(call, e, t, j, width, to);
  else
    load_row(t, sim_row_k(call, e, t, e->hk, j), width, to);
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
    load_key(call, e, &t->k, e->leftpad + j, e->d, e->k + j * e->d);
    load_key(call, e, &t->v, e->leftpad + j, e->dv, e->v + j * e->dv);
  }
}

static float number_at(const fa_plugin_tensor *t, int64_t at) {
  return sim_load(t->data, t->dtype, at);
}

static int64_t page_of(const sim_call *call, const sim_head *e, int64_t s) {
  const fa_plugin_tensor *table = &call->t->block_table;
  return sim_load_int(table->data, e->b * table->stride[0] + s / call->p->page_size * table->stride[1]);
}

/* What says how many numbers share one is about keys; queries have no pages, and values beside queries of 8 bits neither
 * these nor tokens. */
static char kind_of(const sim_call *call, const fa_plugin_tensor *of) {
  const char kind = call->p->descale[0];
  if (of == &call->t->q && kind == 'p') return 'h';
  return of == &call->t->v && call->p->quantized_queries && (kind == 'p' || kind == 't') &&
                 call->p->descale[1] != 'e'
             ? 'h'
             : kind;
}

/* The descale of row s of q, k or v. */
static float descale_at(const sim_call *call, const sim_head *e, const fa_plugin_tensor *of,
                        const fa_plugin_tensor *t, int64_t s) {
  const fa_plugin_problem *p = call->p;
  const bool query = of == &call->t->q;
  const int bug = call->c->descale_bug;
  const int64_t *step = t->stride, hk = bug == SIM_NEXT_HEAD ? (e->hk + 1) % p->heads_kv : e->hk;
  const int64_t b = bug == SIM_FIRST_SEQUENCE ? 0 : e->b;
  if (!t->data) return 1.0f;
  if (t->rank == 1) return number_at(t, 0);
  switch (kind_of(call, of)) {
  case 'h':
    return number_at(t, b * step[0] + hk * step[1]);
  case 'p':
    return number_at(t, page_of(call, e, s) * step[0] + hk * step[1]);
  default:
    if (query && p->cu_seqlens_q) return number_at(t, (e->q_start + s) * step[0] + e->h * step[1]);
    if (query) return number_at(t, e->b * step[0] + s * step[1] + e->h * step[2]);
    if (bug == SIM_NEXT_KEY && s + 1 < e->leftpad + e->n_k) ++s;
    return number_at(t, sim_row_k(call, e, t, hk, s));
  }
}

static void multiply(float *x, int64_t n, int format, float *descale) {
  if (format == SIM_IO) return;
  for (int64_t d = 0; d < n; ++d) x[d] = sim_round(x[d] * *descale, (sim_format)format, false);
  *descale = 1.0f;
}

/* Wrong in the way that is asked for. */
static void spoil(const sim_call *call, float *q, float *k, float *v) {
  const float right = *k;
  switch (call->c->descale_bug) {
  case SIM_K_TWICE:
    *k *= *k;
    break;
  case SIM_V_TWICE:
    *v *= *v;
    break;
  case SIM_K_MISSING:
    *k = 1.0f;
    break;
  case SIM_V_MISSING:
    *v = 1.0f;
    break;
  case SIM_Q_MISSING:
    *q = 1.0f;
    break;
  case SIM_K_AND_V_SWAPPED:
    *k = *v;
    *v = right;
    break;
  case SIM_RECIPROCAL:
    *v = 1.0f / *v;
    break;
  default:
    break;
  }
}

/* Descales, and operands times them where they come before products. */
static void load_descales(const sim_call *call, sim_head *e) {
  const fa_plugin_tensors *t = call->t;
  float unused = 1.0f;
  for (int64_t i = 0; i < e->n_q; ++i) {
    e->dq[i] = descale_at(call, e, &t->q, &t->q_descale, i);
    spoil(call, &e->dq[i], &(float){1.0f}, &unused);
    multiply(e->q + i * e->d, e->d, call->c->k_descaled, &e->dq[i]);
  }
  for (int64_t j = 0; j < e->n_k; ++j) {
    e->dk[j] = descale_at(call, e, &t->k, &t->k_descale, e->leftpad + j);
    e->dv_of[j] = descale_at(call, e, &t->v, &t->v_descale, e->leftpad + j);
    spoil(call, &unused, &e->dk[j], &e->dv_of[j]);
    multiply(e->k + j * e->d, e->d, call->c->k_descaled, &e->dk[j]);
    multiply(e->v + j * e->dv, e->dv, call->c->v_descaled, &e->dv_of[j]);
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
      calloc((size_t)(rows * widest * 6 + pairs * (backward ? 7 : 4) + 3 * e->n_q + 2 * e->n_k + 1),
             sizeof *e->memory);
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
  e->dq = reserve(&at, e->n_q);
  e->dk = reserve(&at, e->n_k);
  e->dv_of = reserve(&at, e->n_k);
  e->scratch = at; /* the rest: at least 2 rows * widest, and with a backward pairs */
  load_operands(call, e);
  load_descales(call, e);
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
