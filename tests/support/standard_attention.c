#include "tests/support/standard_attention.h"

#include "cases/tensors/table.h"

#include "tests/support/slow_attention.h"
#include "tests/support/standard_flex.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double *zeros(int64_t n) {
  double *x = calloc((size_t)(n > 0 ? n : 1), sizeof *x);
  FA_ASSERT(x != NULL);
  return x;
}

/* One sequence of the batch, and one query head of it at a time. */
typedef struct work {
  const fa_problem *p;
  const fa_tensors *in;
  bool rounded;
  int64_t b, h, hk, d, dv;
  int64_t q0, k0, sq, sk; /* first token of the packed tensors, hidden left keys skipped; lengths */
  double *q, *k, *v, *d_o, *s, *weight, *chain, *dp;
  double *before; /* inputs of score_mod */
  standard_flex *flex;
} work;

static double r(const work *w, double x) {
  if (!w->rounded) return x;
  char slot[8];
  fa_store(w->p->dtype, slot, x);
  return fa_load(w->p->dtype, slot);
}

static int64_t token_of(const work *w, const fa_tensor *t, int64_t token, int64_t *index) {
  if (t->rank == 3) {
    index[0] = token;
    return 1;
  }
  index[0] = w->b;
  index[1] = token;
  return 2;
}

/* The rows of one head's dO. */
static void gather_d_o(const work *w) {
  const fa_tensor *t = &w->in->t[FA_T_DO];
  for (int64_t i = 0; i < w->sq; ++i) {
    int64_t index[FA_MAX_RANK] = {0}, axis = token_of(w, t, w->q0 + i, index);
    index[axis] = w->h;
    for (int64_t c = 0; c < w->dv; ++c) {
      index[axis + 1] = c;
      w->d_o[i * w->dv + c] = fa_tensor_get(t, index);
    }
  }
}

static bool hidden(const work *w, int64_t i, int64_t j) {
  const fa_mask *m = &w->p->mask;
  const int64_t at = i + (m->align == FA_ALIGN_TOP_LEFT ? 0 : w->sk - w->sq);
  if (m->type == FA_MASK_CAUSAL) return j > at;
  if (m->type != FA_MASK_WINDOW) return false;
  return (m->left >= 0 && j < at - m->left) || (m->right >= 0 && j > at + m->right);
}

static double slope_of(const work *w) {
  const fa_alibi *a = &w->p->alibi;
  if (!a->present) return 0;
  return a->slopes[a->n > w->p->heads_q ? w->b * w->p->heads_q + w->h : w->h];
}

/* Position in a bias or its gradient, row-major. */
static int64_t bias_at(const work *w, int64_t i, int64_t j) {
  const int64_t *n = w->in->t[FA_T_BIAS].shape;
  const int64_t b = n[0] > 1 ? w->b : 0, h = n[1] > 1 ? w->h : 0, q = n[2] > 1 ? i : 0;
  return ((b * n[1] + h) * n[2] + q) * n[3] + j;
}

static double bias_of(const work *w, int64_t i, int64_t j) {
  const fa_tensor *t = &w->in->t[FA_T_BIAS];
  int64_t index[FA_MAX_RANK] = {0};
  fa_tensor_unravel(t, bias_at(w, i, j), index);
  return fa_tensor_get(t, index);
}

/* c[rows x cols] = a[rows x depth] b[cols x depth]^T, rounded. */
static void product(const work *w, const double *a, const double *b, int64_t rows, int64_t cols,
                    int64_t depth, double *c) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      double sum = 0;
      for (int64_t x = 0; x < depth; ++x) sum += a[i * depth + x] * b[j * depth + x];
      c[i * cols + j] = r(w, sum);
    }
}

/* c[rows x cols] = a[rows x depth] b[depth x cols], or with transpose a[depth x rows]^T; rounded. */
static void product_plain(const work *w, const double *a, bool transpose, const double *b, int64_t rows,
                          int64_t cols, int64_t depth, double *c) {
  memset(c, 0, (size_t)(rows * cols) * sizeof *c);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t x = 0; x < depth; ++x) {
      const double f = transpose ? a[x * rows + i] : a[i * depth + x];
      if (f == 0) continue; /* a masked pair: the other matrix's value does not matter */
      for (int64_t j = 0; j < cols; ++j) c[i * cols + j] += f * b[x * cols + j];
    }
  for (int64_t i = 0; i < rows * cols; ++i) c[i] = r(w, c[i]);
}

static fa_flex_pair pair_of(const work *w, int64_t i, int64_t j) {
  return (fa_flex_pair){(int)w->b, (int)w->h, (int)i, (int)j, (int)w->sq, (int)w->sk};
}

/* Logits with all modifications, -inf where masked; chain = d logit / d (scaled score). */
static void logits(work *w, const double *scaled_k) {
  const double cap = w->p->softcap, slope = slope_of(w);
  product(w, w->q, scaled_k, w->sq, w->sk, w->d, w->s);
  for (int64_t i = 0; i < w->sq; ++i)
    for (int64_t j = 0; j < w->sk; ++j) {
      double *s = &w->s[i * w->sk + j], *chain = &w->chain[i * w->sk + j];
      *chain = 1;
      if (cap > 0) {
        const double t = r(w, tanh(r(w, *s / cap)));
        *s = r(w, cap * t);
        *chain = r(w, 1 - r(w, t * t));
      }
      const fa_flex_pair at = pair_of(w, i, j);
      w->before[i * w->sk + j] = *s;
      *s = r(w, standard_flex_score(w->flex, *s, &at));
      if (slope != 0) *s = r(w, *s - r(w, slope * (double)llabs((long long)(i + w->sk - w->sq - j))));
      if (w->p->bias.present) *s = r(w, *s + bias_of(w, i, j));
      if (hidden(w, i, j) || standard_flex_hides(w->flex, &at)) *s = -INFINITY;
    }
}

/* weight = softmax of s; returns the LSE of row i. */
static double softmax_row(work *w, int64_t i) {
  static const double empty[] = {
      [FA_EMPTY_POS_INF] = INFINITY, [FA_EMPTY_NEG_INF] = -INFINITY, [FA_EMPTY_ZERO] = 0};
  const double *s = w->s + i * w->sk;
  double *weight = w->weight + i * w->sk, max = -INFINITY, sum = 0;
  for (int64_t j = 0; j < w->sk; ++j) max = fmax(max, s[j]);
  if (max == -INFINITY) {
    for (int64_t j = 0; j < w->sk; ++j) weight[j] = 0;
    return empty[w->p->empty_lse];
  }
  for (int64_t j = 0; j < w->sk; ++j) sum += weight[j] = exp(s[j] - max);
  for (int64_t j = 0; j < w->sk; ++j) weight[j] = r(w, weight[j] / sum);
  return max + log(sum);
}

/* Sets x = 0 where dropout drops. */
static void strike(const work *w, double *x) {
  if (w->p->dropout.p == 0) return;
  for (int64_t i = 0; i < w->sq; ++i)
    for (int64_t j = 0; j < w->sk; ++j)
      if (!slow_keep(w->p, w->b, w->h, i, j, w->sk)) x[i * w->sk + j] = 0;
}

/* Adds a head's rows to a gradient, which heads may share. */
static void scatter(const work *w, const fa_tensor *t, int64_t token0, int64_t rows, int64_t head,
                    double factor, const double *from, double *to) {
  const int64_t n_heads = t->shape[t->rank - 2], per_sequence = t->rank == 4 ? t->shape[1] : 0;
  const int64_t d = t->shape[t->rank - 1];
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t c = 0; c < d; ++c)
      to[((w->b * per_sequence + token0 + i) * n_heads + head) * d + c] += r(w, from[i * d + c] * factor);
}

static double d_lse_of(const work *w, int64_t i) {
  const fa_tensor *t = &w->in->t[FA_T_DLSE];
  if (!t->data || !w->p->grad_lse) return 0;
  int64_t index[FA_MAX_RANK] = {w->b, w->h, i};
  if (t->rank == 2) index[0] = w->h, index[1] = w->q0 + i;
  return fa_tensor_get(t, index);
}

static void backward_head(work *w, const double *kept, const double *scaled_k, const double *scaled_v,
                          standard_outputs *out) {
  const fa_tensor *t = w->in->t;
  const double factor = 1 / (1 - w->p->dropout.p);
  double *rows = zeros(w->sq * w->d), *keys = zeros(w->sk * (w->d > w->dv ? w->d : w->dv));
  gather_d_o(w);
  product_plain(w, kept, true, w->d_o, w->sk, w->dv, w->sq, keys);
  scatter(w, &t[FA_T_V], w->k0, w->sk, w->hk, factor, keys, out->dv);
  product(w, w->d_o, scaled_v, w->sq, w->sk, w->dv, w->dp);
  strike(w, w->dp);
  for (int64_t i = 0; i < w->sq; ++i) {
    const double *weight = w->weight + i * w->sk, d_lse = d_lse_of(w, i);
    double *dp = w->dp + i * w->sk, sum = 0;
    for (int64_t j = 0; j < w->sk; ++j) sum += weight[j] * dp[j];
    for (int64_t j = 0; j < w->sk; ++j) {
      const double ds = r(w, weight[j] * (dp[j] - sum + d_lse));
      if (out->dbias && weight[j] != 0) out->dbias[bias_at(w, i, j)] += ds;
      const fa_flex_pair at = pair_of(w, i, j);
      const double slope =
          weight[j] == 0 ? 0
                         : standard_flex_derivative(w->flex, w->before[i * w->sk + j], &at, ds, out->dbuffer);
      dp[j] = weight[j] == 0 ? 0 : r(w, ds * slope * w->chain[i * w->sk + j]);
    }
  }
  product_plain(w, w->dp, false, scaled_k, w->sq, w->d, w->sk, rows);
  scatter(w, &t[FA_T_Q], w->q0, w->sq, w->h, 1, rows, out->dq);
  product_plain(w, w->dp, true, w->q, w->sk, w->d, w->sq, keys);
  scatter(w, &t[FA_T_K], w->k0, w->sk, w->hk, w->p->scale, keys, out->dk);
  free(rows);
  free(keys);
}

static void head(work *w, standard_outputs *out) {
  const fa_tensor *t = w->in->t;
  const int64_t n = w->sq * w->sk;
  double *scaled_k = zeros(w->sk * w->d), *scaled_v = zeros(w->sk * w->dv), *kept = zeros(n);
  double *o = zeros(w->sq * w->dv);
  slow_rows(w->p, w->in, w->b, w->h, w->q, w->k, w->v);
  for (int64_t x = 0; x < w->sk * w->d; ++x) scaled_k[x] = r(w, w->k[x] * w->p->scale);
  for (int64_t x = 0; x < w->sk * w->dv; ++x) scaled_v[x] = r(w, w->v[x] / (1 - w->p->dropout.p));
  logits(w, scaled_k);
  for (int64_t i = 0; i < w->sq; ++i) {
    const double lse = softmax_row(w, i);
    const bool packed = fa_problem_is_varlen(w->p);
    const int64_t row = packed ? w->h * fa_problem_total_q(w->p) + w->q0 + i
                               : (w->b * w->p->heads_q + w->h) * w->p->seqlen_q + i;
    out->lse[row] = lse;
  }
  memcpy(kept, w->weight, (size_t)n * sizeof *kept);
  strike(w, kept);
  product_plain(w, kept, false, scaled_v, w->sq, w->dv, w->sk, o);
  scatter(w, &t[FA_T_O], w->q0, w->sq, w->h, 1, o, out->o);
  if (out->dq) backward_head(w, kept, scaled_k, scaled_v, out);
  free(scaled_k);
  free(scaled_v);
  free(kept);
  free(o);
}

static void set_lengths(work *w) {
  const fa_problem *p = w->p;
  const bool packed = fa_problem_is_varlen(p);
  w->q0 = packed ? p->cu_seqlens_q.v[w->b] : 0;
  w->k0 = (fa_problem_has_packed_keys(p) ? p->cu_seqlens_k.v[w->b] : 0) +
          (p->leftpad_k.n ? p->leftpad_k.v[w->b] : 0);
  w->sq = packed ? p->cu_seqlens_q.v[w->b + 1] - w->q0 : p->seqlen_q;
  w->sk = slow_rows(p, w->in, w->b, 0, NULL, NULL, NULL);
}

static void entry(work *w, standard_outputs *out) {
  set_lengths(w);
  double **const matrices[] = {&w->s, &w->weight, &w->chain, &w->dp, &w->before};
  for (size_t i = 0; i < sizeof matrices / sizeof *matrices; ++i) *matrices[i] = zeros(w->sq * w->sk);
  w->q = zeros(w->sq * w->d);
  w->d_o = zeros(w->sq * w->dv);
  w->k = zeros(w->sk * w->d);
  w->v = zeros(w->sk * w->dv);
  for (w->h = 0; w->h < w->p->heads_q; ++w->h) {
    w->hk = w->h / (w->p->heads_q / w->p->heads_kv);
    head(w, out);
  }
  double *const all[] = {w->q, w->k, w->v, w->d_o, w->s, w->weight, w->chain, w->dp, w->before};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) free(all[i]);
}

/* Rounds sums over several heads or sequences. */
static void round_all(const work *w, double *x, int64_t n) {
  for (int64_t i = 0; x && i < n; ++i) x[i] = r(w, x[i]);
}

static double *cache_after(const work *w, const slow_array *a) {
  const fa_dtype dtype = fa_tensor_dtype(w->p, FA_T_K);
  double *x = zeros(a->n);
  for (int64_t i = 0; i < a->n; ++i) {
    char slot[8];
    fa_store(dtype, slot, (double)a->value[i]);
    x[i] = fa_load(dtype, slot);
  }
  return x;
}

void standard_attention(const fa_problem *p, const fa_tensors *in, bool rounded, standard_outputs *out) {
  const fa_tensor *t = in->t;
  const int64_t keys = fa_tensor_count(&t[FA_T_K]), values = fa_tensor_count(&t[FA_T_V]);
  *out = (standard_outputs){.o = zeros(fa_tensor_count(&t[FA_T_O])),
                            .lse = zeros(fa_tensor_count(&t[FA_T_LSE]))};
  if (p->backward) {
    out->dq = zeros(fa_tensor_count(&t[FA_T_Q]));
    out->dk = zeros(keys);
    out->dv = zeros(values);
  }
  if (t[FA_T_DBIAS].data) out->dbias = zeros(fa_tensor_count(&t[FA_T_DBIAS]));
  for (int k = 0; k < FA_MAX_CAPTURES; ++k)
    if (t[FA_T_DBUFFER_0 + k].data) out->dbuffer[k] = zeros(fa_tensor_count(&t[FA_T_DBUFFER_0 + k]));
  work w = {.p = p, .in = in, .rounded = rounded, .d = p->head_dim, .dv = p->head_dim_v};
  w.flex = standard_flex_make(p, in);
  for (w.b = 0; w.b < p->batch; ++w.b) entry(&w, out);
  standard_flex_free(w.flex);
  round_all(&w, out->dk, keys);
  round_all(&w, out->dv, values);
  round_all(&w, out->dbias, fa_tensor_count(&t[FA_T_DBIAS]));
  if (p->kvcache.n_new == 0) return;
  slow_outputs caches = {0};
  slow_caches_after(p, in, &caches);
  out->k = cache_after(&w, &caches.t[FA_T_K]);
  out->v = cache_after(&w, &caches.t[FA_T_V]);
  slow_outputs_free(&caches);
}

void standard_outputs_free(standard_outputs *out) {
  double *const all[] = {out->o, out->lse, out->dq, out->dk, out->dv, out->dbias, out->k, out->v};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) free(all[i]);
  for (int k = 0; k < FA_MAX_CAPTURES; ++k) free(out->dbuffer[k]);
  *out = (standard_outputs){0};
}
