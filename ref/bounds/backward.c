/* Bounds of dQ, dK, dV: a tile's terms while its values are computed, GEMMs of the terms, and the final
 * sums. */
#include "ref/bounds/backward.h"
#include "ref/bounds/scattered.h"
#include "ref/math/blas.h"
#include "ref/tiles/lse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double u = 0x1p-24;

/* Where the kernel's own LSE is unknown or says too little: how far the forward's bounds allow it to be off. */
double fa_bound_lse_slack(const fa_ref_call *c, const fa_ref_rows *r, int64_t k, const fa_ref_scratch *w) {
  if (fa_ref_lse_is_given(c, r->e, r->h, r->row[k])) return c->profile->u_lse * fabs(w->l[k]);
  return fa_want_bound(&c->forward->t[FA_T_LSE], fa_ref_lse_index(c, r->e, r->h, r->row[k]));
}

/* A part of each exponent of a row. A P that is kept has the errors of the forward's exponentials, sum and quotient;
 * where the sum is not known so well, its logarithm is still no further off than the LSE. */
static double row_extra(const fa_ref_call *c, const fa_ref_rows *r, int64_t k, const fa_ref_scratch *w) {
  const fa_profile *p = c->profile;
  if (!p->p_kept) return p->eps_exp + fa_bound_lse_slack(c, r, k, w) + fa_bound_sink_added(c, r, k, w);
  const fa_want *lse = &c->forward->t[FA_T_LSE];
  FA_ASSERT(lse->sum_error != NULL);
  const int64_t at = fa_ref_lse_index(c, r->e, r->h, r->row[k]);
  const double changes = fa_bound_changes(c, r->hi[k] - r->lo[k]);
  const double sum = lse->sum_error[at] < INFINITY ? lse->sum_error[at] : fa_want_bound(lse, at);
  return (1 + changes) * p->eps_exp + 2 * u + sum;
}

void fa_bound_backward_begin(const fa_ref_call *c, const fa_ref_rows *r, const fa_ref_scratch *w,
                             fa_bound_scratch *b) {
  fa_bound_head(b, c, w, true);
  fa_bound_scale(w->q, r->n * c->d, b->unit_q, b->q, c->generic || b->e_score ? b->q2 : NULL);
  fa_bound_scale(w->d_o, r->n * c->dv, b->unit_do, b->d_o, c->generic ? b->d_o2 : NULL);
  for (int64_t k = 0; k < r->n; ++k) {
    b->row_extra[k] = row_extra(c, r, k, w);
    b->row_terms[k] = b->row_least[k] = 0;
    b->row_lost[k] = false;
    b->row_delta[k] = (fa_bound_delta_sum){0};
  }
}

void fa_bound_backward_delta(const fa_ref_call *c, const fa_ref_rows *r, const fa_ref_scratch *w,
                             fa_bound_scratch *b) {
  const double lost =
      fa_bound_lost_dp(c, b->unit_do, b->unit_v); /* of dP, but it enters every dS as delta's error does */
  for (int64_t k = 0; k < r->n; ++k) {
    b->row_e_delta[k] = fa_bound_e_delta(fa_bound_delta(c, r, k, w, b), lost, b->unit_ds);
    b->row_least[k] = fa_bound_least_spread_of_ds(c, r->hi[k] - r->lo[k], w->delta[k]);
    fa_bound_spread_begin(&b->row_spread[k], 4 * b->row_least[k]);
  }
}

void fa_bound_backward_tile_begin(const fa_ref_call *c, const fa_ref_rows *r, int64_t j0, int64_t n,
                                  fa_bound_scratch *b) {
  int m = (int)r->n, dv = (int)c->dv, nn = (int)n;
  fa_blas_sgemm(FA_BLAS_N, FA_BLAS_T, m, nn, dv, 1, b->d_o, dv, b->v + j0 * c->dv, dv, 0, b->d, nn);
  fa_bound_scatter_dp(b, c, r, j0, n);
  b->overflows = b->ds_overflows = false;
  memset(b->terms, 0, (size_t)n * sizeof *b->terms);
  memset(b->exact, 0, (size_t)n * sizeof *b->exact);
  memset(b->key_lost, 0, (size_t)n * sizeof *b->key_lost);
}

/* The error of a P of a row about which nothing is known, relative to it; e: what its exponent alone may do. Where that
 * is more than the greatest weight stands for, P may be anything, however small the right one is. */
static float unknown_weight(const fa_ref_call *c, fa_bound_scratch *b, double exponent, float e) {
  if (exponent == -INFINITY) return 0;
  if (fa_bound_may_overflow(c) && !(exponent < 20)) b->overflows = true;
  if (e < 1e12f) return FA_GREATEST_WEIGHT;
  const double p = exp(exponent);
  if (p == 0) b->overflows = true; /* no factor makes anything of it */
  return (float)fmin(FA_GREATEST_WEIGHT / fmin(p, 1), 0x1p127);
}

/* A score of the row may be infinite, and then all of its P may be NaN. What a mask hides has no score. */
static bool may_be_infinite(const float *e, const double *s, int64_t n) {
  for (int64_t j = 0; j < n; ++j)
    if (e[j] == INFINITY && s[j] > -INFINITY) return true;
  return false;
}

void fa_bound_backward_row_exponent(const fa_ref_call *c, const fa_rows *rows, const fa_ref_scratch *w,
                                    fa_bound_scratch *b, int64_t k, int64_t n, int64_t begin, int64_t end) {
  float *e = b->e_logit + k * n + begin, most;
  if (fa_bound_may_overflow(c) && may_be_infinite(e, w->s + k * n + begin, end - begin)) b->overflows = true;
  if (b->row_least[k] > 0) fa_bound_spread_add(&b->row_spread[k], w->s + k * n + begin, end - begin);
  if (!fa_bound_exponent(c, rows, e, w->s + k * n + begin, end - begin, w->l[k], !c->profile->p_kept,
                         b->row_extra[k], &most))
    for (int64_t j = 0; j < end - begin; ++j)
      e[j] = unknown_weight(c, b, w->s[k * n + begin + j] - w->l[k], e[j]);
}

static void fill_infinite(float *x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = INFINITY;
}

static void clear(float *x, int64_t begin, int64_t end) {
  if (end > begin) memset(x + begin, 0, (size_t)(end - begin) * sizeof *x);
}

/* u_dp: what dP is rounded by. */
static void add_lost_weights(const fa_row_gradient *row, double floor, double u_dp, int64_t n) {
  const fa_lost_weights of = {row->per_unit, row->k_d, row->e_delta, row->u_dp + u_dp, row->delta, floor};
  for (int64_t j = 0; j < n; ++j) {
    const double slope = row->cap ? row->cap[j] + row->cap_err[j] : 1;
    row->ge[j] += fa_element_lost_weight(&of, row->p[j], row->dp[j], row->e[j], row->d[j],
                                         row->z ? row->z[j] : 1, slope);
  }
}

/* A dP that overflows its type, or the sum that it comes from: no bound. */
static void overflow_dp(const fa_ref_call *c, fa_bound_scratch *b, int64_t at, int64_t n) {
  const double rounded = c->profile->max_dp * (1 - c->p->dropout.p); /* so that Z dP fits, too */
  const double most = fmin(fa_bound_sum_limit(c, FA_PRODUCT_DP), c->profile->u_dp > 0 ? rounded : INFINITY);
  const double unit = b->unit_do * b->unit_v;
  const bool operands = fa_bound_unit_overflows(c, FA_PRODUCT_DP, fmax(b->unit_do, b->unit_v));
  if (!(most < INFINITY) && !operands) return;
  for (int64_t j = at; j < at + n; ++j) b->overflows |= operands || !(b->d[j] * unit <= most);
}

/* Whether dS itself is more than its narrow type holds: a kernel then has infinity, and NaN where K or Q is 0. Not where only
 * its bound is, because nothing is known of P: there NaN is wrong. */
static bool is_beyond(const fa_row_gradient *row, int64_t j, float most) {
  const double z = row->z ? row->z[j] : 1, slope = row->cap ? row->cap[j] : 1;
  const double ds = row->p[j] * fabs(z * row->dp[j] - row->delta) * slope * row->per_unit;
  return row->e[j] < 1 && ds * (1 + row->e[j]) * 1.001 > most;
}

void fa_bound_backward_row(const fa_ref_call *c, const fa_rows *rows, const fa_ref_scratch *w,
                           fa_bound_scratch *b, int64_t k, int64_t n, int64_t begin, int64_t end) {
  const fa_profile *p = c->profile;
  float *tiles[6] = {b->w, b->w2, b->we, b->g, b->g2, b->ge};
  for (int x = 0; x < 6; ++x) {
    clear(tiles[x] + k * n, 0, begin);
    clear(tiles[x] + k * n, end, n);
  }
  if (begin == end) return;
  int64_t at = k * n + begin;
  bool dropout = c->p->dropout.p > 0, cap = fa_bound_has_chain(c->p) && !b->plain;
  double per_unit = 1 / b->unit_ds;
  fa_row_gradient row = {.p = w->s + at,
                         .dp = w->dp + at,
                         .z = dropout ? w->z : NULL,
                         .e = b->e_logit + at,
                         .d = b->d + at,
                         .cap = cap ? b->cap + at : NULL,
                         .cap_err = cap ? b->cap_err + at : NULL,
                         .delta = w->delta[k],
                         .per_unit = per_unit,
                         .e_delta = b->row_e_delta[k],
                         .u_dp = fa_bound_u_dp(c),
                         .tiny = fa_bound_tiny_ds(per_unit),
                         .squares = c->generic && !b->plain,
                         .one_is_exact =
                             !dropout && p->truncated_p == 0, /* some kernels scale before they round */
                         .w = b->w + at,
                         .w2 = b->w2 + at,
                         .we = b->we + at,
                         .g = b->g + at,
                         .g2 = b->g2 + at,
                         .ge = b->ge + at,
                         .terms = b->terms + begin,
                         .exact = b->exact + begin};
  row.k_d = (float)(fa_bound_dp_error(c) * b->unit_do * b->unit_v * per_unit * 1.0001);
  if (p->u_p > 0) {
    row.per_u_p = (float)(1 / p->u_p);
    row.floor_p = (float)(p->floor_p / p->u_p / (1 - c->p->dropout.p));
  }
  if (p->u_ds > 0 && !b->plain) {
    row.per_u_ds = (float)(1 / p->u_ds);
    row.floor_ds = fa_bound_floor_in_units(c, per_unit);
  }
  rows->gradient(&row, end - begin);
  fa_bound_scatter_gradient(c, b, &row, b->e_score ? b->e_score + at : NULL, b->e_dp ? b->e_dp + at : NULL,
                            end - begin);
  for (int64_t j = 0; cap && j < end - begin; ++j)
    b->steepest = fmax(b->steepest, row.p[j] > 0 ? (double)row.cap[j] + row.cap_err[j] : 0);
  if (p->u_p_in_ds > 0) add_lost_weights(&row, p->floor_p, p->u_dp * (dropout ? 2 : 1), end - begin);
  b->row_terms[k] += row.sum_terms;
  overflow_dp(c, b, at, end - begin);
  if (fa_bound_may_overflow(c) && row.e_delta >= FA_GREATEST_WEIGHT) b->ds_overflows = true;
  if (p->u_ds == 0 || b->plain) return;
  const float most = fa_bound_most_ds(c, per_unit);
  for (int64_t j = begin; j < end; ++j) /* dS overflows its narrow type: no bound */
    if (!(b->g[k * n + j] + b->ge[k * n + j] <= most)) {
      b->ge[k * n + j] = FA_GREATEST_WEIGHT;
      if (is_beyond(&row, j - begin, most)) b->row_lost[k] = b->key_lost[j] = true;
      b->ds_overflows |= c->p->scale == 0; /* infinity times 0 is NaN, and this is a number */
    }
}

/* Something in the tile may have become infinite or NaN, and then everything is that takes a part from it. */
static void spread_overflow(const fa_ref_call *c, const fa_ref_rows *r, int64_t j0, int64_t n,
                            fa_bound_scratch *b, fa_sums sums) {
  if (sums.of_rows) fill_infinite(b->dqe, r->n * c->d);
  if (!sums.of_keys) return;
  fill_infinite(b->dke + j0 * c->d, n * c->d);
  if (b->overflows) fill_infinite(b->dve + j0 * c->dv, n * c->dv);
}

void fa_bound_backward_tile_end(const fa_ref_call *c, const fa_ref_rows *r, int64_t j0, int64_t n,
                                fa_bound_scratch *b, const fa_ref_tile_spans *spans, fa_sums sums,
                                bool first) {
  int m = (int)r->n, nn = (int)n, d = (int)c->d, dv = (int)c->dv;
  float beta = first ? 0 : 1;
  const float *left[3] = {b->w, b->we, b->w2}, *ds[3] = {b->g, b->ge, b->g2};
  const float *d_o[3] = {b->d_o, b->d_o, b->d_o2}, *q[3] = {b->q, b->q, b->q2}, *key[3] = {b->k, b->k, b->k2};
  float *dv_sum[3] = {b->dv1, b->dve, b->dv2}, *dk_sum[3] = {b->dk1, b->dke, b->dk2};
  float *dq_sum[3] = {b->dq1, b->dqe, b->dq2}, most_q = 0;
  for (int x = 0; x < (c->generic ? 3 : 2); ++x) {
    if (sums.of_keys) {
      fa_blas_sgemm_part(FA_BLAS_T, nn, dv, m, 1, left[x], nn, d_o[x], dv, 1, dv_sum[x] + j0 * c->dv, dv,
                         &spans->keys);
      fa_blas_sgemm_part(FA_BLAS_T, nn, d, m, 1, ds[x], nn, q[x], d, 1, dk_sum[x] + j0 * c->d, d,
                         &spans->keys);
    }
    if (sums.of_rows)
      fa_blas_sgemm_part(FA_BLAS_N, m, d, nn, 1, ds[x], nn, key[x] + j0 * c->d, d, beta, dq_sum[x], d,
                         &spans->rows);
  }
  if (b->overflows || b->ds_overflows) spread_overflow(c, r, j0, n, b, sums);
  if (!sums.of_keys) return;
  for (int64_t x = 0; x < r->n * c->d; ++x) most_q = b->q[x] > most_q ? b->q[x] : most_q;
  for (int64_t j = 0; j < n; ++j) {
    b->dk_terms[j0 + j] += b->terms[j] * most_q;
    b->dv_exact[j0 + j] += b->exact[j];
    b->dk_lost[j0 + j] |= b->key_lost[j];
  }
}

/* Elements at .. at + n - 1 of w. The sums may be in the arrays of the bounds. squares: NULL if only the
 * worst case holds. */
static void settle(const fa_ref_call *c, const fa_bound_sums *t, const float *worst, const float *squares,
                   const float *errors, fa_want *w, int64_t at, int64_t n) {
  const fa_settle_terms terms = fa_bound_settle_terms(c, t);
  const fa_row_settle row = {.value = w->value + at,
                             .worst = worst,
                             .squares = squares,
                             .errors = errors,
                             .terms = terms,
                             .quant = w->quant + at,
                             .noise = w->noise + at,
                             .accum = w->accum + at};
  float largest = t->limit < INFINITY ? fa_rows_best()->greatest(worst, n) : 0; /* worst may become quant */
  fa_rows_best()->settle(&row, n);
  if (largest * t->raw > t->limit) fill_infinite(w->accum + at, n);
  for (int64_t x = at; !(terms.unit > 0) && x < at + n; ++x) /* an infinite error times a scale of 0 */
    if (isnan(w->accum[x])) w->accum[x] = INFINITY;
}

/* Where errors of scores or dP are independent, so are those of P and dS. */
static fa_bound_sums sums_of(const fa_ref_call *c, fa_product which, int64_t n, double unit, double u_first,
                             double u_second, double most) {
  if (u_first == 0 && (fa_bound_scores_scatter(c) || fa_bound_dp_scatters(c))) u_first = fa_bound_unit(0);
  return fa_bound_sums_of(c, which, n, unit, u_first, u_second, most);
}

/* The largest sum of magnitudes that neither its accumulator nor an operand rounded to fewer bits lets overflow. unit:
 * of the operand. */
static double limit_of(const fa_ref_call *c, fa_product which, double unit) {
  return fa_bound_unit_overflows(c, which, unit) ? 0 : fa_bound_sum_limit(c, which);
}

void fa_bound_backward_end(const fa_ref_call *c, const fa_ref_rows *r, const fa_bound_scratch *b) {
  fa_want *dq = &c->out->t[FA_T_DQ];
  double unit = fabs(c->p->scale) * b->unit_ds * b->unit_k, most_k = 0;
  for (int64_t j = r->j_begin; j < r->j_end; ++j) most_k = b->max_k[j] > most_k ? b->max_k[j] : most_k;
  for (int64_t k = 0; k < r->n; ++k) {
    int64_t n = r->hi[k] - r->lo[k], at = fa_ref_q_index(c, r->e, r->h, r->row[k], c->d);
    if (n == 0) continue;
    fa_bound_sums t = sums_of(c, FA_PRODUCT_DQ, n, unit, c->profile->u_ds, c->profile->u_p_in_ds,
                              fabs(c->p->scale) * fa_bound_greatest_ds(c, b->unit_ds));
    t.tiny += fabs(c->p->scale) * b->row_terms[k] * b->unit_ds * c->profile->operand_step[FA_PRODUCT_DQ] *
              b->unit_k;
    t.by_value += c->profile->truncated_ds;
    t.limit = limit_of(c, FA_PRODUCT_DQ, b->unit_k), t.raw = b->unit_ds * b->unit_k * t.slack;
    const int64_t tile = c->profile->block_n > 0 ? c->profile->block_n : 1;
    t.tiny += (double)(n / tile + 3) * fabs(c->p->scale) * c->profile->floor_dq;
    const bool alike = b->row_least[k] > 0 && fa_bound_is_alike(&b->row_spread[k], b->row_least[k]);
    settle(c, &t, b->dq1 + k * c->d, c->generic && !alike ? b->dq2 + k * c->d : NULL, b->dqe + k * c->d, dq,
           at, c->d);
    if (b->row_lost[k]) fill_infinite(dq->accum + at, c->d);
    dq->scale[at / c->d] = (float)(b->row_terms[k] * b->unit_ds * most_k * fabs(c->p->scale));
  }
}

void fa_bound_backward_touch(const fa_ref_call *c, fa_bound_scratch *b, int64_t begin, int64_t end) {
  clear(b->dk1, begin * c->d, end * c->d);
  clear(b->dke, begin * c->d, end * c->d);
  clear(b->dk2, begin * c->d, end * c->d);
  clear(b->dv1, begin * c->dv, end * c->dv);
  clear(b->dve, begin * c->dv, end * c->dv);
  clear(b->dv2, begin * c->dv, end * c->dv);
  clear(b->dk_terms, begin, end);
  clear(b->dv_exact, begin, end);
  for (int64_t j = begin; j < end; ++j) b->dk_lost[j] = false;
}

/* Until the head's last item is merged, the outputs hold raw sums: quant the worst case, noise the squares,
 * scale the magnitudes of the keys. */
static void add_raw(const fa_ref_call *c, const fa_ref_sequence *e, int64_t hk, int64_t j, int64_t width,
                    const float *l1, const float *l2, const float *errors, fa_want *w) {
  int64_t to = fa_ref_k_index(c, e, hk, j, width), from = j * width;
  const fa_rows *rows = fa_rows_best();
  rows->add_bounds(w->quant + to, l1 + from, width);
  rows->add_bounds(w->noise + to, l2 + from, width);
  rows->add_bounds(w->accum + to, errors + from, width);
}

void fa_bound_backward_merge(const fa_backward_job *f, const fa_ref_sequence *e, int64_t hk, int64_t begin,
                             int64_t end, const fa_bound_scratch *b) {
  const fa_ref_call *c = f->c;
  fa_want *dk = &c->out->t[FA_T_DK], *dv = &c->out->t[FA_T_DV];
  for (int64_t j = begin; j < end; ++j) {
    add_raw(c, e, hk, j, c->d, b->dk1, b->dk2, b->dke, dk);
    add_raw(c, e, hk, j, c->dv, b->dv1, b->dv2, b->dve, dv);
    const int64_t key = fa_ref_k_index(c, e, hk, j, 1);
    dk->scale[key] += b->dk_terms[j];
    dv->scale[key] += b->dv_exact[j];
    if (f->dk_lost) f->dk_lost[key] |= b->dk_lost[j];
  }
}

/* For kernels that sum a group's heads in the I/O type. */
static void add_partial_roundings(const fa_backward_job *f, const float *parts, fa_want *w, int64_t at,
                                  int64_t n) {
  const fa_dtype type = f->c->p->dtype;
  const fa_bound_io io = {fa_dtype_unit_roundoff(type), fa_dtype_min_subnormal(type)};
  for (int64_t x = at; parts && x < at + n; ++x)
    w->accum[x] = fa_bound_add_parts(f->c, &io, w->accum[x], parts[x]);
}

void fa_bound_backward_finish(const fa_backward_job *f, const fa_ref_sequence *e, int64_t hk, int64_t begin,
                              int64_t end, const fa_bound_scratch *b) {
  const fa_ref_call *c = f->c;
  fa_want *dk = &c->out->t[FA_T_DK], *dv = &c->out->t[FA_T_DV];
  int64_t n = e->sq * c->group;
  double unit_dk = fabs(c->p->scale) * b->unit_ds * b->unit_q;
  bool dropout = c->p->dropout.p > 0;
  fa_bound_sums tk = sums_of(c, FA_PRODUCT_DK, n, unit_dk, c->profile->u_ds, c->profile->u_p_in_ds,
                             fabs(c->p->scale) * fa_bound_greatest_ds(c, b->unit_ds));
  fa_bound_sums tv = sums_of(c, FA_PRODUCT_DV, n, b->unit_do, c->profile->u_p,
                             dropout ? c->profile->u_dropout : 0, 1 / (1 - c->p->dropout.p));
  if (dropout) tv.gamma += c->profile->u_dropout;
  tk.by_value = c->profile->truncated_ds;
  tv.by_value = c->profile->truncated_p;
  tk.limit = limit_of(c, FA_PRODUCT_DK, b->unit_q), tk.raw = b->unit_ds * b->unit_q * tk.slack;
  tv.limit = limit_of(c, FA_PRODUCT_DV, b->unit_do), tv.raw = b->unit_do * tv.slack;
  tk.tiny += (double)n * fabs(c->p->scale) * fa_bound_greatest_ds(c, b->unit_ds) *
             c->profile->operand_step[FA_PRODUCT_DK] * b->unit_q;
  tv.tiny += (double)n / (1 - c->p->dropout.p) * c->profile->operand_step[FA_PRODUCT_DV] * b->unit_do;
  fa_bound_add_in_memory(c, e->sq, c->p->scale, &tk);
  fa_bound_add_in_memory(c, e->sq, 1 / (1 - c->p->dropout.p), &tv);
  for (int64_t j = begin; j < end; ++j) {
    int64_t at_k = fa_ref_k_index(c, e, hk, j, c->d), at_v = fa_ref_k_index(c, e, hk, j, c->dv);
    float most = 0;
    for (int64_t x = 0; x < c->dv; ++x) most = dv->quant[at_v + x] > most ? dv->quant[at_v + x] : most;
    tv.exact = dv->scale[at_v / c->dv]; /* times squares of dO / unit, at most 1 */
    dv->scale[at_v / c->dv] = (float)(most * b->unit_do);
    dk->scale[at_k / c->d] = (float)(dk->scale[at_k / c->d] * unit_dk);
    settle(c, &tk, dk->quant + at_k, c->generic ? dk->noise + at_k : NULL, dk->accum + at_k, dk, at_k, c->d);
    settle(c, &tv, dv->quant + at_v, c->generic ? dv->noise + at_v : NULL, dv->accum + at_v, dv, at_v, c->dv);
    if (f->dk_lost && f->dk_lost[at_k / c->d]) fill_infinite(dk->accum + at_k, c->d);
    add_partial_roundings(f, f->parts_dk, dk, at_k, c->d);
    add_partial_roundings(f, f->parts_dv, dv, at_v, c->dv);
  }
}

static void add_steep(fa_want *w, double terms, double steep) {
  for (int64_t x = 0; x < w->n; ++x) w->accum[x] = fa_bound_add_steep(w->value[x], w->accum[x], terms, steep);
}

void fa_bound_backward_derivative(const fa_ref_call *c, const fa_bound_scratch *b, int n_threads) {
  fa_want *dq = &c->out->t[FA_T_DQ], *dk = &c->out->t[FA_T_DK];
  double steepest = fa_bound_has_chain(c->p) ? 0 : 1, most = 0;
  for (int t = 0; t < n_threads; ++t) {
    steepest = fmax(steepest, b[t].steepest);
    most = fmax(most, b[t].most_unit_ds);
  }
  dq->steepest = dk->steepest = steepest;
  const double steep = fa_bound_steep(c, most, steepest);
  if (!(steep > 0)) return;
  add_steep(dq, (double)c->max_sk, steep);
  add_steep(dk, (double)(c->max_sq * c->group), steep);
}
