/* Errors that are independent from pair to pair: roundings of scores and of dP between operations, and operands of
 * few bits. Sums of many such errors grow as their squares do (docs/reference/bounds.md, "Scattered errors"). Only for
 * generic data; otherwise they join the errors that may all have one sign. */
#include "ref/bounds/terms.h"

#include "ref/math/blas.h"

#include <math.h>
#include <string.h>

bool fa_bound_scores_scatter(const fa_ref_call *c) {
  return c->profile && (c->profile->u_scores > 0 || fa_bound_coarse_operands(c->profile, FA_PRODUCT_QK));
}

bool fa_bound_dp_scatters(const fa_ref_call *c) {
  return c->profile && (c->profile->u_dp > 0 || fa_bound_coarse_operands(c->profile, FA_PRODUCT_DP));
}

/* A score_mod may make anything of them, and has their largest sizes (fa_bound_scatter_join). */
bool fa_bound_queries_scatter(const fa_ref_call *c) {
  return c->profile && c->generic && fa_bound_coarse_operands(c->profile, FA_PRODUCT_QK) && !c->p->score_mod;
}

static double row_square(const float *x2, int64_t width) {
  double sum = 0;
  for (int64_t d = 0; d < width; ++d) sum += x2[d];
  return sum;
}

/* out[m][n] = what roundings of both operands do to their products, in units of both: squares of a are a2[m][width],
 * those of b are b2[n][width]. A step is a part of the largest element, at most 1. */
static void scatter_product(const fa_ref_call *c, fa_product which, const float *a2, int64_t m,
                            const float *b2, int64_t n, int64_t width, float *out) {
  const double u_operand = 0.75 * c->profile->operand[which], step = c->profile->operand_step[which];
  const double worst =
      c->generic ? 1 : sqrt(2 * (double)width); /* of a sum of absolute values over its root */
  fa_blas_sgemm(FA_BLAS_N, FA_BLAS_T, (int)m, (int)n, (int)width, 1, a2, (int)width, b2, (int)width, 0, out,
                (int)n);
  for (int64_t i = 0; i < m; ++i) {
    const double size_a = row_square(a2 + i * width, width);
    for (int64_t j = 0; j < n; ++j) {
      const double size = step > 0 ? size_a + row_square(b2 + j * width, width) : 0;
      out[i * n + j] =
          (float)(u_operand * sqrt(out[i * n + j]) + worst * step * sqrt(size + (double)width * step * step));
    }
  }
}

void fa_bound_scatter_begin(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_rows *r, int64_t j0,
                            int64_t n, const double *s) {
  if (!b->e_score) return;
  const double unit = fabs(c->p->scale) * b->unit_q * b->unit_k;
  const double u_scores = 2 * c->profile->u_scores; /* the product and the scaled score */
  const double one_sided = c->profile->operands_cut ? c->profile->operand[FA_PRODUCT_QK] : 0;
  memset(b->e_score, 0, (size_t)(r->n * n) * sizeof *b->e_score);
  if (fa_bound_coarse_operands(c->profile, FA_PRODUCT_QK))
    scatter_product(c, FA_PRODUCT_QK, b->q2, r->n, b->k2 + j0 * c->d, n, c->d, b->e_score);
  for (int64_t x = 0; x < r->n * n; ++x) {
    const double size =
        isfinite(s[x]) ? fabs(s[x]) : 0; /* a hidden pair's score is -inf, and nothing is wrong with it */
    b->e_score[x] = (float)(1.0001 * (unit * b->e_score[x] + u_scores * size));
    b->e_logit[x] += (float)(one_sided * size);
  }
}

void fa_bound_scatter_softcap(const fa_ref_call *c, const float *e_logit, const double *th, int64_t n,
                              float *e_score) {
  const double limit = c->p->softcap, u_scores = 3 * c->profile->u_scores; /* quotient, tanh, product */
  for (int64_t j = 0; j < n; ++j) {
    const double t = fabs(th[j]), before = (e_logit[j] + 4 * e_score[j]) / limit;
    const double through = fmin(1, (1 - t) * (1 + t) + 2 * before);
    e_score[j] = (float)(1.0001 * (through * e_score[j] + u_scores * limit * t));
  }
}

void fa_bound_scatter_step(const fa_ref_call *c, const double *x, double added, double per_key, int64_t n,
                           float *e_score) {
  for (int64_t j = 0; j < n; ++j)
    if (isfinite(x[j]))
      e_score[j] += (float)(c->profile->u_scores * (fabs(x[j]) + fabs(added + per_key * (double)j)));
}

void fa_bound_scatter_join(float *e_score, float *e_logit, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    e_logit[j] += 4 * e_score[j];
    e_score[j] = 0;
  }
}

void fa_bound_scatter_end(fa_bound_scratch *b, const fa_ref_call *c, int64_t n) {
  if (!b->e_score) return;
  for (int64_t j = 0; j < n; ++j) {
    const float e = b->e_score[j];
    b->e_logit[j] += c->generic ? 8 * e * e : e; /* (4 e)^2 / 2 */
    if (!c->generic) b->e_score[j] = 0;
  }
}

/* Both operands of an element: the most that it can be, and if squares are wanted the square of what it is in the
 * mean. The error is independent of those that are there already, so that their squares add up. */
static void add(float *w, float *w2, double most, double mean, bool squares) {
  *w += (float)most;
  if (squares) *w2 += (float)(mean * mean);
}

double fa_bound_scatter_most(const fa_ref_call *c) {
  return fa_bound_coarse_operands(c->profile, FA_PRODUCT_QK) ? c->lambda : 1;
}

/* V is rounded as P is, element by element. */
static void scatter_values(const fa_ref_call *c, const double *p, const double *z, int64_t n, float *w,
                           float *w2) {
  const double per_unit = 1.0001 / fa_bound_unit(c->profile->u_p), u = c->profile->operand[FA_PRODUCT_PV];
  for (int64_t j = 0; j < n; ++j) {
    const double mean = p[j] * (z ? z[j] : 1) * u * per_unit;
    add(&w[j], &w2[j], mean, mean, true);
  }
}

double fa_bound_scatter_weights(const fa_ref_call *c, const double *p, const double *z, const float *e_score,
                                int64_t n, float *w, float *w2) {
  const double per_unit = 1.0001 / fa_bound_unit(c->profile->u_p), most = fa_bound_scatter_most(c);
  double sum = 0;
  for (int64_t j = 0; j < n; ++j) {
    const double e = p[j] * e_score[j];
    if (e == 0) continue;
    const double mean = e * (z ? z[j] : 1) * per_unit;
    add(&w[j], &w2[j], most * mean, mean, c->generic);
    sum += e * e;
  }
  if (fa_bound_values_scatter(c, true)) scatter_values(c, p, z, n, w, w2);
  return sum;
}

void fa_bound_scatter_mean_keys(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_rows *r,
                                const fa_ref_scratch *w, int64_t j0, int64_t n, double *p, bool first) {
  const int d = (int)c->d;
  if (!b->mean_k) return;
  for (int64_t k = 0; k < r->n; ++k) {
    int64_t begin, end;
    double *row = p + k * n;
    fa_ref_row_span(r, k, j0, n, &begin, &end);
    if (w->key_l[k] == 0) begin = end = n; /* no key is visible */
    for (int64_t j = 0; j < n; ++j) {
      const double t = c->p->softcap > 0 && j >= begin && j < end ? w->th[k * n + j] : 0;
      row[j] = j >= begin && j < end && row[j] > 0 ? row[j] * (1 - t) * (1 + t) : 0;
    }
  }
  fa_blas_dgemm(FA_BLAS_N, FA_BLAS_N, (int)r->n, d, (int)n, 1, p, (int)n, w->k + j0 * d, d, first ? 0 : 1,
                b->mean_k, d);
}

double fa_bound_scatter_query(const fa_ref_call *c, const fa_bound_scratch *b, const fa_ref_scratch *w,
                              int64_t k) {
  if (!b->mean_k) return 0;
  const double u_one = c->profile->operand[FA_PRODUCT_QK] / 2, mean = 0.75; /* of both operands' roundings */
  const double step = c->profile->operand_step[FA_PRODUCT_QK] * b->unit_q;
  double most = 0, squares = 0;
  for (int64_t d = k * c->d; d < (k + 1) * c->d; ++d) {
    const double by = fabs(b->mean_k[d]), rounded = u_one * fabs(w->q[d]);
    most += (rounded + step) * by;
    squares += (mean * rounded + step) * (mean * rounded + step) * by * by;
  }
  return 1.0001 * fabs(c->p->scale) * fmin(most, c->lambda * sqrt(squares));
}

void fa_bound_scatter_dp(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_rows *r, int64_t j0,
                         int64_t n) {
  if (!b->e_dp) return;
  memset(b->e_dp, 0, (size_t)(r->n * n) * sizeof *b->e_dp);
  if (fa_bound_coarse_operands(c->profile, FA_PRODUCT_DP) && c->generic)
    scatter_product(c, FA_PRODUCT_DP, b->d_o2, r->n, b->v2 + j0 * c->dv, n, c->dv, b->e_dp);
}

void fa_bound_scatter_gradient(const fa_ref_call *c, const fa_bound_scratch *b, const fa_row_gradient *row,
                               const float *e_score, const float *e_dp, int64_t n) {
  if (!e_score && !e_dp) return;
  const fa_profile *p = c->profile;
  const double most = fa_bound_scatter_most(c);
  const double unit_dp = b->unit_do * b->unit_v, u_dp = p->u_dp * (row->z ? 2 : 1);
  const double per_ds = 1.0001 / fa_bound_unit(p->u_ds), per_p = 1.0001 / fa_bound_unit(p->u_p);
  const double again = p->u_scores > 0 ? p->u_ds * (1 + 2 * (c->p->softcap > 0)) : 0; /* dS after each step */
  const double floor = p->u_scores > 0 ? p->floor_ds * row->per_unit : 0; /* of a dS that is added to dBias */
  for (int64_t j = 0; j < n; ++j) {
    const double z = row->z ? row->z[j] : 1, slope = row->cap ? row->cap[j] + row->cap_err[j] : 1;
    const double ds = row->p[j] * fabs(z * row->dp[j] - row->delta) * slope * row->per_unit;
    const double score = e_score ? e_score[j] : 0, dp = e_dp ? e_dp[j] * unit_dp : 0;
    const double by_dp = row->p[j] * z * slope * row->per_unit,
                 rounded = by_dp * u_dp * fabs(row->dp[j]) + again * ds;
    if (b->plain) {
      row->ge[j] += (float)(rounded + p->u_ds * ds + 4 * (ds * score + by_dp * dp));
      row->ge[j] += (float)fmin(floor, 1.0001 * ds + row->ge[j]);
      continue;
    }
    const double mean = (rounded + ds * score + by_dp * dp) * per_ds, p_mean = row->p[j] * z * score * per_p;
    add(&row->g[j], &row->g2[j], (rounded + most * ds * score + c->lambda * by_dp * dp) * per_ds, mean,
        row->squares);
    add(&row->w[j], &row->w2[j], most * p_mean, p_mean, row->squares);
  }
}
