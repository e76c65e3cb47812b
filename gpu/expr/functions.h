/* What stands behind fa_flex_functions on the host: an interpreter of a call's expressions, pair by pair, in
 * float32 and int32 with the meaning of docs/reference/expressions.md, "Kernels". It gives what
 * gpu/ref_f32/expr.h gives, bit for bit. */
#ifndef FA_GPU_EXPR_FUNCTIONS_H
#define FA_GPU_EXPR_FUNCTIONS_H

#include "cases/expr/ast.h"
#include "gpu/kernels/params/flex_functions.h"

typedef struct fa_flex_interpreter fa_flex_interpreter;

/* score, mask: parsed with these captures, and copied; NULL or n == 0: there is none. buffer[k]: the elements
 * of capture k, f32 or i32, contiguous; the caller's, and they stay there. wanted[k]: its gradient is wanted,
 * which is looked at where the capture is f32; wanted NULL: a forward call, no slope. FA_ERR_UNSUPPORTED:
 * more than FA_FLEX_MAX_READS reads of wanted buffers. */
fa_status fa_flex_interpreter_make(const fa_expr *score, const fa_expr *mask, const fa_capture *captures,
                                   int n_captures, const void *const *buffer, const bool *wanted,
                                   fa_flex_interpreter **out, fa_error *err);
/* Any number of threads may call them at the same time; they are there until x is freed. */
const fa_flex_functions *fa_flex_interpreter_functions(const fa_flex_interpreter *x);
void fa_flex_interpreter_free(fa_flex_interpreter *x); /* NULL is fine */

#endif
