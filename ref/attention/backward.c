/* Backward values of one query block: dQ, dK, dV in double, five GEMMs per tile. */
#include "ref/attention/backward.h"
#include "ref/attention/coarse.h"
#include "ref/engine/dropout.h"
#include "ref/tiles/lse.h"
#include "ref/tiles/score.h"

#include "ref/mods/tile.h"

#include <math.h>
#include <string.h>

static bool takes_given_o(const fa_ref_call *c) {
  return c->given_o && !(c->profile && c->profile->delta != FA_DELTA_STORED_O);
}

static double dlse_of(const fa_ref_call *c, const fa_ref_rows *r, int64_t k) {
  const fa_tensor *t = &c->in->t[FA_T_DLSE];
  return t->data ? fa_ref_lse_get(c, t, r->e, r->h, r->row[k]) : 0;
}

/* q, dO, O, LSE, and delta as sum dO O - dLSE. */
static void load_rows(const fa_ref_call *c, const fa_ref_rows *r, fa_ref_scratch *w) {
  const fa_ref_sequence *e = r->e;
  fa_ref_load_q(c, FA_T_Q, e, r->h, r->row, r->n, w->q);
  fa_ref_load_q(c, FA_T_DO, e, r->h, r->row, r->n, w->d_o);
  for (int64_t k = 0; k < r->n; ++k) {
    int64_t i = r->row[k];
    double *o = w->o + k * c->dv;
    if (takes_given_o(c)) {
      const fa_tensor *t = c->given_o;
      fa_ref_load_row(t, fa_ref_q_row(c, t, e, r->h, i), t->stride[t->rank - 1], c->dv, o);
    } else {
      memcpy(o, c->forward->t[FA_T_O].value + fa_ref_q_index(c, e, r->h, i, c->dv),
             (size_t)c->dv * sizeof *o);
    }
    const fa_ref_lse lse = fa_ref_lse_load(c, e, r->h, i);
    w->l[k] = lse.value;
    w->rest[k] = lse.rest;
    double delta = 0;
    for (int64_t x = 0; x < c->dv; ++x) delta += w->d_o[k * c->dv + x] * o[x];
    if (c->twist && c->twist->delta_missing) delta = 0;
    if (c->twist && c->twist->delta_negated) delta = -delta;
    w->delta[k] = delta - dlse_of(c, r, k);
  }
}

/* C = alpha A B^T, with a mistake where it is to be rounded. */
static void row_products(const fa_ref_coarse *coarse, bool rounded, const fa_ref_product *p, double *part) {
  if (coarse && rounded)
    fa_ref_coarse_scores(coarse, p, part);
  else
    fa_blas_dgemm(p->ta, p->tb, p->m, p->n, p->k, p->alpha, p->a, p->lda, p->b, p->ldb, 0, p->c, p->ldc);
}

/* w->s = scores and w->dp = dP of a tile, and the tile's errors. */
static void scores_and_dp(const fa_ref_call *c, const fa_ref_rows *r, fa_ref_scratch *w, int64_t j0,
                          int64_t n, fa_bound_scratch *b) {
  const int m = (int)r->n, d = (int)c->d, dv = (int)c->dv, nn = (int)n;
  const double *k = w->k + j0 * c->d, *v = w->v + j0 * c->dv;
  const fa_ref_coarse *x = fa_ref_coarse_of(c);
  const fa_ref_product qk = {FA_BLAS_N, FA_BLAS_T, m, nn, d, c->p->scale, w->q, d, k, d, w->s, nn};
  const fa_ref_product dov = {FA_BLAS_N, FA_BLAS_T, m, nn, dv, 1, w->d_o, dv, v, dv, w->dp, nn};
  row_products(x, x && x->scores, &qk, w->part);
  if (b) fa_bound_logits_begin(b, c, r, j0, n, w->s);
  fa_ref_score_tile(c, r, j0, n, w->s, n, c->p->softcap > 0 ? w->th : NULL, w->mod);
  if (b) fa_bound_logits_end(b, c, r, j0, n, w->s, w->th, w->mod);
  row_products(x, x && x->dp, &dov, w->part);
  if (b) fa_bound_backward_tile_begin(c, r, j0, n, b);
}

/* One row of w->s: scores become P, and w->z dropout's factors, from key *begin on. */
static void probabilities(const fa_ref_call *c, const fa_rows *rows, const fa_ref_rows *r, fa_ref_scratch *w,
                          int64_t k, int64_t j0, int64_t n, fa_bound_scratch *b, int64_t *begin,
                          int64_t *end) {
  double *p = w->s + k * n, *dp = w->dp + k * n;
  fa_ref_row_span(r, k, j0, n, begin, end);
  memset(p, 0, (size_t)*begin * sizeof *p);
  memset(dp, 0, (size_t)*begin * sizeof *dp);
  memset(p + *end, 0, (size_t)(n - *end) * sizeof *p);
  memset(dp + *end, 0, (size_t)(n - *end) * sizeof *dp);
  if (b && *end > *begin) fa_bound_backward_row_exponent(c, rows, w, b, k, n, *begin, *end);
  fa_ref_lse_probabilities(rows, p + *begin, *end - *begin, (fa_ref_lse){w->l[k], w->rest[k]});
  if (c->p->dropout.p > 0) fa_ref_dropout_row(c, r->e, r->h, r->row[k], j0 + *begin, *end - *begin, w->z);
}

/* delta as sum P dP - dLSE, as automatic differentiation has it: a walk of its own. */
static void sum_delta(const fa_ref_call *c, const fa_rows *rows, const fa_ref_rows *r, fa_ref_scratch *w,
                      fa_bound_scratch *b) {
  for (int64_t k = 0; k < r->n; ++k) w->delta[k] = -dlse_of(c, r, k);
  for (int64_t j0 = r->j_begin; j0 < r->j_end; j0 += FA_BLOCK_N) {
    const int64_t n = r->j_end - j0 < FA_BLOCK_N ? r->j_end - j0 : FA_BLOCK_N;
    if (!fa_ref_tile_visited(c, r, j0, n)) continue;
    scores_and_dp(c, r, w, j0, n, b);
    for (int64_t k = 0; k < r->n; ++k) {
      int64_t begin, end;
      probabilities(c, rows, r, w, k, j0, n, b, &begin, &end);
      if (b) fa_bound_delta_add(c, w, b, k, n, begin, end);
      if (c->twist) fa_ref_astray_round(&c->twist->p_in_delta, w->s + k * n + begin, end - begin);
      for (int64_t j = begin; j < end; ++j)
        w->delta[k] += w->s[k * n + j] * (c->p->dropout.p > 0 ? w->z[j - begin] : 1) * w->dp[k * n + j];
    }
  }
}

void fa_ref_backward_rows_begin(const fa_ref_call *c, const fa_rows *rows, const fa_ref_rows *r,
                                fa_ref_scratch *w, fa_bound_scratch *b) {
  load_rows(c, r, w);
  if (b) fa_bound_backward_begin(c, r, w, b);
  if (c->profile && c->profile->delta == FA_DELTA_SUM_P_DP) sum_delta(c, rows, r, w, b);
  if (b) fa_bound_backward_delta(c, r, w, b);
}

void fa_ref_backward_tile(const fa_ref_call *c, const fa_rows *rows, const fa_ref_rows *r, fa_ref_scratch *w,
                          int64_t j0, int64_t n, fa_bound_scratch *b) {
  scores_and_dp(c, r, w, j0, n, b);
  for (int64_t k = 0; k < r->n; ++k) {
    int64_t begin, end;
    double *p = w->s + k * n, *dp = w->dp + k * n;
    probabilities(c, rows, r, w, k, j0, n, b, &begin, &end);
    if (b) fa_bound_backward_row(c, rows, w, b, k, n, begin, end);
    const double *z = c->p->dropout.p > 0 ? w->z : NULL;
    if (c->twist && c->twist->p_in_ds.bits > 0)
      fa_ref_astray_dscore(&c->twist->p_in_ds, p + begin, dp + begin, z, w->delta[k], end - begin);
    else
      rows->dscore(p + begin, dp + begin, z, w->delta[k], end - begin);
  }
}

/* Turns g into dS: applies the derivatives of score_mod and softcap. */
static void through_chain(const fa_ref_call *c, const fa_rows *rows, const fa_ref_rows *r, fa_ref_scratch *w,
                          int64_t j0, int64_t n) {
  const bool capped = c->p->softcap > 0 && !(c->twist && c->twist->softcap_not_derived);
  if (!capped && !c->p->score_mod) return;
  for (int64_t k = 0; k < r->n; ++k) {
    int64_t begin, end;
    fa_ref_row_span(r, k, j0, n, &begin, &end);
    const fa_ref_mod_row row = {c, w->mod, r->e, r->h, r->row[k], j0 + begin, end - begin};
    if (c->p->score_mod) fa_ref_mods_derivative(&row, w->mod->before + k * n + begin, w->dp + k * n + begin);
    if (!capped) continue;
    rows->dsoftcap(w->dp + k * n + begin, w->th + k * n + begin, end - begin);
  }
}

/* Adds a tile's part of dV, dK and dQ. */
static void add_products(const fa_ref_call *c, const fa_ref_rows *r, fa_ref_scratch *w, int64_t j0, int n,
                         const fa_ref_tile_spans *spans, fa_sums sums) {
  const fa_ref_coarse *x = fa_ref_coarse_of(c);
  const int m = (int)r->n, d = (int)c->d, dv = (int)c->dv;
  const double scale = c->p->scale, *k = w->k + j0 * c->d;
  double *to_dv = w->dv + j0 * c->dv, *to_dk = w->dk + j0 * c->d;
  if (!x || x->tile == 0) {
    if (sums.of_keys) {
      fa_blas_dgemm_part(FA_BLAS_T, n, dv, m, 1, w->s, n, w->d_o, dv, 1, to_dv, dv, &spans->keys);
      fa_blas_dgemm_part(FA_BLAS_T, n, d, m, scale, w->dp, n, w->q, d, 1, to_dk, d, &spans->keys);
    }
    if (sums.of_rows)
      fa_blas_dgemm_part(FA_BLAS_N, m, d, n, scale, w->dp, n, k, d, 1, w->acc, d, &spans->rows);
    return;
  }
  const fa_ref_product products[] = {{FA_BLAS_T, FA_BLAS_N, n, dv, m, 1, w->s, n, w->d_o, dv, to_dv, dv},
                                     {FA_BLAS_T, FA_BLAS_N, n, d, m, scale, w->dp, n, w->q, d, to_dk, d},
                                     {FA_BLAS_N, FA_BLAS_N, m, d, n, scale, w->dp, n, k, d, w->acc, d}};
  for (int i = 0; i < 3; ++i) fa_ref_coarse_add(x, &products[i], w->part);
}

static void write_dq(const fa_ref_call *c, const fa_ref_rows *r, const fa_ref_scratch *w) {
  for (int64_t k = 0; k < r->n; ++k)
    if (!r->left_out[k])
      memcpy(c->out->t[FA_T_DQ].value + fa_ref_q_index(c, r->e, r->h, r->row[k], c->d), w->acc + k * c->d,
             (size_t)c->d * sizeof *w->acc);
}

/* Whether the walk's sums need the tile: of a sample's strips only these keys. */
static bool tile_counts(const fa_ref_call *c, const fa_ref_rows *r, int64_t j0, int64_t n, fa_sums sums) {
  if (c->sample && sums.of_keys && !fa_ref_strips_meet(c->sample, r->e->b, r->h / c->group, j0, n))
    return false;
  return fa_ref_tile_visited(c, r, j0, n);
}

void fa_ref_backward_block(const fa_backward_job *f, const fa_ref_rows *r, fa_ref_scratch *w,
                           fa_bound_scratch *b, fa_sums sums) {
  fa_ref_call *c = f->c;
  const int64_t keys = fa_ref_coarse_keys(c), n_tiles = (r->j_end - r->j_begin + keys - 1) / keys;
  const bool backwards = fa_ref_coarse_of(c) && fa_ref_coarse_of(c)->backwards;
  bool first = true;
  fa_ref_tile_spans spans;
  fa_ref_backward_rows_begin(c, f->rows, r, w, b);
  memset(w->acc, 0, (size_t)(r->n * c->d) * sizeof *w->acc);
  for (int64_t tile = 0; tile < n_tiles; ++tile) {
    const int64_t j0 = r->j_begin + (backwards ? n_tiles - 1 - tile : tile) * keys;
    const int n = (int)(r->j_end - j0 < keys ? r->j_end - j0 : keys);
    if (!tile_counts(c, r, j0, n, sums)) continue;
    fa_ref_backward_tile(c, f->rows, r, w, j0, n, b);
    through_chain(c, f->rows, r, w, j0, n);
    if (c->twist) fa_ref_astray_round(&c->twist->p, w->s, r->n * n);
    if (c->twist) fa_ref_astray_round(&c->twist->ds, w->dp, r->n * n);
    fa_ref_tile_spans_init(r, j0, n, &spans);
    add_products(c, r, w, j0, n, &spans, sums);
    if (b) fa_bound_backward_tile_end(c, r, j0, n, b, &spans, sums, first);
    first = false;
  }
  if (!sums.of_rows) return;
  write_dq(c, r, w);
  if (b && !first) fa_bound_backward_end(c, r, b);
}
