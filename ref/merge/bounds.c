/* How far a right merge may be off (docs/reference/bounds.md, "Merging"). It covers a kernel that finds the maximum
 * first, one that keeps a running maximum and rescales, and one that merges two parts after the other. */
#include "ref/merge/row.h"

#include <math.h>

/* Of an exponent of the row: what its terms are rounded by where they were brought to another base before they were
 * subtracted from each other. */
static double conversion(const fa_merge_row *r, double a, double b) {
  return r->c->profile->exp_scaled ? fabs(a) + fabs(b) : 0;
}

/* Every rescaling is another exponential, and there are at most as many as parts. */
static double exponentials(const fa_merge_row *r) {
  return (double)r->n * (r->c->profile->eps_exp + 2 * FA_MERGE_U);
}

/* Each merge of two rounds an LSE, of which the next one starts; the last one is the result. */
static double cascade(const fa_merge_row *r) {
  const fa_profile *f = r->c->profile;
  double largest = fabs(r->total);
  if (r->n <= 2) return 0;
  for (int64_t k = 0; k < r->n; ++k)
    if (r->lse[k] > -INFINITY && fabs(r->lse[k]) > largest) largest = fabs(r->lse[k]);
  return (double)(r->n - 2) * (3 * FA_MERGE_U * (largest + log((double)r->n)) + f->eps_log + f->eps_exp);
}

void fa_merge_row_errors(fa_merge_row *r) {
  r->sum_eps = r->cascade = 0;
  if (r->total == -INFINITY) return;
  r->cascade = cascade(r);
  for (int64_t k = 0; k < r->n; ++k) {
    r->eps[k] = 0;
    if (r->weight[k] == 0) continue;
    /* A weight may be taken from the maximum, or from the whole LSE, which is a float. */
    const double far = 2 * fabs(r->lse[k] - r->max) + fabs(r->total) + conversion(r, r->lse[k], r->max);
    r->eps[k] = expm1(FA_MERGE_U * far + exponentials(r) + r->c->profile->eps_log + r->cascade);
    r->sum_eps += r->weight[k] * r->eps[k];
  }
  r->sum_eps += (double)r->n * (FA_MERGE_U + FA_MERGE_FLUSHED);
}

double fa_merge_lse_error(const fa_merge_row *r) {
  const double sum = r->sum_eps * (1 + r->sum_eps), largest = fabs(r->max);
  const double natural = sum + r->c->profile->eps_log + FA_MERGE_U * (2 * fabs(r->total) + largest) +
                         FA_MERGE_U * conversion(r, r->total, r->max) + r->cascade;
  return natural / r->unit;
}

double fa_merge_o_error(const fa_merge_row *r, int64_t x, double value) {
  const double sums = (double)(r->n + 3) * FA_MERGE_U;
  double error = fabs(value) * r->sum_eps;
  for (int64_t k = 0; k < r->n; ++k) {
    const double size = fabs(r->o[k * r->width + x]);
    if (r->lse[k] > -INFINITY)
      error += r->weight[k] * size * (r->eps[k] + sums) + FA_MERGE_FLUSHED * (1 + size);
  }
  return error;
}

double fa_merge_weight_error(const fa_merge_row *r, int64_t part, double lse_bound) {
  const double far = 2 * fabs(r->lse[part] - r->total) + conversion(r, r->lse[part], r->total);
  return expm1(FA_MERGE_U * far + exponentials(r) + lse_bound) + r->eps[part] + r->sum_eps;
}
