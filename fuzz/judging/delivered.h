/* What a subject delivers of a call's outputs, and what becomes of those that it does not. */
#ifndef FA_FUZZ_JUDGING_DELIVERED_H
#define FA_FUZZ_JUDGING_DELIVERED_H

#include "gpu/backend.h"
#include "report/result.h"

/* What the backend's subject says about itself; everything in the harness's conventions if it says nothing. */
void fa_declaration_of(const fa_backend *b, void *self, const fa_problem *p, fa_declaration *out);

/* Bits (1 << fa_tensor_id) of the outputs that the call has and one of these passes writes. */
fa_tensor_bits fa_outputs_of(const fa_tensors *t, unsigned passes);
/* Of these, those that a run says it has not written: by its outcome, or by their absence afterwards. */
fa_tensor_bits fa_outputs_left_out(const fa_tensors *before, const fa_tensors *after, unsigned passes,
                                   const fa_outcome *outcome);
/* Takes the outputs out of the set: nothing compares, dumps or reads them any more. */
void fa_outputs_drop(fa_tensors *t, fa_tensor_bits outputs);
/* Records them in the result, with a note: "not delivered, not judged: lse, dbias". None: nothing. */
void fa_result_not_delivered(fa_result *r, fa_tensor_bits outputs);

#endif
