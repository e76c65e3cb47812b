/* Expressions as C that CUDA compilers and host compilers take: for kernels that are compiled for one
 * expression.
 *
 * Text comes from typed nodes alone: one statement per node ("const float x7 = x3 + x6;"), literals printed
 * from their values, buffers by number. Nothing of what the user wrote stands in it. The functions follow
 * fa_expr_prelude, compute every operand, looked at or not, and give what gpu/ref_f32/expr.h gives, bit for bit
 * where the compiler contracts no products and the functions are the same. A mask is always ACCURATE: one
 * that approximations decide would be another mask. */
#ifndef FA_GPU_EXPR_EMIT_H
#define FA_GPU_EXPR_EMIT_H

#include "gpu/expr/diff.h"

/* FAST: the device's approximations where docs/reference/bounds.md grants them to score_mod of 16-bit
 * problems (exp, log, sqrt, tanh, division); for a host the functions stay the same, and x / constant becomes
 * a product. */
typedef enum fa_expr_speed { FA_EXPR_ACCURATE, FA_EXPR_FAST } fa_expr_speed;

/* What the functions call. FA_EXPR_FN may be defined before: how they are declared. */
extern const char fa_expr_prelude[];

/* All: malloc'd text of one function; NULL when out of memory. captures: those that the expression was parsed
 * with. FA_EXPR_FN float NAME(float score, int b, int h, int q_idx, int kv_idx, int seqlen_q, int seqlen_k,
 *                         const void *const *buffer) */
char *fa_expr_emit_score(const fa_expr *e, const fa_capture *captures, fa_expr_speed speed, const char *name);
/*   FA_EXPR_FN int NAME(int b, int h, int q_idx, int kv_idx, int seqlen_q, int seqlen_k, const void *const
 * *buffer) */
char *fa_expr_emit_mask(const fa_expr *e, const fa_capture *captures, const char *name);
/*   FA_EXPR_FN float NAME(float score, ... const void *const *buffer, float *slope, long long *element)
 * Returns d value / d score. slope[k], element[k] belong to the k-th of g's reads whose buffer is wanted: the
 * derivative, and which element was read, row-major. */
char *fa_expr_emit_gradient(const fa_expr_gradient *g, const fa_capture *captures, const bool *wanted,
                            fa_expr_speed speed, const char *name);

#endif
