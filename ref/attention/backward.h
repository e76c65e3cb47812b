/* Declarations shared by the sources for gradients. */
#ifndef FA_REF_ATTENTION_BACKWARD_H
#define FA_REF_ATTENTION_BACKWARD_H

#include "ref/bounds/backward.h"

/* Loads q, d_o, o, l (the LSE that P is computed from) of a query block, and computes its delta. With b also what
 * the block's bounds begin with. */
void fa_ref_backward_rows_begin(const fa_ref_call *c, const fa_rows *rows, const fa_ref_rows *r,
                                fa_ref_scratch *w, fa_bound_scratch *b);
/* Computes w->s = P Z and w->dp = P (Z dP - delta), zero where masked, for keys j0 .. j0 + n - 1; w->th =
 * tanh. With b it also computes the tile's terms of the bounds; NULL: values only. */
void fa_ref_backward_tile(const fa_ref_call *c, const fa_rows *rows, const fa_ref_rows *r, fa_ref_scratch *w,
                          int64_t j0, int64_t n, fa_bound_scratch *b);
/* A query block's part of these sums: dQ goes to the outputs, dK and dV are added to w's. b: its bounds; NULL: none. */
void fa_ref_backward_block(const fa_backward_job *f, const fa_ref_rows *r, fa_ref_scratch *w,
                           fa_bound_scratch *b, fa_sums sums);
/* Gradients of captured buffers (dbuffer.c). */
fa_status fa_ref_dbuffers(fa_ref_call *c, fa_error *err);
/* The gradient of the sinks (dsinks.c). */
fa_status fa_ref_dsinks(fa_ref_call *c, fa_error *err);
/* dBias, summed over the axes that the bias is broadcast along (dbias.c). */
fa_status fa_ref_dbias(fa_ref_call *c, fa_error *err);

#endif
