/* What the gradient sources share. */
#ifndef FA_REF_BACKWARD_H
#define FA_REF_BACKWARD_H

#include "ref/bound.h"
#include "ref/engine.h"
#include "ref/rows.h"

typedef struct fa_backward_job {
  fa_ref_call *c;
  fa_ref_scratch *scratch; /* [n_threads] */
  fa_bound_scratch *bound; /* [n_threads]; NULL: values only */
  const fa_rows *rows;
  int64_t *first_item; /* [batch + 1] */
  fa_ref_turns *turns; /* a queue per key/value head of an entry */
} fa_backward_job;

/* q, d_o, o, l (the LSE that P is made from) and delta of a query block. */
void fa_ref_backward_rows_load(const fa_ref_call *c, const fa_ref_rows *r, fa_ref_scratch *w);
/* w->s = P Z and w->dp = P (Z dP - delta), zero where invisible, for keys j0 .. j0 + n - 1; w->th = tanh. */
void fa_ref_backward_tile(const fa_ref_call *c, const fa_rows *rows, const fa_ref_rows *r, fa_ref_scratch *w,
                          int64_t j0, int64_t n);
/* dBias, summed over the axes that the bias is broadcast along (dbias.c). */
fa_status fa_ref_dbias(fa_ref_call *c, fa_error *err);

/* Bounds of a query block's dQ, and its part of those of dK and dV; the latter enter the outputs on merge. */
void fa_bound_backward_block(const fa_backward_job *f, const fa_ref_rows *r, fa_ref_scratch *w,
                             fa_bound_scratch *b);
void fa_bound_backward_merge(const fa_backward_job *f, const fa_ref_entry *e, int64_t hk,
                             fa_bound_scratch *b);

#endif
