/* Emits expressions as C that CUDA and host compilers accept, for kernels compiled for one expression.
 *
 * The text is made from typed nodes alone: one statement per node ("const float x7 = x3 + x6;"), literals
 * printed from their values, buffers by number. It contains nothing that the user wrote.
 *
 * The functions follow fa_expr_prelude, evaluate every operand, needed or not, and give the results of
 * gpu/ref_f32/expr.h, bit for bit if the compiler does not contract products and the math functions are the
 * same. A mask is always ACCURATE: approximations could make it a different mask. */
#ifndef FA_GPU_EXPR_EMIT_H
#define FA_GPU_EXPR_EMIT_H

#include "gpu/expr/diff.h"

/* FAST: the device's approximations where docs/reference/bounds.md allows them for score_mod of 16-bit problems (exp,
 * log, sqrt, tanh, division). On a host the functions stay the same, and x / constant becomes a product. */
typedef enum fa_expr_speed { FA_EXPR_ACCURATE, FA_EXPR_FAST } fa_expr_speed;

/* What the functions call. FA_EXPR_FN may be defined before it, to declare them. */
extern const char fa_expr_prelude[];

/* All return malloc'd text of one function; NULL when out of memory. captures: the same as in parsing.
 *
 * FA_EXPR_FN float NAME(float score, int b, int h, int q_idx, int kv_idx, int seqlen_q, int seqlen_k,
 *                       const void *const *buffer) */
char *fa_expr_emit_score(const fa_expr *e, const fa_capture *captures, fa_expr_speed speed, const char *name);
/*   FA_EXPR_FN int NAME(int b, int h, int q_idx, int kv_idx, int seqlen_q, int seqlen_k, const void *const
 * *buffer) */
char *fa_expr_emit_mask(const fa_expr *e, const fa_capture *captures, const char *name);
/* FA_EXPR_FN float NAME(float score, ... const void *const *buffer, float *slope, long long *element) returns
 * d value / d score. slope[k] and element[k] belong to the k-th of g's reads whose buffer is wanted: the
 * derivative, and the row-major index of the element read. */
char *fa_expr_emit_gradient(const fa_expr_gradient *g, const fa_capture *captures, const bool *wanted,
                            fa_expr_speed speed, const char *name);

#endif
