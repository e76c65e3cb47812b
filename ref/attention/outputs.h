/* The outputs of a call before and after they are computed, for whoever computes them. */
#ifndef FA_REF_ATTENTION_OUTPUTS_H
#define FA_REF_ATTENTION_OUTPUTS_H

#include "ref/engine/call.h"

/* O and LSE, zeros. */
fa_status fa_ref_forward_outputs(fa_ref_call *c, fa_error *err);
/* Once all rows are known: what is behind the last rows of sequences, and the size of LSEs. */
void fa_ref_forward_finish(fa_ref_call *c);
/* dQ, dK and dV, zeros. */
fa_status fa_ref_backward_outputs(fa_ref_call *c, fa_error *err);
/* Of dBias alone, and of dSinks, zeros. */
fa_status fa_ref_dbias_output(fa_ref_call *c, fa_error *err);
fa_status fa_ref_dsinks_output(fa_ref_call *c, fa_error *err);
/* Of the buffers whose gradients are asked for, zeros, if there is a score_mod. wanted: [FA_MAX_CAPTURES], false before; first:
 * [FA_MAX_CAPTURES + 1], zeros before, then the number of each one's first element among all. */
fa_status fa_ref_dbuffers_outputs(fa_ref_call *c, bool *wanted, int64_t *first, fa_error *err);

#endif
