/* The formulas of the bound of the largest P, by row (docs/reference/bounds.md, "The largest P and O"); as formula.h. */
#ifndef FA_REF_BOUNDS_AMAX_FORMULA_H
#define FA_REF_BOUNDS_AMAX_FORMULA_H

#include "ref/bounds/formula.h"

/* The largest element of P is one of a kernel's between these two. */
typedef struct fa_bound_amax {
  double least, most;
} fa_bound_amax;

/* Of a row so far: the key whose P may be the largest of all in a kernel. */
typedef struct fa_bound_largest {
  double p, e;   /* its P, and that one's relative error */
  double summed; /* what of e is in the row's error_sum */
  double others; /* what those of all other keys weigh, sum_j p_j e_j */
  double most;   /* p (1 + e) */
  double next;   /* the same of all other keys */
} fa_bound_largest;

/* scattered: the part of its error that is independent of other keys'. */
FA_BOTH void fa_bound_largest_add(fa_bound_largest *x, double p, double e, double scattered) {
  const double most = p * (1 + e + scattered);
  if (!(most > x->most)) {
    if (most > x->next) x->next = most;
    x->others += p * e;
    return;
  }
  x->others += x->p * x->summed;
  x->next = x->most;
  x->most = most;
  x->p = p;
  x->e = e + scattered;
  x->summed = e;
}

/* What a kernel's way to the quotient of exponential and sum may add: 1 / l, or exp(m - L), whose L was rounded to a float. A
 * sink is either in l, or multiplies by the exponential of another such difference. */
FA_BOTH double fa_bound_largest_own(const fa_ref_call *c, const fa_bound_row *t) {
  const fa_profile *p = c->profile;
  const double size = t->max + t->log_l;
  const fa_bound_exponents by = fa_bound_exponents_of(c, size, true, 0);
  const double lse = (1 + t->rounds) * (p->eps_log + 2 * FA_F32_UNIT * size) + t->rounds * p->eps_exp +
                     3 * FA_F32_UNIT * t->log_l + FA_F32_UNIT * t->max;
  const double own = lse + p->eps_exp + by.a * t->log_l + by.s * t->max + by.k + 4 * FA_F32_UNIT;
  return t->sink.share > 0 ? 2 * own : own;
}

/* The row's weights are known. */
FA_BOTH fa_bound_amax fa_bound_largest_known(const fa_ref_call *c, const fa_bound_row *t,
                                             const fa_bound_largest *x, double sum_error) {
  fa_bound_amax out;
  const fa_bound_exponents by = fa_bound_exponents_of(c, t->max, false, c->profile->eps_exp);
  const double itself = by.s * t->max + by.k, all = 1.000001 * fa_bound_row_shift(t, sum_error);
  const double erring = x->others + t->independent + t->sink.share * t->sink.error;
  const double others = erring + fmin(sum_error, 1.01 * (fmax(1 - x->p, 0.0) + erring));
  const double own = x->p * (1 + x->e) / (1 + x->p * (x->e - itself * (1 + x->e)) - others);
  out.least = x->e < 1 ? x->p * (1 - x->e) / (1 + x->p * (itself - x->e) + others) : 0;
  out.most = fmin(fmax(own, x->next / (1 - all - itself)), 1.0);
  return out;
}

/* Of a row that is done. */
FA_BOTH fa_bound_amax fa_bound_largest_of_row(const fa_ref_call *c, const fa_bound_row *t,
                                              const fa_bound_largest *x, double sum_error) {
  const double way = fa_bound_largest_own(c, t);
  fa_bound_amax out = {0, 1};
  if (t->kept && fa_bound_row_shift(t, sum_error) <= 0.25) out = fa_bound_largest_known(c, t, x, sum_error);
  out.least *= 1 - way;
  out.most *= 1 + way;
  if (!(out.least >= FA_FLUSHED)) out.least = 0;
  if (t->overflows) out.most = INFINITY;
  return out;
}

#endif
