/* The debug matrix of dropout: what its magnitudes may be. Element (i, j) is exp(s - M), rounded to the matrix' type. M is the
 * kernel's running maximum when it came to key j: at least s itself, and at most the row's. In which order it comes to
 * keys, and in tiles of how many, is its own affair. */
#include "ref/bounds/terms.h"

#include <math.h>

#define FLUSHED 0x1p-125 /* below it exp may be 0 */

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
  const double off = (1 + widest) * (1 + 0x1p-20), most = off + fa_half_ulp(w->dtype, off);
  for (int64_t e = first + r->lo[k]; e < first + r->hi[k]; ++e) {
    const double before = known ? w->least[e] / (off * off) : 0;
    const double least = before - fa_half_ulp(w->dtype, before);
    w->least[e] = (float)(before < FLUSHED || least < 0 ? 0 : least * (1 - 0x1p-20));
    w->most[e] = (float)(known ? most : INFINITY);
  }
}
