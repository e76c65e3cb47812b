/* Computes with a mistake. */
#ifndef FA_FUZZ_EXPLAIN_COMPUTE_H
#define FA_FUZZ_EXPLAIN_COMPUTE_H

#include "fuzz/explain/hypothesis.h"
#include "fuzz/explain/scope.h"

/* The wants of the tensors in the set, where the scope has elements of them. The caller frees out. */
fa_status fa_mistake_compute(const fa_failure *x, fa_mistake *m, fa_tensor_bits set, const fa_scope *scope,
                             fa_wants *out, fa_error *err);

#endif
