/* The largest element of P over a call: between which numbers a kernel's may lie (docs/reference/bounds.md, "Eight bits"). */
#include "ref/bounds/terms.h"

#include <math.h>

void fa_bound_amax_begin(fa_bound_scratch *b, int64_t n) {
  for (int64_t k = 0; k < n; ++k) b->row_amax[k] = (fa_bound_amax){0, 0};
}

void fa_bound_amax_add(fa_bound_scratch *b, const fa_ref_call *c, int64_t k, int64_t at, const double *p,
                       int64_t n) {
  fa_bound_amax *row = &b->row_amax[k];
  if (!c->p->quantized.amax) return;
  for (int64_t j = 0; j < n; ++j) {
    const double e = b->e_logit[at + j] + (b->e_score ? c->lambda * b->e_score[at + j] : 0);
    row->least = fmax(row->least, p[j] * (1 - e));
    row->most = fmax(row->most, p[j] * (1 + e));
  }
}

/* A kernel has it from the sum, as 1 / l, or from the LSE, as exp(m - L), which may be flushed to 0 beside a large sink. It is
 * at most 1, whatever the sum is. */
void fa_bound_amax_row(fa_bound_scratch *b, const fa_ref_call *c, int64_t k, const fa_bound_row *t,
                       double sum_error) {
  const fa_profile *p = c->profile;
  const double shift = fa_bound_row_shift(t, sum_error),
               own = p->eps_exp + p->eps_log + sum_error + FA_F32_UNIT * (4 + 8 * t->max + 4 * t->log_l);
  const bool known = t->kept && shift <= 0.25;
  const double least = known ? b->row_amax[k].least / (1 + shift) * (1 - own) : 0,
               most = known ? fmin(b->row_amax[k].most / (1 - shift), 1) * (1 + own) : 1 + own;
  b->amax.least = fmax(b->amax.least, least < FA_FLUSHED ? 0 : least);
  b->amax.most = fmax(b->amax.most, t->overflows ? INFINITY : most);
}
