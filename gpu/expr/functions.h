/* Implements fa_flex_functions on the host: an interpreter of a call's expressions, pair by pair, in float32
 * and int32 with the semantics of docs/reference/expressions.md, "Kernels". Its results equal those of
 * gpu/ref_f32/expr.h bit for bit. */
#ifndef FA_GPU_EXPR_FUNCTIONS_H
#define FA_GPU_EXPR_FUNCTIONS_H

#include "cases/expr/ast.h"
#include "gpu/kernels/params/flex_functions.h"

typedef struct fa_flex_interpreter fa_flex_interpreter;

/* score, mask: parsed with these captures, and copied; NULL or n == 0: none. buffer[k]: the elements of
 * capture k, f32 or i32, contiguous; owned by the caller, who keeps them in place. wanted[k]: whether its
 * gradient is wanted (only for f32); wanted NULL: a forward call, no derivatives. FA_ERR_UNSUPPORTED: more
 * than FA_FLEX_MAX_READS reads of wanted buffers. */
fa_status fa_flex_interpreter_make(const fa_expr *score, const fa_expr *mask, const fa_capture *captures,
                                   int n_captures, const void *const *buffer, const bool *wanted,
                                   fa_flex_interpreter **out, fa_error *err);
/* Any number of threads may call them at once; they are valid until x is freed. */
const fa_flex_functions *fa_flex_interpreter_functions(const fa_flex_interpreter *x);
void fa_flex_interpreter_free(fa_flex_interpreter *x); /* x may be NULL */

#endif
