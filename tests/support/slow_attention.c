#include "tests/support/slow_attention.h"

#include "cases/tensors/descale.h"
#include "cases/tensors/mixed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef long double real;

static void *slow_alloc(int64_t n, size_t size) {
  void *p = calloc((size_t)(n > 0 ? n : 1), size);
  FA_ASSERT(p != NULL);
  return p;
}

static void array_make(slow_array *a, int64_t n) {
  free(a->value);
  free(a->mag);
  a->n = n;
  a->value = slow_alloc(n, sizeof(real));
  a->mag = slow_alloc(n, sizeof(real));
}

static void array_add(slow_array *a, int64_t at, real value, real mag) {
  FA_ASSERT(at >= 0 && at < a->n);
  a->value[at] += value;
  a->mag[at] += mag;
}

void slow_outputs_free(slow_outputs *out) {
  for (int id = 0; id < FA_T_COUNT; ++id) {
    free(out->t[id].value);
    free(out->t[id].mag);
  }
  memset(out, 0, sizeof *out);
}

/* ---- expressions ---- */

static const slow_mods *mods_of_test;

void slow_set_mods(const slow_mods *mods) {
  mods_of_test = mods;
}

long double slow_buffer(const slow_pair *at, int k, int64_t i, int64_t j) {
  return fa_tensor_get(&at->in->t[FA_T_BUFFER_0 + k], (int64_t[FA_MAX_RANK]){i, j, 0});
}

void slow_add(slow_outputs *out, int k, int64_t n, long double value) {
  slow_array *a = &out->t[FA_T_DBUFFER_0 + k];
  if (a->n > 0) array_add(a, n, value, 8 * fabsl(value));
}

/* ---- one sequence ---- */

typedef struct entry {
  const fa_problem *p;
  const fa_tensors *in;
  int64_t b, sq, sk;
  int64_t q0, k0;    /* token of row 0 / of key 0, counted over the whole tensor */
  int64_t pad;       /* hidden keys before key 0 (k0 includes them except in a cache) */
  int64_t cache_len; /* keys in the cache before the call */
} entry;

static int64_t cache_len_of(const fa_problem *p, int64_t b) {
  return p->kvcache.len.n ? p->kvcache.len.v[b] : p->seqlen_k - p->kvcache.n_new;
}

static entry entry_of(const fa_problem *p, const fa_tensors *in, int64_t b) {
  entry e = {.p = p, .in = in, .b = b};
  int64_t end;
  e.q0 = p->cu_seqlens_q.n ? p->cu_seqlens_q.v[b] : b * p->seqlen_q;
  e.sq = p->cu_seqlens_q.n ? p->cu_seqlens_q.v[b + 1] - e.q0 : p->seqlen_q;
  e.k0 = p->cu_seqlens_k.n ? p->cu_seqlens_k.v[b] : b * p->seqlen_k;
  end = p->cu_seqlens_k.n ? p->cu_seqlens_k.v[b + 1] - e.k0 : p->seqlen_k;
  if (p->seqused_k.n && p->seqused_k.v[b] < end) end = p->seqused_k.v[b];
  if (p->family == FA_KVCACHE) {
    e.cache_len = cache_len_of(p, b);
    end = e.cache_len + p->kvcache.n_new;
  }
  e.pad = p->leftpad_k.n ? p->leftpad_k.v[b] : 0;
  e.sk = end > e.pad ? end - e.pad : 0;
  e.k0 += e.pad;
  return e;
}

static real at4(const fa_tensor *t, int64_t a, int64_t b, int64_t c, int64_t d) {
  return fa_tensor_get(t, (int64_t[FA_MAX_RANK]){a, b, c, d, 0});
}

/* Token-major tensors: [B, S, H, D] or [total, H, D]; token counts over the whole tensor. */
static real at_token(const fa_tensor *t, int64_t token, int64_t h, int64_t d) {
  if (t->rank == 3) return at4(t, token, h, d, 0);
  return at4(t, token / t->shape[1], token % t->shape[1], h, d);
}

/* Where slot s of sequence b is in a cache: row-major token number over [rows, Sc] or [pages, page_size]. */
static int64_t cache_token(const entry *e, int64_t s) {
  const fa_kvcache *c = &e->p->kvcache;
  if (c->page_size > 0) {
    int64_t page = (int64_t)at4(&e->in->t[FA_T_BLOCK_TABLE], e->b, s / c->page_size, 0, 0);
    return page * c->page_size + s % c->page_size;
  }
  return (c->batch_idx.n ? c->batch_idx.v[e->b] : e->b) * e->p->seqlen_k + s;
}

/* Component d of the vector x (read by `get`) rotated for a position. */
typedef real (*get_fn)(const entry *e, int64_t h, int64_t s, int64_t d);
static real rotated(const entry *e, get_fn get, int64_t h, int64_t s, int64_t d, int64_t position) {
  const fa_kvcache *c = &e->p->kvcache;
  int64_t half = c->rotary_dim / 2;
  if (d >= c->rotary_dim) return get(e, h, s, d);
  int64_t k = c->rotary_interleaved ? d / 2 : d % half;
  bool second = c->rotary_interleaved ? d % 2 == 1 : d >= half;
  real first_x = get(e, h, s, c->rotary_interleaved ? 2 * k : k);
  real second_x = get(e, h, s, c->rotary_interleaved ? 2 * k + 1 : k + half);
  real cosine = at4(&e->in->t[FA_T_ROTARY_COS], position, k, 0, 0);
  real sine = at4(&e->in->t[FA_T_ROTARY_SIN], position, k, 0, 0);
  return second ? first_x * sine + second_x * cosine : first_x * cosine - second_x * sine;
}

/* What a token of q, k or v is multiplied by. */
static real descale_of(const entry *e, fa_tensor_id id, int64_t h, int64_t token) {
  const fa_tensor *t = &e->in->t[id];
  const int64_t packed[2] = {token, h};
  if (t->rank == 3) return fa_descale_of_row(e->p, e->in, id, e->b, h, packed);
  const int64_t full[3] = {token / t->shape[1], token % t->shape[1], h};
  return fa_descale_of_row(e->p, e->in, id, e->b, h, full);
}
/* Column d of a row of bytes: a number of e4m3 and its tile's descale, or an element. */
static real mixed_at(const entry *e, int64_t token, int64_t h, int64_t d) {
  const fa_tensor *t = &e->in->t[FA_T_K];
  const int64_t first[FA_MAX_RANK] = {token / t->shape[1], token % t->shape[1], h}, v = e->p->head_dim_v;
  const char *row = t->data + fa_tensor_offset(t, first);
  if (d >= v) return fa_load(e->p->dtype, row + v + v / 128 * 4 + (d - v) * 2);
  return (real)fa_load(FA_E4M3, row + d) * (real)fa_load(FA_F32, row + v + d / 128 * 4);
}
/* Column d of a row with two numbers of 4 bits in each byte, times the scale of its sixteen. */
static real nibble_at(const entry *e, fa_tensor_id id, int64_t token, int64_t h, int64_t d) {
  static const real size[8] = {0, 0.5L, 1, 1.5L, 2, 3, 4, 6};
  const fa_tensor *t = &e->in->t[id], *scales = &e->in->t[id == FA_T_K ? FA_T_K_SCALES : FA_T_V_SCALES];
  const int64_t at[FA_MAX_RANK] = {token / t->shape[1], token % t->shape[1], h, d / 2};
  const int64_t of[FA_MAX_RANK] = {at[0], at[1], h, d / 16};
  const int byte = (int)fa_tensor_get(t, at), bits = d % 2 ? byte / 16 : byte % 16;
  return (bits < 8 ? 1 : -1) * size[bits % 8] * (real)fa_tensor_get(scales, of);
}
/* A number of a token, as a value. */
static real value_of(const entry *e, fa_tensor_id id, int64_t token, int64_t h, int64_t d) {
  if (fa_tensor_is_mixed(e->p, id)) return mixed_at(e, token, h, d);
  const bool four = e->p->quantized.dtype == FA_E2M1 && (id == FA_T_K || id == FA_T_V);
  return (four ? nibble_at(e, id, token, h, d) : at_token(&e->in->t[id], token, h, d)) *
         descale_of(e, id, h, token);
}

static real plain_q(const entry *e, int64_t h, int64_t i, int64_t d) {
  return value_of(e, FA_T_Q, e->q0 + i, h, d);
}
/* What is stored of new key t, or its value, in a cache of 8 bits; as it is in another. */
static real plain_new(const entry *e, fa_tensor_id id, int64_t h, int64_t t, int64_t d) {
  const real x = at4(&e->in->t[id == FA_T_K ? FA_T_K_NEW : FA_T_V_NEW], e->b, t, h, d);
  if (!e->p->quantized.quantizes_new) return x;
  return fa_quantised(e->p->quantized.dtype,
                      (double)(x / descale_of(e, id, h, cache_token(e, e->cache_len + t))));
}
static real plain_k_new(const entry *e, int64_t h, int64_t t, int64_t d) {
  return plain_new(e, FA_T_K, h, t, d);
}

/* x as read back from memory of the problem's type. */
static real stored(const entry *e, real x) {
  char slot[8];
  fa_store(e->p->dtype, slot, (double)x);
  return fa_load(e->p->dtype, slot);
}

static real get_q(const entry *e, int64_t h, int64_t i, int64_t d) {
  if (e->p->family != FA_KVCACHE || e->p->kvcache.rotary_dim == 0) return plain_q(e, h, i, d);
  bool moves = e->p->mask.type != FA_MASK_NONE;
  return stored(e, rotated(e, plain_q, h, i, d, e->cache_len + (moves ? i : 0)));
}
static real get_k_new(const entry *e, int64_t h, int64_t t, int64_t d) {
  if (e->p->kvcache.rotary_dim == 0) return plain_k_new(e, h, t, d);
  return rotated(e, plain_k_new, h, t, d, e->cache_len + t);
}
static real get_k(const entry *e, int64_t h, int64_t j, int64_t d) {
  if (e->p->family != FA_KVCACHE) return value_of(e, FA_T_K, e->k0 + j, h, d);
  int64_t s = e->pad + j;
  if (s < e->cache_len) return value_of(e, FA_T_K, cache_token(e, s), h, d);
  if (!e->p->quantized.present) return stored(e, get_k_new(e, h, s - e->cache_len, d));
  return plain_k_new(e, h, s - e->cache_len, d) * descale_of(e, FA_T_K, h, cache_token(e, s));
}
static real get_v(const entry *e, int64_t h, int64_t j, int64_t d) {
  if (e->p->family != FA_KVCACHE) return value_of(e, FA_T_V, e->k0 + j, h, d);
  int64_t s = e->pad + j, token = cache_token(e, s);
  if (s < e->cache_len) return value_of(e, FA_T_V, token, h, d);
  return plain_new(e, FA_T_V, h, s - e->cache_len, d) * descale_of(e, FA_T_V, h, token);
}

int64_t slow_rows(const fa_problem *p, const fa_tensors *in, int64_t b, int64_t h, double *q, double *k,
                  double *v) {
  const entry e = entry_of(p, in, b);
  const int64_t hk = h / (p->heads_q / p->heads_kv);
  for (int64_t i = 0; q && i < e.sq; ++i)
    for (int64_t d = 0; d < p->head_dim; ++d) q[i * p->head_dim + d] = (double)get_q(&e, h, i, d);
  for (int64_t j = 0; k && j < e.sk; ++j)
    for (int64_t d = 0; d < p->head_dim; ++d) k[j * p->head_dim + d] = (double)get_k(&e, hk, j, d);
  for (int64_t j = 0; v && j < e.sk; ++j)
    for (int64_t d = 0; d < p->head_dim_v; ++d) v[j * p->head_dim_v + d] = (double)get_v(&e, hk, j, d);
  return e.sk;
}

static bool has_packed_lse(const fa_problem *p) {
  return p->cu_seqlens_q.n > 0 && !p->lse_padded;
}
static int64_t lse_at(const entry *e, int64_t h, int64_t i) {
  if (has_packed_lse(e->p)) return h * e->p->cu_seqlens_q.v[e->p->batch] + e->q0 + i;
  return (e->b * e->p->heads_q + h) * e->p->seqlen_q + i;
}
/* lse-shaped tensor */
static real get_lse(const entry *e, const fa_tensor *t, int64_t h, int64_t i) {
  if (has_packed_lse(e->p)) return at4(t, h, e->q0 + i, 0, 0);
  return at4(t, e->b, h, i, 0);
}
static int64_t bias_at(const entry *e, int64_t h, int64_t i, int64_t j) {
  const fa_bias *n = &e->p->bias;
  int64_t heads = n->per_head ? e->p->heads_q : 1, rows = n->per_query ? e->p->seqlen_q : 1;
  int64_t b = n->per_batch ? e->b : 0;
  h = n->per_head ? h : 0;
  i = n->per_query ? i : 0;
  return ((b * heads + h) * rows + i) * e->p->seqlen_k + j;
}
static real get_bias(const entry *e, int64_t h, int64_t i, int64_t j) {
  const fa_bias *n = &e->p->bias;
  return at4(&e->in->t[FA_T_BIAS], n->per_batch ? e->b : 0, n->per_head ? h : 0, n->per_query ? i : 0, j);
}

/* ---- visibility ---- */

static bool listed(const entry *e, const fa_tensor *count, const fa_tensor *index, int64_t h, int64_t i,
                   int64_t j) {
  const fa_block_sparse *s = &e->p->block_sparse;
  if (count->data == NULL) return false;
  int64_t b = e->b % count->shape[0], head = h % count->shape[1], row = i / s->q_block;
  int64_t n = (int64_t)at4(count, b, head, row, 0);
  for (int64_t k = 0; k < n; ++k)
    if ((int64_t)at4(index, b, head, row, k) == j / s->kv_block) return true;
  return false;
}

static slow_pair pair_of(const entry *e, int64_t h, int64_t i, int64_t j) {
  return (slow_pair){.p = e->p, .in = e->in, .b = e->b, .h = h, .i = i, .j = j, .sq = e->sq, .sk = e->sk};
}

static bool keeps(const entry *e, int64_t h, int64_t i, int64_t j) {
  const slow_pair at = pair_of(e, h, i, j);
  return !mods_of_test || !mods_of_test->mask || mods_of_test->mask(&at);
}

/* Counted in steps of a chunk from a position far to the left, where all chunks begin at multiples of the size. */
static bool in_chunk(const fa_mask *m, int64_t p, int64_t j) {
  int64_t begin = -(p < 0 ? -p : p) / m->size * m->size - m->size;
  while (begin + m->size <= p) begin += m->size;
  return j <= p && j >= begin && (m->left < 0 || j >= p - m->left);
}

/* The entries before it take whole bytes. */
static bool bit_of(const entry *e, int64_t i, int64_t j) {
  const unsigned char *bits = (const unsigned char *)e->in->t[FA_T_MASK_BITS].data;
  const int64_t byte = (int64_t)at4(&e->in->t[FA_T_MASK_INDPTR], e->b, 0, 0, 0), n = i * e->sk + j;
  return bits[byte + n / 8] & 1 << n % 8;
}

/* How often row i's list names key j, wherever its slot is; 1 without lists. */
static int64_t times_listed(const entry *e, int64_t i, int64_t j) {
  const fa_tensor *list = &e->in->t[FA_T_TOPK_INDICES], *length = &e->in->t[FA_T_TOPK_LENGTH];
  const int64_t n = length->data ? (int64_t)at4(length, e->b, 0, 0, 0) : e->p->topk.k;
  int64_t times = 0;
  if (!e->p->topk.present) return 1;
  for (int64_t x = 0; x < n; ++x) {
    const real entry = e->p->cu_seqlens_q.n ? at4(list, e->q0 + i, x, 0, 0) : at4(list, e->b, i, x, 0);
    times += entry == (e->p->kvcache.page_size > 0 ? cache_token(e, j) : j);
  }
  return times;
}

static bool visible(const entry *e, int64_t h, int64_t i, int64_t j) {
  const fa_mask *m = &e->p->mask;
  int64_t shift = m->align == FA_ALIGN_TOP_LEFT ? 0 : e->sk - e->sq;
  if (m->type == FA_MASK_CAUSAL && j > i + shift) return false;
  if (m->type == FA_MASK_WINDOW && m->left >= 0 && j < i + shift - m->left) return false;
  if (m->type == FA_MASK_WINDOW && m->right >= 0 && j > i + shift + m->right) return false;
  if (m->type == FA_MASK_CHUNK && !in_chunk(m, i + shift, j)) return false;
  if (e->p->mask_bits.present && !bit_of(e, i, j)) return false;
  if (times_listed(e, i, j) == 0) return false;
  const fa_block_sparse *s = &e->p->block_sparse;
  if (!s->present || s->source == FA_BLOCKS_MASK_MOD) return keeps(e, h, i, j);
  const fa_tensor *t = e->in->t;
  if (listed(e, &t[FA_T_KV_NUM_BLOCKS], &t[FA_T_KV_INDICES], h, i, j)) return keeps(e, h, i, j);
  return listed(e, &t[FA_T_FULL_KV_NUM_BLOCKS], &t[FA_T_FULL_KV_INDICES], h, i, j);
}

/* ---- one head: everything that the backward needs, as whole matrices [Sq][Sk] ---- */

typedef struct head {
  real *q, *k, *v;  /* [Sq][D], [Sk][D], [Sk][Dv] */
  real *t;          /* final logits; -inf = masked */
  real *before;     /* what score_mod gets */
  real *weight;     /* 1 + size of the terms of the logit */
  real *chain;      /* d t / d (scale * q.k) */
  real *chain_mag;  /* error of chain in roundoffs */
  real *lse, *mean; /* [Sq]; mean: sum_j p_j weight_j; lse -inf = fully masked */
  real *max, *sum;  /* [Sq]: the LSE in two parts, since log(sum) vanishes beside a large max */
  real *keys;       /* [Sq]: the LSE of the keys alone, where lse has the sink in it */
  real *p, *kept;   /* P before dropout, and what dropout multiplies it by; 0 where masked */
  real sink;        /* -inf: none */
} head;

static void head_free(head *m) {
  real *all[] = {m->q,   m->k,    m->v,   m->t,   m->before, m->weight, m->chain, m->chain_mag,
                 m->lse, m->mean, m->max, m->sum, m->keys,   m->p,      m->kept};
  for (size_t k = 0; k < sizeof all / sizeof *all; ++k) free(all[k]);
}

static void score(const entry *e, const head *m, int64_t h, int64_t i, int64_t j, real *t, real *before,
                  real *weight, real *chain, real *chain_mag) {
  const fa_problem *p = e->p;
  real dot = 0, size = 0;
  for (int64_t d = 0; d < p->head_dim; ++d) {
    real term = (real)p->scale * m->q[i * p->head_dim + d] * m->k[j * p->head_dim + d];
    dot += term;
    size += fabsl(term);
  }
  *chain = 1;
  *chain_mag = 0;
  if (p->softcap > 0) {
    real c = p->softcap, th = tanhl(dot / c);
    dot = c * th;
    *chain = 1 - th * th;
    *chain_mag = 1 + 2 * *chain * size / c; /* 1 - th^2 cancels: its error is absolute */
  }
  *before = dot;
  if (mods_of_test && mods_of_test->score) {
    const slow_pair at = pair_of(e, h, i, j);
    real slope = 0;
    dot = mods_of_test->score(&at, dot, &slope);
    size = fabsl(slope) * size + fabsl(dot);
    *chain *= slope;
    *chain_mag = fabsl(slope) * (*chain_mag + 1);
  }
  if (p->alibi.present) {
    int64_t distance = i + e->sk - e->sq - j;
    real slope = p->alibi.slopes[p->alibi.n > p->heads_q ? e->b * p->heads_q + h : h];
    dot -= slope * (real)(distance < 0 ? -distance : distance);
    size += fabsl(slope * (real)distance);
  }
  if (p->bias.present) {
    real bias = get_bias(e, h, i, j);
    dot += bias;
    size += isinf((double)bias) ? 0 : fabsl(bias);
  }
  const bool seen = visible(e, h, i, j);
  *t = seen ? dot + logl((real)times_listed(e, i, j)) : -(real)INFINITY;
  *weight = seen || !p->topk.present ? 1 + size : 1; /* a key that no list names may be NaN */
}

/* Log of the sum of exponentials of row i, and the mean weight; -inf for a fully masked row. */
static void row_sum(head *m, int64_t i, int64_t n) {
  const real *t = m->t + i * n, *weight = m->weight + i * n;
  real max = -(real)INFINITY, sum = 0, weighted = 0;
  for (int64_t j = 0; j < n; ++j)
    if (t[j] > max) max = t[j];
  m->lse[i] = m->max[i] = m->keys[i] = max;
  m->mean[i] = 0;
  if (max == -(real)INFINITY) return;
  for (int64_t j = 0; j < n; ++j) sum += expl(t[j] - max);
  m->keys[i] = max + logl(sum);
  if (m->sink > max) m->max[i] = max = m->sink;
  sum = expl(m->sink - max);
  weighted = sum * (1 + fabsl(m->sink > -(real)INFINITY ? m->sink : 0));
  for (int64_t j = 0; j < n; ++j) {
    sum += expl(t[j] - max);
    weighted += expl(t[j] - max) * weight[j];
  }
  m->sum[i] = sum;
  m->lse[i] = max + logl(sum);
  m->mean[i] = weighted / sum;
}

/* 0 or 1 / (1 - p) */
static real drop(const entry *e, int64_t h, int64_t i, int64_t j) {
  if (e->p->dropout.p == 0) return 1;
  return slow_keep(e->p, e->b, h, i, j, e->sk) ? 1 / (1 - (real)e->p->dropout.p) : 0;
}

/* Row i of P. Once: an exponential in long double takes longer than all else that an element of O needs. */
static void row_p(const entry *e, head *m, int64_t h, int64_t i) {
  for (int64_t j = 0; j < e->sk; ++j) {
    const int64_t x = i * e->sk + j;
    if (m->t[x] == -(real)INFINITY) continue;
    m->p[x] = expl(m->t[x] - m->max[i]) / m->sum[i];
    m->kept[x] = drop(e, h, i, j);
  }
}

static head head_of(const entry *e, int64_t h) {
  const fa_problem *p = e->p;
  int64_t hk = h / (p->heads_q / p->heads_kv), d = p->head_dim, dv = p->head_dim_v, n = e->sq * e->sk;
  head m = {.q = slow_alloc(e->sq * d, sizeof(real)),
            .k = slow_alloc(e->sk * d, sizeof(real)),
            .v = slow_alloc(e->sk * dv, sizeof(real)),
            .t = slow_alloc(n, sizeof(real)),
            .before = slow_alloc(n, sizeof(real)),
            .weight = slow_alloc(n, sizeof(real)),
            .chain = slow_alloc(n, sizeof(real)),
            .chain_mag = slow_alloc(n, sizeof(real)),
            .lse = slow_alloc(e->sq, sizeof(real)),
            .mean = slow_alloc(e->sq, sizeof(real)),
            .max = slow_alloc(e->sq, sizeof(real)),
            .sum = slow_alloc(e->sq, sizeof(real)),
            .keys = slow_alloc(e->sq, sizeof(real)),
            .p = slow_alloc(n, sizeof(real)),
            .kept = slow_alloc(n, sizeof(real)),
            .sink = p->sinks.present ? at4(&e->in->t[FA_T_SINKS], h, 0, 0, 0) : -(real)INFINITY};
  for (int64_t x = 0; x < e->sq * d; ++x) m.q[x] = get_q(e, h, x / d, x % d);
  for (int64_t x = 0; x < e->sk * d; ++x) m.k[x] = get_k(e, hk, x / d, x % d);
  for (int64_t x = 0; x < e->sk * dv; ++x) m.v[x] = get_v(e, hk, x / dv, x % dv);
  for (int64_t i = 0; i < e->sq; ++i) {
    for (int64_t j = 0; j < e->sk; ++j) {
      int64_t x = i * e->sk + j;
      score(e, &m, h, i, j, &m.t[x], &m.before[x], &m.weight[x], &m.chain[x], &m.chain_mag[x]);
    }
    row_sum(&m, i, e->sk);
    row_p(e, &m, h, i);
  }
  return m;
}

/* One element of O, and its possible error. */
static void output(const entry *e, const head *m, int64_t i, int64_t d, real *o, real *mag) {
  *o = 0;
  *mag = 0;
  if (m->lse[i] == -(real)INFINITY) return;
  for (int64_t j = 0; j < e->sk; ++j) {
    int64_t x = i * e->sk + j;
    if (m->t[x] == -(real)INFINITY) continue;
    real term = m->p[x] * m->kept[x] * m->v[j * e->p->head_dim_v + d];
    *o += term;
    *mag += fabsl(term) * (m->weight[x] + m->mean[i]);
  }
}

/* The largest so far. mag of that very element: others are as exact as their own terms. */
static void array_raise(slow_array *a, real value, real mag) {
  if (a->n == 0 || value <= a->value[0]) return;
  a->value[0] = value;
  a->mag[0] = mag;
}

static void largest_p(const entry *e, const head *m, int64_t i, slow_array *a) {
  for (int64_t j = 0; m->lse[i] > -(real)INFINITY && j < e->sk; ++j) {
    const int64_t x = i * e->sk + j;
    if (m->t[x] == -(real)INFINITY) continue;
    array_raise(a, m->p[x], m->p[x] * (m->weight[x] + m->mean[i]));
  }
}

static void forward_head(const entry *e, int64_t h, slow_outputs *out) {
  static const real empty[] = {
      [FA_EMPTY_POS_INF] = INFINITY, [FA_EMPTY_NEG_INF] = -INFINITY, [FA_EMPTY_ZERO] = 0};
  const fa_problem *p = e->p;
  head m = head_of(e, h);
  for (int64_t i = 0; i < e->sq; ++i) {
    bool none = m.lse[i] == -(real)INFINITY;
    if (none && p->sinks.in_lse && m.sink > -(real)INFINITY)
      array_add(&out->t[FA_T_LSE], lse_at(e, h, i), m.sink, fabsl(m.sink));
    else
      array_add(&out->t[FA_T_LSE], lse_at(e, h, i),
                none              ? empty[p->empty_lse]
                : p->sinks.in_lse ? m.lse[i]
                                  : m.keys[i],
                none ? 0 : fabsl(m.keys[i]) + fabsl(m.lse[i]) + m.mean[i]);
    largest_p(e, &m, i, &out->t[FA_T_AMAX_P]);
    for (int64_t d = 0; d < p->head_dim_v; ++d) {
      real o, mag;
      output(e, &m, i, d, &o, &mag);
      array_raise(&out->t[FA_T_AMAX_O], fabsl(o), mag);
      array_add(&out->t[FA_T_O], ((e->q0 + i) * p->heads_q + h) * p->head_dim_v + d, o, mag);
    }
  }
  head_free(&m);
}

void slow_caches_after(const fa_problem *p, const fa_tensors *in, slow_outputs *out) {
  for (int side = 0; side < 2; ++side) {
    fa_tensor_id id = side == 0 ? FA_T_K : FA_T_V;
    const fa_tensor *t = &in->t[id];
    int64_t heads = t->shape[2], dim = t->shape[3], n = fa_tensor_count(t);
    array_make(&out->t[id], n);
    for (int64_t x = 0; x < n; ++x)
      out->t[id].value[x] = at_token(t, x / (heads * dim), x / dim % heads, x % dim);
    for (int64_t b = 0; b < p->batch; ++b) {
      entry e = entry_of(p, in, b);
      for (int64_t s = 0; s < p->kvcache.n_new; ++s)
        for (int64_t y = 0; y < heads * dim; ++y) {
          int64_t x = cache_token(&e, e.cache_len + s) * heads * dim + y;
          out->t[id].value[x] =
              side == 0 ? get_k_new(&e, y / dim, s, y % dim) : plain_new(&e, FA_T_V, y / dim, s, y % dim);
          out->t[id].mag[x] = 2 * fabsl(out->t[id].value[x]) + 8;
        }
    }
  }
}

void slow_forward(const fa_problem *p, const fa_tensors *in, slow_outputs *out) {
  int64_t rows = p->cu_seqlens_q.n ? p->cu_seqlens_q.v[p->batch] : p->batch * p->seqlen_q;
  array_make(&out->t[FA_T_O], rows * p->heads_q * p->head_dim_v);
  array_make(&out->t[FA_T_LSE], (has_packed_lse(p) ? rows : p->batch * p->seqlen_q) * p->heads_q);
  array_make(&out->t[FA_T_AMAX_P], p->quantized.amax);
  array_make(&out->t[FA_T_AMAX_O], p->quantized.amax);
  for (int64_t b = 0; b < p->batch; ++b) {
    entry e = entry_of(p, in, b);
    for (int64_t h = 0; h < p->heads_q; ++h) {
      forward_head(&e, h, out);
      for (int64_t i = e.sq; p->lse_padded && i < p->seqlen_q; ++i) /* nobody's */
        array_add(&out->t[FA_T_LSE], lse_at(&e, h, i), NAN, 0);
    }
  }
  if (p->family == FA_KVCACHE) slow_caches_after(p, in, out);
}

/* ---- backward ---- */

typedef struct given {
  const fa_tensor *o, *lse;
} given;

/* delta of a row with its size; lse: the value that P is computed from. */
static void row_delta(const entry *e, const head *m, given g, int64_t h, int64_t i, real *delta, real *mag) {
  const fa_tensor *d_out = &e->in->t[FA_T_DO];
  *delta = 0;
  *mag = 0;
  for (int64_t d = 0; d < e->p->head_dim_v; ++d) {
    real o, o_mag, x = at_token(d_out, e->q0 + i, h, d);
    if (g.o != NULL) {
      o = at_token(g.o, e->q0 + i, h, d);
      o_mag = fabsl(o);
    } else {
      output(e, m, i, d, &o, &o_mag);
    }
    *delta += x * o;
    *mag += fabsl(x) * (fabsl(o) + o_mag);
  }
  if (e->in->t[FA_T_DLSE].data != NULL && e->p->grad_lse) {
    real x = get_lse(e, &e->in->t[FA_T_DLSE], h, i);
    *delta -= x;
    *mag += fabsl(x);
  }
}

/* Adds the contribution of one visible pair (i, j) to every gradient. */
static void backward_pair(const entry *e, const head *m, int64_t h, int64_t i, int64_t j, real prob,
                          real lse_mag, real delta, real delta_mag, slow_outputs *out) {
  const fa_problem *p = e->p;
  int64_t x = i * e->sk + j, group = p->heads_q / p->heads_kv, hk = h / group;
  int64_t row = (e->q0 + i) * p->heads_q + h, key = (e->k0 + j) * p->heads_kv + hk;
  real z = m->kept[x], weight = m->weight[x] + lse_mag;
  real dp = 0, dp_size = 0;
  for (int64_t d = 0; d < p->head_dim_v; ++d) {
    real d_out = at_token(&e->in->t[FA_T_DO], e->q0 + i, h, d), term = d_out * m->v[j * p->head_dim_v + d];
    dp += term;
    dp_size += fabsl(term);
    array_add(&out->t[FA_T_DV], key * p->head_dim_v + d, prob * z * d_out, fabsl(prob * z * d_out) * weight);
  }
  real g = prob * (z * dp - delta);
  real g_mag = prob * (weight * (fabsl(z * dp) + fabsl(delta)) + z * dp_size + delta_mag);
  if (p->bias.present && p->bias.grad) array_add(&out->t[FA_T_DBIAS], bias_at(e, h, i, j), g, g_mag);
  if (mods_of_test && mods_of_test->gradient) {
    const slow_pair at = pair_of(e, h, i, j);
    mods_of_test->gradient(&at, m->before[x], g, out);
  }
  real ds = (real)p->scale * g * m->chain[x];
  real ds_mag = fabsl((real)p->scale) * (g_mag * fabsl(m->chain[x]) + fabsl(g) * m->chain_mag[x]);
  for (int64_t d = 0; d < p->head_dim; ++d) {
    real q = m->q[i * p->head_dim + d], k = m->k[j * p->head_dim + d];
    array_add(&out->t[FA_T_DQ], row * p->head_dim + d, ds * k, ds_mag * fabsl(k));
    array_add(&out->t[FA_T_DK], key * p->head_dim + d, ds * q, ds_mag * fabsl(q));
  }
}

/* log(exp(a) + exp(b)) */
static real log_sum(real a, real b) {
  const real top = a > b ? a : b;
  return top + logl(expl(a - top) + expl(b - top));
}

/* The sink's part in one row of the gradient, keys or none; lse: with the sink in it. */
static void backward_sink(const entry *e, const head *m, int64_t h, real lse, real delta, real delta_mag,
                          slow_outputs *out) {
  const real share = expl(m->sink - lse);
  if (!e->p->sinks.grad || m->sink == -(real)INFINITY) return;
  array_add(&out->t[FA_T_DSINKS], h, -share * delta,
            share * (fabsl(delta) * (1 + fabsl(m->sink) + fabsl(lse)) + delta_mag));
}

static void backward_head(const entry *e, int64_t h, given g, slow_outputs *out) {
  head m = head_of(e, h);
  for (int64_t i = 0; i < e->sq; ++i) {
    const bool none = m.lse[i] == -(real)INFINITY;
    if (none && m.sink == -(real)INFINITY) continue;
    real delta, delta_mag, lse = g.lse != NULL ? get_lse(e, g.lse, h, i) : m.lse[i];
    const bool own =
        g.lse == NULL || (!none && fabsl(lse) >= 0x1p24L); /* such a float does not say what P is */
    if (own) lse = none ? m.sink : m.lse[i];
    if (!own && e->p->sinks.present && !e->p->sinks.in_lse) lse = none ? m.sink : log_sum(lse, m.sink);
    row_delta(e, &m, g, h, i, &delta, &delta_mag);
    backward_sink(e, &m, h, lse, delta, delta_mag, out);
    if (none) continue;
    for (int64_t j = 0; j < e->sk; ++j) {
      const real t = m.t[i * e->sk + j], p = own ? m.p[i * e->sk + j] : expl(t - lse);
      if (t != -(real)INFINITY)
        backward_pair(e, &m, h, i, j, p, fabsl(lse) + m.mean[i], delta, delta_mag, out);
    }
  }
  head_free(&m);
}

void slow_backward(const fa_problem *p, const fa_tensors *in, const fa_tensor *given_o,
                   const fa_tensor *given_lse, slow_outputs *out) {
  bool varlen = p->cu_seqlens_q.n > 0;
  int64_t rows = varlen ? p->cu_seqlens_q.v[p->batch] : p->batch * p->seqlen_q;
  int64_t keys = varlen ? p->cu_seqlens_k.v[p->batch] : p->batch * p->seqlen_k;
  FA_ASSERT((given_o == NULL) == (given_lse == NULL));
  array_make(&out->t[FA_T_DQ], rows * p->heads_q * p->head_dim);
  array_make(&out->t[FA_T_DK], keys * p->heads_kv * p->head_dim);
  array_make(&out->t[FA_T_DV], keys * p->heads_kv * p->head_dim_v);
  if (p->bias.present && p->bias.grad)
    array_make(&out->t[FA_T_DBIAS], (p->bias.per_batch ? p->batch : 1) * (p->bias.per_head ? p->heads_q : 1) *
                                        (p->bias.per_query ? p->seqlen_q : 1) * p->seqlen_k);
  if (p->sinks.grad) array_make(&out->t[FA_T_DSINKS], p->heads_q);
  for (int id = FA_T_DBUFFER_0; id <= FA_T_DBUFFER_LAST; ++id)
    if (in->t[id].data) array_make(&out->t[id], fa_tensor_count(&in->t[id]));
  for (int64_t b = 0; b < p->batch; ++b) {
    entry e = entry_of(p, in, b);
    for (int64_t h = 0; h < p->heads_q; ++h) backward_head(&e, h, (given){given_o, given_lse}, out);
  }
}
