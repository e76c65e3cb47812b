/* Expressions in float32 and int32 as a plain kernel computes them: every node over a row of pairs, both
 * branches evaluated and then selected. Undefined operations give defined results (docs/reference/expressions.md,
 * "Kernels"): integers wrap, integer division by 0 gives 0, indices are clamped to their range. */
#ifndef FA_GPU_REF_F32_EXPR_H
#define FA_GPU_REF_F32_EXPR_H

#include "cases/tensors/set.h"
#include "gpu/expr/scalar.h"

enum { FA_F32_PAIRS = 64 };

/* Pairs (i, j0 .. j0 + n - 1) of one sequence and head, n <= FA_F32_PAIRS. */
typedef struct fa_f32_pairs {
  int64_t b, h, i, j0;
  int n;
  int64_t seqlen_q, seqlen_k;
  const float *score; /* [n]; unused by masks */
} fa_f32_pairs;

typedef struct fa_f32_expr {
  const fa_expr *e;
  const fa_tensors *in;
  fa_f32_word *row; /* [e->n][FA_F32_PAIRS] */
  int64_t *element; /* the same: index of the element that an FA_EXPR_LOAD read */
} fa_f32_expr;

fa_status fa_f32_expr_init(fa_f32_expr *x, const fa_expr *e, const fa_tensors *in, fa_error *err);
void fa_f32_expr_free(fa_f32_expr *x);
void fa_f32_expr_eval(fa_f32_expr *x, const fa_f32_pairs *p);
static inline const fa_f32_word *fa_f32_expr_row(const fa_f32_expr *x, int node) {
  return x->row + (int64_t)node * FA_F32_PAIRS;
}

#endif
