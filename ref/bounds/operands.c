/* Memory of the bounds, and their operands: scaled absolute values and squares. */
#include "ref/bounds/narrow.h"
#include "ref/bounds/scattered.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float *take(fa_ref_arena *a, int64_t n) {
  return fa_ref_arena_alloc(a, n, sizeof(float));
}

static void lay_out_gradients(fa_bound_scratch *b, const fa_ref_call *c, int64_t m, int64_t tile,
                              fa_ref_arena *to) {
  int64_t sk = c->max_sk;
  const bool cap = fa_bound_has_chain(c->p);
  b->d_o = take(to, m * c->dv);
  b->d_o2 = take(to, m * c->dv);
  b->d = take(to, tile);
  if (fa_bound_dp_scatters(c)) {
    b->e_dp = take(to, tile);
    b->v2 = take(to, sk * c->dv);
  }
  b->g = take(to, tile);
  b->g2 = take(to, tile);
  b->ge = take(to, tile);
  b->cap = take(to, cap ? tile : 0);
  b->cap_err = take(to, cap ? tile : 0);
  b->dq1 = take(to, m * c->d);
  b->dq2 = take(to, m * c->d);
  b->dqe = take(to, m * c->d);
  b->dk1 = take(to, sk * c->d);
  b->dk2 = take(to, sk * c->d);
  b->dke = take(to, sk * c->d);
  b->dv1 = take(to, sk * c->dv);
  b->dv2 = take(to, sk * c->dv);
  b->dve = take(to, sk * c->dv);
  b->dk_terms = take(to, sk);
  b->dv_exact = take(to, sk);
  b->dk_lost = fa_ref_arena_alloc(to, sk, sizeof *b->dk_lost);
  b->key_lost = fa_ref_arena_alloc(to, FA_BLOCK_N, sizeof *b->key_lost);
  b->exact = take(to, FA_BLOCK_N);
  b->terms = take(to, FA_BLOCK_N);
}

static void lay_out_narrow(fa_bound_narrow *x, const fa_ref_call *c, int64_t m, fa_ref_arena *to) {
  const int64_t sk = c->max_sk;
  x->q = take(to, m * c->d);
  x->k = take(to, sk * c->d);
  x->q_exponent = fa_ref_arena_alloc(to, m * c->d, sizeof(int));
  x->k_exponent = fa_ref_arena_alloc(to, sk * c->d, sizeof(int));
  x->k_descale = fa_ref_arena_alloc(to, sk, sizeof(double));
}

/* Lays out the arrays from `base`; with NULL, only measures. Returns their size in bytes. */
static size_t lay_out(fa_bound_scratch *b, const fa_ref_call *c, bool backward, char *base) {
  fa_ref_arena to = {base, 0};
  int64_t m = c->max_sq < FA_BLOCK_M ? c->max_sq : FA_BLOCK_M;
  int64_t n = c->max_sk < FA_BLOCK_N ? c->max_sk : FA_BLOCK_N, sk = c->max_sk;
  b->k = take(&to, sk * c->d);
  b->v = take(&to, sk * c->dv);
  b->q = take(&to, m * c->d);
  b->e_logit = take(&to, m * n);
  b->w = take(&to, m * n);
  b->w2 = take(&to, m * n);
  b->we = take(&to, m * n);
  b->max_k = take(&to, sk);
  b->max_v = take(&to, sk);
  b->x = fa_ref_arena_alloc(&to, n, sizeof(double));
  if (c->rotated.q) {
    b->row_k = take(&to, sk * c->d);
    b->row_q = take(&to, m * c->d);
  }
  if (fa_bound_walks_scores(c)) lay_out_narrow(&b->narrow, c, m, &to);
  const bool scatter = fa_bound_scores_scatter(c);
  if (scatter) b->e_score = take(&to, m * n);
  if (scatter || backward) {
    b->k2 = take(&to, sk * c->d);
    b->q2 = take(&to, m * c->d);
  }
  if (backward) {
    lay_out_gradients(b, c, m, m * n, &to);
    return to.used;
  }
  if (fa_bound_queries_scatter(c)) b->mean_k = fa_ref_arena_alloc(&to, m * c->d, sizeof(double));
  b->v2 = take(&to, sk * c->dv);
  b->o1 = take(&to, m * c->dv);
  b->o2 = take(&to, m * c->dv);
  b->oe = take(&to, m * c->dv);
  return to.used;
}

static double greatest(const double *x, int64_t n) {
  double most = 0;
  for (int64_t i = 0; i < n; ++i) most = fabs(x[i]) > most ? fabs(x[i]) : most;
  return most;
}

static double tensor_greatest(const fa_tensor *t) {
  int64_t index[FA_MAX_RANK], n = fa_tensor_count(t), width = t->rank > 0 ? t->shape[t->rank - 1] : 1;
  double row[1024], most = 0;
  for (int64_t at = 0; at < n; at += width) {
    fa_tensor_unravel(t, at, index);
    for (int64_t x = 0; x < width; x += 1024) {
      index[t->rank - 1] = x;
      int64_t some = width - x < 1024 ? width - x : 1024;
      int64_t offset = fa_tensor_offset(t, index);
      fa_ref_load_row(t, t->data + offset, t->stride[t->rank - 1], some, row);
      most = fmax(most, greatest(row, some));
    }
  }
  return most;
}

/* Units of the call: the largest magnitudes of q, dO, dLSE. */
static void measure_units(fa_bound_scratch *b, const fa_ref_call *c, bool backward) {
  double q = tensor_greatest(&c->in->t[FA_T_Q]) * c->q_descale_most;
  b->unit_q = fa_bound_unit_of(c->rotated.q ? 2 * q : q);
  if (!backward) return;
  b->unit_do = fa_bound_unit_of(tensor_greatest(&c->in->t[FA_T_DO]));
  b->unit_dlse = c->in->t[FA_T_DLSE].data ? fa_bound_unit_of(tensor_greatest(&c->in->t[FA_T_DLSE])) : 0;
}

fa_status fa_bound_scratch_init(fa_bound_scratch *b, const fa_ref_call *c, bool backward,
                                const fa_bound_scratch *like, fa_error *err) {
  *b = (fa_bound_scratch){0};
  fa_bound_scratch measure = {0};
  size_t bytes = lay_out(&measure, c, backward, NULL);
  void *arena = NULL;
  if (posix_memalign(&arena, 64, bytes + 64) != 0)
    return fa_fail(err, FA_ERR_MEMORY, "reference: out of memory: %zu bytes for bounds", bytes);
  lay_out(b, c, backward, arena);
  b->arena = arena;
  if (like) {
    b->unit_q = like->unit_q;
    b->unit_do = like->unit_do;
    b->unit_dlse = like->unit_dlse;
  } else {
    measure_units(b, c, backward);
  }
  return FA_OK;
}

void fa_bound_scratch_free(fa_bound_scratch *b) {
  free(b->arena);
  *b = (fa_bound_scratch){0};
}

void fa_bound_scale(const double *from, int64_t n, double unit, float *restrict to, float *restrict to2) {
  fa_rows_best()->magnitudes(from, n, 1 / unit, to, to2);
}

static void row_maxima(const float *x, int64_t n, int64_t width, double unit, float *out) {
  const fa_rows *rows = fa_rows_best();
  for (int64_t j = 0; j < n; ++j) out[j] = (float)(rows->greatest(x + j * width, width) * unit);
}

/* Rounding uncertainty of appended, rotated keys, in units of k. */
static void uncertain_keys(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_scratch *w) {
  const fa_kvcache *kv = &c->p->kvcache;
  for (int64_t j = 0; j < w->e->sk; ++j) {
    int64_t fresh = w->e->k_first + j - kv->len.v[w->e->b];
    for (int64_t x = 0; x < c->d; ++x)
      b->row_k[j * c->d + x] =
          fresh < 0
              ? 0
              : (float)(c->rotated.dk[((w->e->b * kv->n_new + fresh) * c->heads_kv + w->hk) * c->d + x] /
                        b->unit_k);
  }
}

void fa_bound_head(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_scratch *w, bool backward) {
  if (b->e == w->e && b->hk == w->hk) return;
  int64_t n_k = w->e->sk * c->d, n_v = w->e->sk * c->dv;
  b->unit_k = fa_bound_unit_of(greatest(w->k, n_k));
  b->unit_v = fa_bound_unit_of(greatest(w->v, n_v));
  b->unit_ds = fmax(fmax(b->unit_do * b->unit_v, b->unit_dlse), FA_LEAST_UNIT);
  b->most_unit_ds = fmax(b->most_unit_ds, b->unit_ds);
  fa_bound_scale(w->k, n_k, b->unit_k, b->k, (backward && c->generic) || b->e_score ? b->k2 : NULL);
  fa_bound_scale(w->v, n_v, b->unit_v, b->v, (!backward || b->e_dp) && c->generic ? b->v2 : NULL);
  row_maxima(b->k, w->e->sk, c->d, b->unit_k, b->max_k);
  row_maxima(b->v, w->e->sk, c->dv, b->unit_v, b->max_v);
  if (b->row_k) uncertain_keys(b, c, w);
  fa_bound_narrow_keys(b, c, w);
  b->e = w->e;
  b->hk = w->hk;
}
