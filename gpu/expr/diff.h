/* Symbolic derivatives of a score expression, for kernels. Kinks follow docs/reference/expressions.md. Nodes are
 * shared, so that their number is proportional to the expression's. */
#ifndef FA_GPU_EXPR_DIFF_H
#define FA_GPU_EXPR_DIFF_H

#include "cases/expr/ast.h"

/* A read of an f32 buffer, and the node of the derivative with respect to the element read. */
typedef struct fa_expr_read {
  int load, derivative;
} fa_expr_read;

typedef struct fa_expr_gradient {
  fa_expr e;          /* the expression's nodes, then those of the derivatives; e.root is the value */
  int score;          /* node of d value / d score; always present, perhaps the constant 0 */
  fa_expr_read *read; /* owned: reads that the value depends on */
  int n_reads;
} fa_expr_gradient;

/* e: a tree from fa_expr_parse whose result is a float. FA_ERR_MEMORY only. */
fa_status fa_expr_differentiate(const fa_expr *e, fa_expr_gradient *out, fa_error *err);
void fa_expr_gradient_free(fa_expr_gradient *g);

#endif
