/* Bounds of O and LSE: a second walk over a query block's tiles, once its LSE is known. */
#include "ref/bounds/narrow.h"
#include "ref/bounds/scattered.h"
#include "ref/engine/dropout.h"
#include "ref/engine/topk.h"
#include "ref/math/blas.h"
#include "ref/tiles/lse.h"
#include "ref/tiles/score.h"
#include "ref/tiles/sink.h"

#include <math.h>
#include <string.h>

static void row_init(const fa_ref_call *c, const fa_ref_rows *r, int64_t k, const fa_ref_scratch *w,
                     fa_bound_row *t) {
  const fa_bound_maxima maxima = fa_bound_maxima_of(w, k);
  fa_bound_row_begin(r->hi[k] - r->lo[k], w->m[k], w->l[k], t);
  if (c->p->sinks.present && w->key_l[k] > 0) fa_bound_row_either_maximum(&maxima, t);
  if (c->topk) fa_bound_row_repeat(c, (double)fa_ref_topk_most(c, r->e, r->row[k]), t);
  fa_bound_row_extra(c, t);
  t->sink = fa_bound_sink_forward(c, r, k, w, t->extra);
}

/* Some exponential's magnitude is unknown. The errors are those of exponentials by now, and at most e^30. */
static void lose_row(const fa_ref_call *c, const float *e, int64_t n, fa_bound_row *t) {
  t->kept = false;
  t->overflows |= fa_bound_may_overflow(c) && fa_rows_best()->greatest(e, n) > 1e12f;
}

/* What the keys' exponents are off by, relative to their own maximum. An exponential far below the sink's is 0 whatever its
 * error is; an LSE that leaves the sink out is off by that error all the same. at: of the row's first pair in b's tiles. */
static void keep_alone(const fa_ref_call *c, const fa_rows *rows, const double *x, int64_t n, double max,
                       const fa_bound_scratch *b, int64_t at, fa_bound_row *t) {
  const fa_bound_exponents by = fa_bound_exponents_of(c, max, false, t->extra);
  float *e = b->we + at; /* not yet in use */
  memcpy(e, b->e_logit + at, (size_t)n * sizeof *e);
  double most = rows->logit_error(e, x, n, max, by.a, by.s, by.k);
  if (b->e_score) most += c->lambda * rows->greatest(b->e_score + at, n);
  t->alone = fmax(t->alone, most);
}

/* Row k of a tile: turns final scores into P. */
static void weigh_row(fa_ref_call *c, const fa_rows *rows, const fa_ref_rows *r, fa_ref_scratch *w, double *x,
                      fa_bound_scratch *b, int64_t k, int64_t j0, int64_t n, fa_bound_row *t) {
  int64_t begin, end, at;
  fa_ref_row_span(r, k, j0, n, &begin, &end);
  size_t head = (size_t)begin * sizeof(float), tail = (size_t)(n - end) * sizeof(float);
  float *tiles[3] = {b->w + k * n, b->w2 + k * n, b->we + k * n};
  for (int i = 0; i < 3; ++i) {
    memset(tiles[i], 0, head);
    memset(tiles[i] + end, 0, tail);
  }
  if (begin == end || w->key_l[k] == 0) {
    for (int i = 0; i < 3; ++i) memset(tiles[i] + begin, 0, (size_t)(end - begin) * sizeof(float));
    return;
  }
  at = k * n + begin;
  float widest = 0, max_v = rows->greatest(b->max_v + j0 + begin, end - begin);
  if (fa_ref_sink_left_out(c)) keep_alone(c, rows, x + at, end - begin, w->key_m[k], b, at, t);
  if (!fa_bound_exponent(c, rows, b->e_logit + at, x + at, end - begin, w->m[k], false, t->extra, &widest))
    lose_row(c, b->e_logit + at, end - begin, t);
  if (b->e_score) widest += (float)c->lambda * rows->greatest(b->e_score + at, end - begin);
  if (widest > t->widest) t->widest = widest;
  if (max_v > t->max_v) t->max_v = max_v;
  if (t->least > 0) fa_bound_spread_add(&t->spread, x + at, end - begin);
  fa_bound_magnitudes_add(c, r, k, j0 + begin, x + at, end - begin, w->m[k]);
  fa_ref_lse_probabilities(rows, x + at, end - begin, fa_ref_lse_of(w->m[k], w->l[k]));
  fa_bound_amax_add(b, c, k, at, x + at, end - begin);
  if (c->p->dropout.p > 0) fa_ref_dropout_row(c, r->e, r->h, r->row[k], j0 + begin, end - begin, w->z);
  const fa_bound_rounding rounded = fa_bound_row_rounding(c, t->most, w->l[k]);
  const fa_row_probabilities row = {.p = x + at,
                                    .z = c->p->dropout.p > 0 ? w->z : NULL,
                                    .e = b->e_logit + at,
                                    .floor = rounded.floor,
                                    .per_u = rounded.per_u,
                                    .top = rounded.top,
                                    .at_top = rounded.at_top,
                                    .w = b->w + at,
                                    .w2 = b->w2 + at,
                                    .we = b->we + at};
  t->error_sum += rows->weights(&row, end - begin, c->generic);
  if (b->e_score)
    t->scattered += fa_bound_scatter_weights(c, row.p, row.z, b->e_score + at, end - begin, row.w, row.w2);
}

static void write_lse(fa_ref_call *c, const fa_ref_rows *r, int64_t k, const fa_ref_scratch *w,
                      const fa_bound_row *t, double sum_error) {
  fa_want *lse = &c->out->t[FA_T_LSE];
  const int64_t at = fa_ref_lse_index(c, r->e, r->h, r->row[k]);
  const fa_bound_maxima maxima = fa_bound_maxima_of(w, k);
  fa_bound_row own = *t;
  if (fa_ref_sink_left_out(c)) own.widest = t->alone;
  lse->accum[at] =
      fa_bound_row_lse(c, &own, fa_bound_row_error_of_sum(c, &maxima, t), fabs(lse->value[at]), sum_error);
  lse->sum_error[at] = fa_bound_row_sum(t, sum_error);
}

static void write_o(fa_ref_call *c, const fa_ref_rows *r, int64_t k, const fa_ref_scratch *w,
                    const fa_bound_scratch *b, const fa_bound_row *t, double sum_error) {
  fa_want *o = &c->out->t[FA_T_O];
  const int64_t at = fa_ref_q_index(c, r->e, r->h, r->row[k], c->dv);
  const fa_settle_terms terms =
      fa_bound_row_o(c, t, b->unit_v, fmax(w->l[k], w->key_l[k]), b->e_score != NULL, sum_error);
  const fa_row_settle row = {.value = o->value + at,
                             .worst = b->o1 + k * c->dv,
                             .squares = fa_bound_row_has_squares(c, t) ? b->o2 + k * c->dv : NULL,
                             .errors = b->oe + k * c->dv,
                             .terms = terms,
                             .quant = o->quant + at,
                             .noise = o->noise + at,
                             .accum = o->accum + at};
  fa_rows_best()->settle(&row, c->dv);
  o->scale[at / c->dv] = t->max_v;
}

/* Rotated queries: how far they move if f32 rounds them the other way, in units of q. */
static void uncertain_queries(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_rows *r) {
  for (int64_t k = 0; k < r->n; ++k)
    for (int64_t x = 0; x < c->d; ++x)
      b->row_q[k * c->d + x] =
          (float)(c->rotated.dq[fa_ref_q_index(c, r->e, r->h, r->row[k], c->d) + x] / b->unit_q);
}

/* A tile's final scores, with their errors in b->e_logit. Kept scores are just q.k where a pair is
 * visible. */
static double *scores_again(const fa_ref_call *c, const fa_ref_rows *r, fa_ref_scratch *w,
                            fa_bound_scratch *b, int64_t j0, int n) {
  const int m = (int)r->n, d = (int)c->d;
  double *x = w->scores ? w->scores + r->n * (j0 - r->j_begin) : w->s;
  if (!w->scores)
    fa_blas_dgemm(FA_BLAS_N, FA_BLAS_T, m, n, d, c->p->scale, w->q, d, w->k + j0 * c->d, d, 0, x, n);
  fa_bound_logits_begin(b, c, r, j0, n, x);
  if (!w->scores) fa_ref_score_tile(c, r, j0, n, x, n, w->th, w->mod);
  fa_bound_logits_end(b, c, r, j0, n, x, w->th, w->mod);
  return x;
}

void fa_bound_forward_block(fa_ref_call *c, const fa_ref_rows *r, fa_ref_scratch *w, fa_bound_scratch *b) {
  const fa_rows *rows = fa_rows_best();
  int m = (int)r->n, dv = (int)c->dv;
  float beta = 0;
  fa_bound_row t[FA_BLOCK_M];
  fa_ref_tile_spans spans;
  fa_bound_head(b, c, w, false);
  fa_bound_scale(w->q, r->n * c->d, b->unit_q, b->q, b->e_score ? b->q2 : NULL);
  if (b->row_q) uncertain_queries(b, c, r);
  fa_bound_narrow_rows(b, c, r, w);
  fa_bound_amax_begin(b, r->n);
  for (int64_t k = 0; k < r->n; ++k) row_init(c, r, k, w, &t[k]);
  for (int64_t j0 = r->j_begin; j0 < r->j_end; j0 += FA_BLOCK_N) {
    int n = (int)(r->j_end - j0 < FA_BLOCK_N ? r->j_end - j0 : FA_BLOCK_N);
    if (!fa_ref_tile_visited(c, r, j0, n)) continue;
    double *x = scores_again(c, r, w, b, j0, n);
    for (int64_t k = 0; k < r->n; ++k) weigh_row(c, rows, r, w, x, b, k, j0, n, &t[k]);
    const float *v = b->v + j0 * c->dv;
    fa_ref_tile_spans_init(r, j0, n, &spans);
    fa_blas_sgemm_part(FA_BLAS_N, m, dv, n, 1, b->w, n, v, dv, beta, b->o1, dv, &spans.rows);
    fa_blas_sgemm_part(FA_BLAS_N, m, dv, n, 1, b->we, n, v, dv, beta, b->oe, dv, &spans.rows);
    if (c->generic)
      fa_blas_sgemm_part(FA_BLAS_N, m, dv, n, 1, b->w2, n, b->v2 + j0 * c->dv, dv, beta, b->o2, dv,
                         &spans.rows);
    fa_bound_scatter_mean_keys(b, c, r, w, j0, n, x, beta == 0);
    beta = 1;
  }
  for (int64_t k = 0; k < r->n && beta == 1; ++k) {
    if (w->key_l[k] == 0) continue; /* fully masked: exactly 0 */
    const double sum_error = fa_bound_row_sum_error(c, &t[k]);
    t[k].independent = c->lambda * sqrt(t[k].scattered) + fa_bound_scatter_query(c, b, w, k);
    t[k].error_sum += t[k].independent;
    fa_bound_magnitudes_finish(c, r, k, t[k].widest, t[k].kept);
    fa_bound_amax_row(b, c, k, &t[k], sum_error);
    write_lse(c, r, k, w, &t[k], sum_error);
    write_o(c, r, k, w, b, &t[k], sum_error);
  }
}
