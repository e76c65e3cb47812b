/* The debug matrix of dropout: what its magnitudes may be. Element (i, j) is exp(s - M), rounded to the matrix' type. M is the
 * kernel's running maximum when it came to key j: at least s itself, and at most the row's. In which order it comes to
 * keys, and in tiles of how many, is its own affair. */
#include "ref/bounds/terms.h"

#include <math.h>

static int64_t first_of_row(const fa_ref_call *c, const fa_ref_rows *r, int64_t k) {
  const fa_want *w = &c->out->t[FA_T_P_DEBUG];
  return ((r->e->b * w->shape[1] + r->h) * w->shape[2] + r->row[k]) * w->shape[3];
}

void fa_bound_magnitudes_add(const fa_ref_call *c, const fa_ref_rows *r, int64_t k, int64_t j,
                             const double *x, int64_t n, double max) {
  const fa_want *w = &c->out->t[FA_T_P_DEBUG];
  if (!w->least) return;
  float *to = w->least + first_of_row(c, r, k) + j;
  for (int64_t i = 0; i < n; ++i) to[i] = (float)exp(x[i] - max);
}

/* Both scores may be off by as much as any of the row, whose exponentials may then be off by widest. */
void fa_bound_magnitudes_finish(const fa_ref_call *c, const fa_ref_rows *r, int64_t k, double widest,
                                bool known) {
  const fa_want *w = &c->out->t[FA_T_P_DEBUG];
  if (!w->least) return;
  const int64_t first = first_of_row(c, r, k);
  const fa_ulp ulp = fa_want_ulp(w->dtype);
  for (int64_t e = first + r->lo[k]; e < first + r->hi[k]; ++e) {
    const fa_bound_magnitude may = fa_bound_magnitude_of(w->least[e], widest, known, &ulp);
    w->least[e] = may.least;
    w->most[e] = may.most;
  }
}
