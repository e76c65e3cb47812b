/* Forward: online softmax over key tiles, one (sequence, head, row block) at a time. */
#include "gpu/ref_f32/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct work {
  int64_t ld, ldv; /* padded head dims */
  float *q, *k, *kt, *v, *s, *o, *total, *memory;
  float m[FA_F32_TILE_M], l[FA_F32_TILE_M];    /* running max and sum of a split */
  float lse[FA_F32_TILE_M];                    /* log sum of what `total` holds; -inf: nothing yet */
  float top[FA_F32_TILE_M];                    /* the largest score in it */
  float amax_p, amax_o;                        /* of the rows so far */
  uint8_t keep[FA_F32_TILE_M * FA_F32_TILE_N]; /* 1 without dropout */
  uint8_t *tiles;
  fa_f32_mods *mods;
} work;

static bool work_alloc(work *w, const fa_problem *p, const fa_tensors *t) {
  w->ld = fa_f32_padded(p->head_dim);
  w->ldv = fa_f32_padded(p->head_dim_v);
  const int64_t m = FA_F32_TILE_M, n = FA_F32_TILE_N;
  size_t size = (size_t)(m * w->ld + 2 * n * w->ld + n * w->ldv + m * n + 2 * m * w->ldv);
  w->memory = calloc(size, sizeof *w->memory);
  size_t n_tiles = fa_f32_tiles_size(p, t);
  w->tiles = n_tiles ? malloc(n_tiles) : NULL;
  w->q = w->memory;
  w->k = w->q + m * w->ld;
  w->kt = w->k + n * w->ld;
  w->v = w->kt + n * w->ld;
  w->s = w->v + n * w->ldv;
  w->o = w->s + m * n;
  w->total = w->o + m * w->ldv;
  memset(w->keep, 1, sizeof w->keep);
  return w->memory && (w->tiles || !n_tiles);
}

static void work_free(work *w) {
  fa_f32_mods_free(w->mods);
  free(w->memory);
  free(w->tiles);
}

/* A row's sum in four chains, like the four lanes of a quad. */
static float row_sum(const float *x) {
  float lane[4] = {0, 0, 0, 0};
  for (int l = 0; l < FA_F32_TILE_N; l += 4)
    for (int c = 0; c < 4; ++c) lane[c] += x[l + c];
  return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

/* Updates the running max of one row, rescales its sums so far, and turns its logits into P. */
static void softmax_row(work *w, int64_t r) {
  float *x = w->s + r * FA_F32_TILE_N, m_new = w->m[r];
  for (int l = 0; l < FA_F32_TILE_N; ++l) m_new = x[l] > m_new ? x[l] : m_new;
  if (m_new == -INFINITY) { /* no visible key yet: exp(-inf - -inf) would be NaN */
    memset(x, 0, FA_F32_TILE_N * sizeof *x);
    return;
  }
  if (m_new > w->m[r]) {
    float shrink = expf(w->m[r] - m_new);
    w->l[r] *= shrink;
    for (int64_t c = 0; c < w->ldv; ++c) w->o[r * w->ldv + c] *= shrink;
    w->m[r] = m_new;
  }
  for (int l = 0; l < FA_F32_TILE_N; ++l) x[l] = x[l] == -INFINITY ? 0.0f : expf(x[l] - m_new);
  w->l[r] += row_sum(x);
}

/* The debug copy of P: only signs (negative = dropped) and zeros (masked) have a meaning, so a visible pair
 * that underflows gets the smallest normal magnitude. seen: the pairs of the tile that are not masked. */
static void write_p_debug(const fa_f32_score *c, const work *w, const uint8_t *seen, int64_t i0, int64_t n_i,
                          int64_t j0, int64_t n_j) {
  const fa_tensor *t = &c->t->t[FA_T_P_DEBUG];
  const double tiny = t->dtype == FA_F16 ? 0x1p-14 : 0x1p-126;
  for (int64_t r = 0; r < n_i; ++r)
    for (int64_t l = 0; l < n_j; ++l) {
      int64_t at = r * FA_F32_TILE_N + l;
      double x = seen[at] ? fmax(tiny, w->s[at]) : 0.0;
      fa_tensor_set(t, (int64_t[]){c->e->b, c->h, i0 + r, j0 + l}, w->keep[at] ? x : -x);
    }
}

/* Tiles that are not visited keep the values written here. */
static void clear_p_debug(const fa_tensor *t) {
  int64_t index[FA_MAX_RANK], n = fa_tensor_count(t);
  for (int64_t i = 0; i < n; ++i) {
    fa_tensor_unravel(t, i, index);
    fa_tensor_set(t, index, 0.0);
  }
}

/* A key that no list names holds anything: 0 times NaN would be NaN. */
static void clear_unlisted(work *w, int64_t n_i) {
  for (int64_t l = 0; l < FA_F32_TILE_N; ++l) {
    bool listed = false;
    for (int64_t r = 0; r < n_i; ++r) listed |= w->s[r * FA_F32_TILE_N + l] != -INFINITY;
    if (!listed) memset(w->v + l * w->ldv, 0, (size_t)w->ldv * sizeof *w->v);
  }
}

/* O += P V for one tile of keys, after updating the running max and sum. */
static void visit_tile(const fa_f32_score *c, work *w, int64_t i0, int64_t n_i, int64_t j0, int64_t n_j) {
  const fa_problem *p = c->p;
  const int64_t n = FA_F32_TILE_N, hk = c->h / (p->heads_q / p->heads_kv);
  const bool debug = c->t->t[FA_T_P_DEBUG].data != NULL;
  uint8_t seen[FA_F32_TILE_M * FA_F32_TILE_N];
  fa_f32_load_k(p, c->t, &c->t->t[FA_T_K], c->e, hk, j0, n_j, n, w->k, w->ld);
  fa_f32_load_k(p, c->t, &c->t->t[FA_T_V], c->e, hk, j0, n_j, n, w->v, w->ldv);
  fa_f32_transpose(n, p->head_dim, w->k, w->ld, w->kt, n);
  memset(w->s, 0, (size_t)(n_i * n) * sizeof *w->s);
  fa_f32_gemm(n_i, n, p->head_dim, w->q, w->ld, 1, w->kt, n, w->s, n);
  fa_f32_score_tile(c, i0, n_i, j0, n_j, n, w->s, NULL, n);
  if (p->topk.present) clear_unlisted(w, n_i);
  if (debug)
    for (int64_t l = 0; l < n_i * n; ++l) seen[l] = w->s[l] != -INFINITY;
  for (int64_t r = 0; r < n_i; ++r) softmax_row(w, r);
  if (p->dropout.p > 0.0) fa_f32_keep_tile(c, i0, n_i, j0, n_j, w->keep, n);
  if (debug) write_p_debug(c, w, seen, i0, n_i, j0, n_j);
  if (p->dropout.p > 0.0)
    for (int64_t l = 0; l < n_i * n; ++l) w->s[l] = w->keep[l] ? w->s[l] : 0.0f;
  fa_f32_round(fa_f32_p_dtype(p), n_i * n, w->s);
  fa_f32_gemm(n_i, w->ldv, n, w->s, n, 1, w->v, w->ldv, w->o, w->ldv);
}

/* Adds a split's rows (w->o, m, l) to the rows combined so far (w->total, lse):
 * lse = log(exp(a) + exp(b)), o = exp(a - lse) o_a + exp(b - lse) o_b. */
static void combine_row(work *w, int64_t r) {
  float *total = w->total + r * w->ldv;
  const float *o = w->o + r * w->ldv;
  if (w->m[r] == -INFINITY) return; /* the split saw no key of this row */
  w->top[r] = fmaxf(w->top[r], w->m[r]);
  float lse = w->m[r] + logf(w->l[r]), inverse = 1.0f / w->l[r];
  if (w->lse[r] == -INFINITY) {
    w->lse[r] = lse;
    for (int64_t c = 0; c < w->ldv; ++c) total[c] = o[c] * inverse;
    return;
  }
  float high = fmaxf(lse, w->lse[r]);
  float sum = high + logf(expf(lse - high) + expf(w->lse[r] - high));
  float mine = expf(lse - sum), others = expf(w->lse[r] - sum);
  for (int64_t c = 0; c < w->ldv; ++c) total[c] = fmaf(others, total[c], mine * (o[c] * inverse));
  w->lse[r] = sum;
}

static void load_queries(const fa_f32_score *c, work *w, int64_t i0, int64_t n_i) {
  const fa_problem *p = c->p;
  fa_f32_load_q(p, c->t, &c->t->t[FA_T_Q], c->e, c->h, i0, n_i, FA_F32_TILE_M, w->q, w->ld);
  if (p->kvcache.present && p->kvcache.rotary_dim > 0)
    for (int64_t r = 0; r < n_i; ++r)
      fa_f32_rotate(p, c->t, fa_f32_query_position(p, c->t, c->e, i0 + r), w->q + r * w->ld);
}

static float empty_lse(const fa_problem *p) {
  if (p->empty_lse == FA_EMPTY_ZERO) return 0.0f;
  return p->empty_lse == FA_EMPTY_NEG_INF ? -INFINITY : INFINITY;
}

static float sink_of(const fa_f32_score *c) {
  return c->p->sinks.present ? *(const float *)(c->t->t[FA_T_SINKS].data + c->h * 4) : -INFINITY;
}

/* The sink is a split without values: it changes the sum, and what the keys have is scaled to it. Returns that: their share. */
static float add_sink(work *w, int64_t r, float sink, bool in_lse, float *lse) {
  *lse = w->lse[r];
  if (sink == -INFINITY) return 1;
  if (w->lse[r] == -INFINITY) {
    if (in_lse) *lse = sink;
    return 0;
  }
  const float high = fmaxf(sink, w->lse[r]);
  const float sum = high + logf(expf(sink - high) + expf(w->lse[r] - high)), keys = expf(w->lse[r] - sum);
  for (int64_t d = 0; d < w->ldv; ++d) w->total[r * w->ldv + d] *= keys;
  if (in_lse) *lse = sum;
  return keys;
}

/* Of a row whose O and LSE are done. keys: the share of its keys, beside the sink. */
static void add_amax(work *w, int64_t r, int64_t head_dim_v, float keys) {
  if (w->lse[r] == -INFINITY) return;
  w->amax_p = fmaxf(w->amax_p, expf(w->top[r] - w->lse[r]) * keys);
  for (int64_t d = 0; d < head_dim_v; ++d) w->amax_o = fmaxf(w->amax_o, fabsf(w->total[r * w->ldv + d]));
}

/* As it is stored in 8 bits. */
static void scale_o(const fa_tensors *t, float *total, int64_t head_dim_v) {
  const int64_t first = 0;
  if (!t->t[FA_T_O_SCALE].data) return;
  const float by = (float)fa_tensor_get(&t->t[FA_T_O_SCALE], &first);
  for (int64_t d = 0; d < head_dim_v; ++d) total[d] *= by;
}

static void write_rows(const fa_f32_score *c, work *w, int64_t i0, int64_t n_i) {
  const fa_problem *p = c->p;
  const fa_tensor *o = &c->t->t[FA_T_O], *lse = &c->t->t[FA_T_LSE];
  float kept = (float)(1.0 / (1.0 - p->dropout.p));
  for (int64_t r = 0; r < n_i; ++r) {
    float *total = w->total + r * w->ldv, with_sink;
    const float keys = add_sink(w, r, sink_of(c), p->sinks.in_lse, &with_sink);
    bool empty = with_sink == -INFINITY;
    if (p->dropout.p > 0.0)
      for (int64_t d = 0; d < w->ldv; ++d) total[d] *= kept;
    add_amax(w, r, p->head_dim_v, keys);
    scale_o(c->t, total, p->head_dim_v);
    if (o->data)
      fa_f32_store(o->dtype, fa_f32_q_row(p, o, c->e, c->h, i0 + r), o->stride[o->rank - 1], p->head_dim_v,
                   total);
    if (lse->data) *fa_f32_lse_at(p, lse, c->e, c->h, i0 + r) = empty ? empty_lse(p) : with_sink;
  }
}

/* Number of keys in one split: whole tiles, divided as evenly as possible. */
static int64_t split_keys(const fa_problem *p, int64_t n_k) {
  int64_t n = p->splits > 1 ? p->splits : 1, tiles = (n_k + FA_F32_TILE_N - 1) / FA_F32_TILE_N;
  int64_t keys = (tiles + n - 1) / n * FA_F32_TILE_N;
  return keys > 0 ? keys : FA_F32_TILE_N;
}

static void forward_rows(const fa_f32_score *c, work *w, int64_t i0, int64_t n_i) {
  const int64_t n_k = c->e->n_k, per_split = split_keys(c->p, n_k);
  memset(w->total, 0, (size_t)(FA_F32_TILE_M * w->ldv) * sizeof *w->total);
  for (int64_t r = 0; r < FA_F32_TILE_M; ++r) w->lse[r] = w->top[r] = -INFINITY;
  load_queries(c, w, i0, n_i);
  for (int64_t first = 0; first < n_k; first += per_split) {
    int64_t end = first + per_split < n_k ? first + per_split : n_k;
    memset(w->o, 0, (size_t)(FA_F32_TILE_M * w->ldv) * sizeof *w->o);
    for (int64_t r = 0; r < FA_F32_TILE_M; ++r) w->m[r] = -INFINITY, w->l[r] = 0.0f;
    for (int64_t j0 = first; j0 < end; j0 += FA_F32_TILE_N) {
      int64_t n_j = end - j0 < FA_F32_TILE_N ? end - j0 : FA_F32_TILE_N;
      if (fa_f32_tile_visible(c, i0, n_i, j0, n_j)) visit_tile(c, w, i0, n_i, j0, n_j);
    }
    for (int64_t r = 0; r < n_i; ++r) combine_row(w, r);
  }
  write_rows(c, w, i0, n_i);
}

static void write_amax(const fa_tensors *t, const work *w) {
  const int64_t first = 0;
  if (t->t[FA_T_AMAX_P].data) fa_tensor_set(&t->t[FA_T_AMAX_P], &first, w->amax_p);
  if (t->t[FA_T_AMAX_O].data) fa_tensor_set(&t->t[FA_T_AMAX_O], &first, w->amax_o);
}

fa_status fa_f32_forward(const fa_problem *p, fa_tensors *t, fa_error *err) {
  fa_status status = FA_OK;
  work *w = calloc(1, sizeof *w);
  if (!w || !work_alloc(w, p, t)) {
    status = fa_fail(err, FA_ERR_MEMORY, "ref-f32: out of memory in the forward pass");
    goto out;
  }
  if ((status = fa_f32_mods_make(p, t, false, &w->mods, err))) goto out;
  if (p->kvcache.present) fa_f32_append(p, t, w->q);
  if (t->t[FA_T_P_DEBUG].data) clear_p_debug(&t->t[FA_T_P_DEBUG]);
  for (int64_t b = 0; b < p->batch; ++b) {
    fa_f32_sequence e = fa_f32_sequence_make(p, t, b);
    for (int64_t h = 0; h < p->heads_q; ++h) {
      fa_f32_score c = fa_f32_score_make(p, t, &e, h, w->tiles);
      c.mods = w->mods;
      for (int64_t i0 = 0; i0 < e.n_q; i0 += FA_F32_TILE_M)
        forward_rows(&c, w, i0, e.n_q - i0 < FA_F32_TILE_M ? e.n_q - i0 : FA_F32_TILE_M);
    }
  }
  write_amax(t, w);
out:
  if (w) work_free(w);
  free(w);
  return status;
}
