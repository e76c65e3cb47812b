/* The parts of fa_merge_check and fa_merge_backward_check. */
#ifndef FA_GPU_CALL_CHECK_MERGE_H
#define FA_GPU_CALL_CHECK_MERGE_H

#include "gpu/fa.h"

/* Sizes, types and numbers: everything that needs no tensors. */
fa_status fa_states_check_problem(const fa_states *s, fa_error *err);
/* Pointers and strides; g NULL: of a forward call, where o and lse are written. */
fa_status fa_states_check_tensors(const fa_states *s, const fa_states_gradients *g, fa_error *err);
/* True if the outputs have no elements. */
bool fa_states_are_empty(const fa_states *s);

#endif
