/* Errors that are independent from pair to pair (docs/reference/bounds.md, "Scattered errors"). Each is about as large
 * as the root mean square of what may happen, and sums of them are at most lambda times the root of their squares. */
#ifndef FA_REF_BOUNDS_SCATTERED_H
#define FA_REF_BOUNDS_SCATTERED_H

#include "ref/bounds/terms.h"

/* Whether a call's scores, or dP, have such errors: then the scratch has e_score, or e_dp. */
bool fa_bound_scores_scatter(const fa_ref_call *c);
bool fa_bound_dp_scatters(const fa_ref_call *c);
/* Whether queries do, which all pairs of a row share: then the forward's scratch has mean_k. */
bool fa_bound_queries_scatter(const fa_ref_call *c);

/* Sets e_score of a tile; s: scale * q.k */
void fa_bound_scatter_begin(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_rows *r, int64_t j0,
                            int64_t n, const double *s);
/* Through softcap: n scores, e_logit being their other errors before it. */
void fa_bound_scatter_softcap(const fa_ref_call *c, const float *e_logit, const double *th, int64_t n,
                              float *e_score);
/* A sum of n scores with result x and summand added + j per_key. */
void fa_bound_scatter_step(const fa_ref_call *c, const double *x, double added, double per_key, int64_t n,
                           float *e_score);
/* Where n errors can no longer be told apart, they join the others. */
void fa_bound_scatter_join(float *e_score, float *e_logit, int64_t n);
/* After the last step, for a whole tile of n pairs: what their squares add joins e_logit. */
void fa_bound_scatter_end(fa_bound_scratch *b, const fa_ref_call *c, int64_t n);

/* How many times the mean error of a score its largest may be. */
double fa_bound_scatter_most(const fa_ref_call *c);
/* Adds to w and w2, in units of fa_bound_unit(u_p). Returns the sum of (p e_score)^2. z NULL: all 1. */
double fa_bound_scatter_weights(const fa_ref_call *c, const double *p, const double *z, const float *e_score,
                                int64_t n, float *w, float *w2);

/* Adds a tile's keys to mean_k, times P and the slope that softcap has there. p: P of the tile [r->n][n], overwritten;
 * th: tanh, if there is a softcap. */
void fa_bound_scatter_mean_keys(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_rows *r,
                                const fa_ref_scratch *w, int64_t j0, int64_t n, double *p, bool first);
/* What roundings of row k's query do to the row's sum of exponentials. */
double fa_bound_scatter_query(const fa_ref_call *c, const fa_bound_scratch *b, const fa_ref_scratch *w,
                              int64_t k);

/* Sets e_dp of a tile, in units of unit_do unit_v: what operands' roundings do. */
void fa_bound_scatter_dp(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_rows *r, int64_t j0,
                         int64_t n);
/* Adds to w, w2, g, g2 of a row, or to ge of a plain one. e_score, e_dp: of these n pairs; NULL: none. */
void fa_bound_scatter_gradient(const fa_ref_call *c, const fa_bound_scratch *b, const fa_row_gradient *row,
                               const float *e_score, const float *e_dp, int64_t n);

#endif
