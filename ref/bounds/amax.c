/* The largest element of P over a call: between which numbers a kernel's may lie (docs/reference/bounds.md, "The largest P and O"). */
#include "ref/bounds/terms.h"

#include <math.h>
#include <string.h>

void fa_bound_amax_begin(fa_bound_scratch *b, int64_t n) {
  memset(b->row_amax, 0, (size_t)n * sizeof *b->row_amax);
}

void fa_bound_amax_add(fa_bound_scratch *b, const fa_ref_call *c, int64_t k, int64_t at, const double *p,
                       int64_t n) {
  if (!c->p->quantized.amax) return;
  for (int64_t j = 0; j < n; ++j)
    fa_bound_largest_add(&b->row_amax[k], p[j], b->e_logit[at + j],
                         b->e_score ? c->lambda * b->e_score[at + j] : 0);
}

void fa_bound_amax_row(fa_bound_scratch *b, const fa_ref_call *c, int64_t k, const fa_bound_row *t,
                       double sum_error) {
  if (!c->p->quantized.amax) return;
  const fa_bound_amax row = fa_bound_largest_of_row(c, t, &b->row_amax[k], sum_error);
  b->amax.least = fmax(b->amax.least, row.least);
  b->amax.most = fmax(b->amax.most, row.most);
}
