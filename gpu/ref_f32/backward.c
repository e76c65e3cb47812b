/* Backward: recomputes P from the forward's own LSE, and delta from its own O. One pass over the tiles of a
 * KV head gives dQ, dK, dV and dBias, in a fixed order. */
#include "gpu/ref_f32/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct work {
  int64_t ld, ldv, key_rows; /* padded head dims; key rows of the accumulators, padded to whole tiles */
  float *q, *k, *kt, *v, *vt, *dout;  /* tiles: [64][ld], transposed [D][64] */
  float *s, *dp, *chain;              /* [64][64] scores / P, dP / dS, d(logit)/d(scale * dot) */
  float *dq;                          /* [64][ld] */
  float *dk, *dv, *dk_head, *dv_head; /* [key_rows][ld]: sum over the group, and one query head's part */
  float lse[FA_F32_TILE_M], delta[FA_F32_TILE_M];
  float logits[FA_F32_TILE_M * FA_F32_TILE_N]; /* with expressions: shows which pairs are masked */
  uint8_t keep[FA_F32_TILE_M * FA_F32_TILE_N]; /* 1 without dropout */
  float *memory, *dbias, *dsinks;              /* dsinks: the output itself; NULL: not wanted */
  uint8_t *tiles;
  fa_f32_mods *mods;
} work;

static int64_t longest_extent(const fa_problem *p, const fa_tensors *t) {
  int64_t n = 1;
  for (int64_t b = 0; b < p->batch; ++b) {
    fa_f32_sequence e = fa_f32_sequence_make(p, t, b);
    n = e.k_extent > n ? e.k_extent : n;
  }
  return (n + FA_F32_TILE_N - 1) / FA_F32_TILE_N * FA_F32_TILE_N;
}

static float *reserve(float **at, int64_t n) {
  float *mine = *at;
  *at += n;
  return mine;
}

static bool work_alloc(work *w, const fa_problem *p, const fa_tensors *t) {
  const int64_t m = FA_F32_TILE_M, n = FA_F32_TILE_N;
  w->ld = fa_f32_padded(p->head_dim);
  w->ldv = fa_f32_padded(p->head_dim_v);
  w->key_rows = longest_extent(p, t);
  int64_t tiles = m * (2 * w->ld + w->ldv) + 2 * n * (w->ld + w->ldv) + 3 * m * n;
  w->memory = calloc((size_t)(tiles + 2 * w->key_rows * (w->ld + w->ldv)), sizeof *w->memory);
  size_t n_tiles = fa_f32_tiles_size(p, t);
  w->tiles = n_tiles ? malloc(n_tiles) : NULL;
  w->dsinks = (float *)t->t[FA_T_DSINKS].data;
  if (w->dsinks) memset(w->dsinks, 0, (size_t)p->heads_q * sizeof *w->dsinks);
  bool has_dbias = t->t[FA_T_DBIAS].data != NULL;
  if (has_dbias) w->dbias = calloc((size_t)fa_tensor_count(&t->t[FA_T_DBIAS]) + 1, sizeof *w->dbias);
  memset(w->keep, 1, sizeof w->keep);
  if (!w->memory || (n_tiles && !w->tiles) || (has_dbias && !w->dbias)) return false;
  float *at = w->memory;
  w->q = reserve(&at, m * w->ld);
  w->dq = reserve(&at, m * w->ld);
  w->dout = reserve(&at, m * w->ldv);
  w->k = reserve(&at, n * w->ld);
  w->kt = reserve(&at, n * w->ld);
  w->v = reserve(&at, n * w->ldv);
  w->vt = reserve(&at, n * w->ldv);
  w->s = reserve(&at, m * n);
  w->dp = reserve(&at, m * n);
  w->chain = reserve(&at, m * n);
  w->dk = reserve(&at, w->key_rows * w->ld);
  w->dk_head = reserve(&at, w->key_rows * w->ld);
  w->dv = reserve(&at, w->key_rows * w->ldv);
  w->dv_head = reserve(&at, w->key_rows * w->ldv);
  return true;
}

static void work_free(work *w) {
  fa_f32_mods_free(w->mods);
  free(w->memory);
  free(w->dbias);
  free(w->tiles);
}

/* log(exp(lse) + exp(sink)); +inf stands for a row without keys. */
static float with_sink(float lse, float sink) {
  if (sink == -INFINITY || lse == INFINITY) return lse;
  const float high = fmaxf(lse, sink);
  return high + logf(expf(lse - high) + expf(sink - high));
}

/* Puts the sink into the row's LSE where the forward left it out, and adds the row to its gradient. */
static void visit_sink(const fa_f32_score *c, work *w, int64_t r) {
  const float sink = *(const float *)(c->t->t[FA_T_SINKS].data + c->h * 4);
  if (!c->p->sinks.in_lse) w->lse[r] = with_sink(w->lse[r], sink);
  if (w->dsinks && sink > -INFINITY) w->dsinks[c->h] -= expf(sink - w->lse[r]) * w->delta[r];
}

/* delta_i = dO_i . O_i - dLSE_i, with O as the forward rounded it. */
static void load_query_rows(const fa_f32_score *c, work *w, int64_t i0, int64_t n_i) {
  const fa_problem *p = c->p;
  const fa_tensor *o = &c->t->t[FA_T_O], *dlse = &c->t->t[FA_T_DLSE];
  fa_f32_load_q(p, c->t, &c->t->t[FA_T_Q], c->e, c->h, i0, n_i, FA_F32_TILE_M, w->q, w->ld);
  fa_f32_load_q(p, c->t, &c->t->t[FA_T_DO], c->e, c->h, i0, n_i, FA_F32_TILE_M, w->dout, w->ldv);
  for (int64_t r = 0; r < n_i; ++r) {
    const char *row = fa_f32_q_row(p, o, c->e, c->h, i0 + r);
    const int64_t step = o->stride[o->rank - 1] * (int64_t)fa_dtype_size(o->dtype);
    float delta = 0.0f, x;
    for (int64_t d = 0; d < p->head_dim_v; ++d) {
      fa_f32_load(o->dtype, row + d * step, 1, 1, &x);
      delta = fmaf(w->dout[r * w->ldv + d], x, delta);
    }
    if (dlse->data) delta -= *fa_f32_lse_at(p, dlse, c->e, c->h, i0 + r);
    w->delta[r] = delta;
    w->lse[r] = *fa_f32_lse_at(p, &c->t->t[FA_T_LSE], c->e, c->h, i0 + r);
    if (p->sinks.present) visit_sink(c, w, r);
  }
}

static void add_dbias(const fa_f32_score *c, work *w, int64_t i0, int64_t n_i, int64_t j0, int64_t n_j) {
  const fa_tensor *t = &c->t->t[FA_T_DBIAS];
  int64_t b = t->shape[0] > 1 ? c->e->b : 0, h = t->shape[1] > 1 ? c->h : 0;
  for (int64_t r = 0; r < n_i; ++r) {
    int64_t q = t->shape[2] > 1 ? i0 + r : 0;
    float *row = w->dbias + ((b * t->shape[1] + h) * t->shape[2] + q) * t->shape[3] + j0;
    for (int64_t l = 0; l < n_j; ++l) row[l] += w->dp[r * FA_F32_TILE_N + l];
  }
}

/* s: logits -> P Z as rounded for dV. dp: dP -> dS as rounded for dQ and dK. */
static void softmax_gradient(const fa_f32_score *c, work *w, int64_t i0, int64_t n_i, int64_t j0,
                             int64_t n_j) {
  const fa_problem *p = c->p;
  const int64_t n = FA_F32_TILE_N;
  const float kept = (float)(1.0 / (1.0 - p->dropout.p));
  if (p->dropout.p > 0.0) fa_f32_keep_tile(c, i0, n_i, j0, n_j, w->keep, n);
  if (w->mods) memcpy(w->logits, w->s, (size_t)(n_i * n) * sizeof *w->s);
  for (int64_t r = 0; r < n_i; ++r)
    for (int64_t l = 0; l < n; ++l) {
      int64_t at = r * n + l;
      /* a masked pair, also in a row whose LSE is infinite by convention */
      float prob = w->s[at] == -INFINITY ? 0.0f : expf(w->s[at] - w->lse[r]);
      float dp = w->keep[at] ? w->dp[at] : 0.0f;
      if (p->dropout.p > 0.0) dp *= kept;
      w->dp[at] = prob * (dp - w->delta[r]);
      w->s[at] = w->keep[at] ? prob : 0.0f;
    }
  if (w->dbias) add_dbias(c, w, i0, n_i, j0, n_j);
  fa_f32_mods_add_gradients(c, n_i, n_j, w->dp, n, w->logits);
  if (p->softcap > 0.0 || p->score_mod)
    for (int64_t at = 0; at < n_i * n; ++at) w->dp[at] *= w->chain[at];
  fa_f32_round(p->dtype, n_i * n, w->s);
  fa_f32_round(p->dtype, n_i * n, w->dp);
}

static void visit_tile(const fa_f32_score *c, work *w, int64_t i0, int64_t n_i, int64_t j0, int64_t n_j) {
  const fa_problem *p = c->p;
  const int64_t n = FA_F32_TILE_N, hk = c->h / (p->heads_q / p->heads_kv);
  fa_f32_load_k(p, c->t, &c->t->t[FA_T_K], c->e, hk, j0, n_j, n, w->k, w->ld);
  fa_f32_load_k(p, c->t, &c->t->t[FA_T_V], c->e, hk, j0, n_j, n, w->v, w->ldv);
  fa_f32_transpose(n, p->head_dim, w->k, w->ld, w->kt, n);
  fa_f32_transpose(n, p->head_dim_v, w->v, w->ldv, w->vt, n);
  memset(w->s, 0, (size_t)(n_i * n) * sizeof *w->s);
  memset(w->dp, 0, (size_t)(n_i * n) * sizeof *w->dp);
  fa_f32_gemm(n_i, n, p->head_dim, w->q, w->ld, 1, w->kt, n, w->s, n);
  fa_f32_gemm(n_i, n, p->head_dim_v, w->dout, w->ldv, 1, w->vt, n, w->dp, n);
  fa_f32_score_tile(c, i0, n_i, j0, n_j, n, w->s, w->chain, n);
  softmax_gradient(c, w, i0, n_i, j0, n_j);
  fa_f32_gemm(n_j, w->ldv, n_i, w->s, 1, n, w->dout, w->ldv, w->dv_head + j0 * w->ldv, w->ldv);
  fa_f32_gemm(n_j, w->ld, n_i, w->dp, 1, n, w->q, w->ld, w->dk_head + j0 * w->ld, w->ld);
  fa_f32_gemm(n_i, w->ld, n_j, w->dp, n, 1, w->k, w->ld, w->dq, w->ld);
}

static void backward_rows(const fa_f32_score *c, work *w, int64_t i0, int64_t n_i) {
  const fa_problem *p = c->p;
  const fa_tensor *dq = &c->t->t[FA_T_DQ];
  load_query_rows(c, w, i0, n_i);
  memset(w->dq, 0, (size_t)(FA_F32_TILE_M * w->ld) * sizeof *w->dq);
  for (int64_t j0 = 0; j0 < c->e->n_k; j0 += FA_F32_TILE_N) {
    int64_t n_j = c->e->n_k - j0 < FA_F32_TILE_N ? c->e->n_k - j0 : FA_F32_TILE_N;
    if (fa_f32_tile_visible(c, i0, n_i, j0, n_j)) visit_tile(c, w, i0, n_i, j0, n_j);
  }
  for (int64_t l = 0; l < n_i * w->ld; ++l) w->dq[l] *= c->scale;
  if (!dq->data) return;
  for (int64_t r = 0; r < n_i; ++r)
    fa_f32_store(dq->dtype, fa_f32_q_row(p, dq, c->e, c->h, i0 + r), dq->stride[dq->rank - 1], p->head_dim,
                 w->dq + r * w->ld);
}

/* Every row of the extent, existing or not: rows that nobody attends to are 0 and must be written. */
static void write_key_rows(const fa_problem *p, const fa_tensors *t, const fa_tensor *out,
                           const fa_f32_sequence *e, int64_t hk, float *sum, int64_t ld, float factor) {
  if (!out->data) return;
  const int64_t width = out->shape[out->rank - 1];
  float *zero = sum + e->n_k * ld; /* rows past the existing keys were never added to */
  for (int64_t l = 0; l < e->n_k * ld; ++l) sum[l] *= factor;
  for (int64_t s = 0; s < e->k_extent; ++s) {
    bool exists = s >= e->leftpad && s < e->leftpad + e->n_k;
    fa_f32_store(out->dtype, fa_f32_k_row(p, t, out, e, hk, s), out->stride[out->rank - 1], width,
                 exists ? sum + (s - e->leftpad) * ld : zero);
  }
}

static void add_head(float *sum, float *head, int64_t n) {
  for (int64_t l = 0; l < n; ++l) sum[l] += head[l];
  memset(head, 0, (size_t)n * sizeof *head);
}

static void backward_kv_head(const fa_problem *p, fa_tensors *t, const fa_f32_sequence *e, int64_t hk,
                             work *w) {
  const int64_t group = p->heads_q / p->heads_kv;
  const float kept = (float)(1.0 / (1.0 - p->dropout.p));
  memset(w->dk, 0, (size_t)(w->key_rows * w->ld) * sizeof *w->dk);
  memset(w->dv, 0, (size_t)(w->key_rows * w->ldv) * sizeof *w->dv);
  for (int64_t h = hk * group; h < (hk + 1) * group; ++h) {
    fa_f32_score c = fa_f32_score_make(p, t, e, h, w->tiles);
    c.mods = w->mods;
    for (int64_t i0 = 0; i0 < e->n_q; i0 += FA_F32_TILE_M)
      backward_rows(&c, w, i0, e->n_q - i0 < FA_F32_TILE_M ? e->n_q - i0 : FA_F32_TILE_M);
    add_head(w->dk, w->dk_head, w->key_rows * w->ld);
    add_head(w->dv, w->dv_head, w->key_rows * w->ldv);
  }
  write_key_rows(p, t, &t->t[FA_T_DK], e, hk, w->dk, w->ld, (float)p->scale);
  write_key_rows(p, t, &t->t[FA_T_DV], e, hk, w->dv, w->ldv, p->dropout.p > 0.0 ? kept : 1.0f);
}

static void write_dbias(const fa_tensor *t, const float *sum) {
  int64_t index[FA_MAX_RANK], n = fa_tensor_count(t);
  for (int64_t i = 0; i < n; ++i) {
    fa_tensor_unravel(t, i, index);
    fa_tensor_set(t, index, sum[i]);
  }
}

fa_status fa_f32_backward(const fa_problem *p, fa_tensors *t, fa_error *err) {
  fa_status status = FA_OK;
  work *w = calloc(1, sizeof *w);
  if (!w || !work_alloc(w, p, t)) {
    status = fa_fail(err, FA_ERR_MEMORY, "ref-f32: out of memory in the backward pass");
    goto out;
  }
  if ((status = fa_f32_mods_make(p, t, true, &w->mods, err))) goto out;
  for (int64_t b = 0; b < p->batch; ++b) {
    fa_f32_sequence e = fa_f32_sequence_make(p, t, b);
    for (int64_t hk = 0; hk < p->heads_kv; ++hk) backward_kv_head(p, t, &e, hk, w);
  }
  if (w->dbias) write_dbias(&t->t[FA_T_DBIAS], w->dbias);
  fa_f32_mods_write(w->mods, t);
out:
  if (w) work_free(w);
  free(w);
  return status;
}
