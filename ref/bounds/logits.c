/* How far a kernel's logits may be from the exact ones, and the effect on their exponentials. */
#include "ref/bounds/narrow.h"
#include "ref/bounds/scattered.h"
#include "ref/tiles/score.h"

#include "ref/math/blas.h"
#include "ref/mods/tile.h"

#include <math.h>
#include <string.h>

/* Where the product, before it is scaled, is more than a narrow type holds: nothing is known. */
static void overflow_scores(fa_bound_scratch *b, const fa_ref_call *c, int64_t n) {
  const fa_profile *p = c->profile;
  const double most = fmin(fa_bound_sum_limit(c, FA_PRODUCT_QK), p->u_scores > 0 ? p->max_scores : INFINITY);
  const double unit = b->unit_q * b->unit_k;
  const bool operands = fmax(b->unit_q, b->unit_k) / 2 > p->operand_max[FA_PRODUCT_QK];
  if (!(most < INFINITY) && !operands) return;
  for (int64_t x = 0; x < n; ++x)
    if (operands || b->e_logit[x] * unit > most) b->e_logit[x] = INFINITY;
}

void fa_bound_logits_begin(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_rows *r, int64_t j0,
                           int64_t n, const double *s) {
  int m = (int)r->n, d = (int)c->d, nn = (int)n;
  double unit = fabs(c->p->scale) * b->unit_q * b->unit_k;
  const double u_operand = b->e_score && c->generic ? 0 : c->profile->operand[FA_PRODUCT_QK];
  const bool walk = fa_bound_walks_scores(c);
  double k = walk ? 1 : unit * (fa_bound_gamma(c, FA_PRODUCT_QK, c->d) + u_operand) * 1.0001;
  double tiny = fa_bound_lost_scores(c, b->unit_q, b->unit_k);
  if (walk)
    fa_bound_narrow_scores(b, c, r, j0, n, s);
  else
    fa_blas_sgemm(FA_BLAS_N, FA_BLAS_T, m, nn, d, 1, b->q, d, b->k + j0 * c->d, d, 0, b->e_logit, nn);
  if (!walk) overflow_scores(b, c, r->n * n);
  fa_rows_best()->product_error(b->e_logit, s, r->n * n, k, fa_bound_score_steps(c), tiny);
  for (int64_t x = 0; !(k > 0) && x < r->n * n; ++x) /* an infinite product times a scale of 0 is NaN */
    if (isnan(b->e_logit[x])) b->e_logit[x] = INFINITY;
  fa_bound_scatter_begin(b, c, r, j0, n, s);
  if (!b->row_k) return;
  /* A rotated element that f32 may round the other way: (|q| + dq) dk + dq |k|. */
  float f = (float)(unit * 1.0001);
  for (int64_t x = 0; x < r->n * c->d; ++x) b->q[x] += b->row_q[x];
  fa_blas_sgemm(FA_BLAS_N, FA_BLAS_T, m, nn, d, f, b->q, d, b->row_k + j0 * c->d, d, 1, b->e_logit, nn);
  for (int64_t x = 0; x < r->n * c->d; ++x) b->q[x] -= b->row_q[x];
  fa_blas_sgemm(FA_BLAS_N, FA_BLAS_T, m, nn, d, f, b->row_q, d, b->k + j0 * c->d, d, 1, b->e_logit, nn);
}

static void softcap_errors(const fa_ref_call *c, int64_t n, const double *th, float *e, float *cap,
                           float *cap_err) {
  for (int64_t j = 0; j < n; ++j) {
    const fa_bound_cap through = fa_bound_softcap(c, th[j], e[j]);
    e[j] = through.e;
    if (!cap) continue;
    cap[j] = through.slope;
    cap_err[j] = through.error;
  }
}

/* The derivative 1 - th^2 where th has an independent error besides. */
static void add_to_derivative(const fa_ref_call *c, const double *th, const float *e_score, int64_t n,
                              float *cap_err) {
  for (int64_t j = 0; j < n; ++j) cap_err[j] += (float)(8 * fabs(th[j]) * e_score[j] / c->p->softcap);
}

static void alibi_errors(double slope, int64_t distance0, int64_t n, const double *x, float *e) {
  for (int64_t j = 0; j < n; ++j) e[j] += fa_bound_alibi_error(slope, (double)(distance0 - j), x[j]);
}

static void bias_errors(const fa_ref_call *c, const fa_ref_rows *r, int64_t i, int64_t j0, int64_t n,
                        const double *x, float *e, float *e_score) {
  const fa_tensor *t = &c->in->t[FA_T_BIAS];
  double row[FA_BLOCK_N];
  fa_ref_load_row(t, fa_ref_bias_row(c, r->e, r->h, i) + j0 * t->stride[3] * (int64_t)fa_dtype_size(t->dtype),
                  t->stride[3], n, row);
  for (int64_t j = 0; j < n; ++j) {
    const bool swallows = fa_bound_bias_swallows(row[j], x[j]);
    e[j] = fa_bound_bias_error(e[j], row[j], x[j]);
    if (e_score) /* a hidden pair has no error to pass on to its row */
      e_score[j] = swallows || !isfinite(x[j]) ? 0 : e_score[j] + (float)(c->profile->u_scores * fabs(x[j]));
  }
}

void fa_bound_logits_end(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_rows *r, int64_t j0,
                         int64_t n, const double *x, const double *th, fa_ref_mod_scratch *mod) {
  const fa_problem *p = c->p;
  if (p->softcap <= 0 && !p->score_mod && !p->alibi.present && !p->bias.present) {
    fa_bound_scatter_end(b, c, r->n * n);
    return;
  }
  double slope = fa_ref_alibi_slope(c, r->e->b, r->h);
  for (int64_t k = 0; k < r->n; ++k) {
    int64_t begin, end, i = r->row[k], at;
    fa_ref_row_span(r, k, j0, n, &begin, &end);
    if (begin == end) continue;
    at = k * n + begin;
    float *e_score = b->e_score ? b->e_score + at : NULL;
    if (p->softcap > 0 && e_score)
      fa_bound_scatter_softcap(c, b->e_logit + at, th + at, end - begin, e_score);
    if (p->softcap > 0)
      softcap_errors(c, end - begin, th + at, b->e_logit + at, b->cap ? b->cap + at : NULL,
                     b->cap ? b->cap_err + at : NULL);
    if (p->softcap > 0 && e_score && b->cap)
      add_to_derivative(c, th + at, e_score, end - begin, b->cap_err + at);
    if (p->score_mod && e_score) fa_bound_scatter_join(e_score, b->e_logit + at, end - begin);
    if (p->score_mod) {
      const fa_ref_mod_row row = {c, mod, r->e, r->h, i, j0 + begin, end - begin};
      for (int64_t j = at; b->cap && p->softcap <= 0 && j < at + end - begin; ++j)
        b->cap[j] = 1, b->cap_err[j] = 0;
      fa_ref_mods_errors(&row, mod->before + at, mod->hidden + at, b->e_logit + at, mod->before_error + at,
                         b->cap ? b->cap + at : NULL, b->cap ? b->cap_err + at : NULL);
    }
    if (p->alibi.present)
      alibi_errors(slope, i + r->e->sk - r->e->sq - j0 - begin, end - begin, x + at, b->e_logit + at);
    if (p->alibi.present && e_score)
      fa_bound_scatter_step(c, x + at, slope * (double)(i + r->e->sk - r->e->sq - j0 - begin), -slope,
                            end - begin, e_score);
    if (p->bias.present) bias_errors(c, r, i, j0 + begin, end - begin, x + at, b->e_logit + at, e_score);
  }
  fa_bound_scatter_end(b, c, r->n * n);
}

bool fa_bound_exponent(const fa_ref_call *c, const fa_rows *rows, float *e, const double *x, int64_t n,
                       double shift, bool from_lse, double extra, float *most) {
  const fa_bound_exponents by = fa_bound_exponents_of(c, shift, from_lse, extra);
  *most = rows->logit_error(e, x, n, shift, by.a, by.s, by.k);
  if (*most <= 0.5f) {
    *most = rows->grow(e, n);
    return true;
  }
  bool kept = true;
  for (int64_t j = 0; j < n; ++j) {
    if (x[j] == -INFINITY) continue;
    e[j] = fa_bound_large_exponent(e[j], x[j], shift, &kept);
  }
  *most = rows->greatest(e, n);
  return kept;
}
