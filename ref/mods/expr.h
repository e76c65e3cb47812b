/* Score and mask expressions in float64, one row of pairs at a time, with the possible error of an f32
 * kernel.
 *
 * A value comes with the largest absolute error that f32 arithmetic can cause, given its inputs' errors
 * (docs/reference/expressions.md, "Bounds"). The error of an int or condition is 0 or 1; 1 means that rounding may
 * decide it differently. */
#ifndef FA_REF_MODS_EXPR_H
#define FA_REF_MODS_EXPR_H

#include "cases/expr/ast.h"
#include "cases/tensors/set.h"

enum { FA_EXPR_LANES = 64 }; /* pairs at a time */

/* Pairs (i, j0 .. j0 + n - 1) of one sequence and head, n <= FA_EXPR_LANES. score, error: [n], before
 * score_mod; error NULL: exact; mask_mod ignores both. */
typedef struct fa_ref_pairs {
  int64_t b, h, i, j0;
  int n;
  int64_t seqlen_q, seqlen_k;
  const double *score;
  const float *error;
} fa_ref_pairs;

/* One thread's workspace. Rows of FA_EXPR_LANES per node. */
typedef struct fa_ref_expr {
  const fa_expr *e;
  const fa_tensors *in; /* FA_T_BUFFER_0 .. */
  double *value, *error;
  int *fault;                        /* 0, or 1 + the node whose operation has no value */
  double *derivative, *derivative_e; /* of the root to this node where it is reached, and its error */
  uint8_t *reached;                  /* FA_REACHED_* */
  uint8_t *uniform;                  /* per node: the same in every lane */
  uint8_t *clean; /* per node, of the last evaluation: no faults, and no int or condition is unsure */
  bool fast;      /* functions as devices approximate them; fa_ref_expr_init: false */
  void *memory;
} fa_ref_expr;

enum { FA_REACHED_NOT = 0, FA_REACHED_BY_VALUE = 1, FA_REACHED_UNSURE = 2 }; /* bits */

fa_status fa_ref_expr_init(fa_ref_expr *x, const fa_expr *e, const fa_tensors *in, fa_error *err);
void fa_ref_expr_free(fa_ref_expr *x);

/* Values, errors and faults of every node. */
void fa_ref_expr_eval(fa_ref_expr *x, const fa_ref_pairs *p);
static inline double *fa_ref_expr_row(double *rows, int node) {
  return rows + (int64_t)node * FA_EXPR_LANES;
}
/* Row-major index of the buffer's element that an FA_EXPR_LOAD reads in this lane; its indices are in
 * range. */
int64_t fa_ref_expr_element(const fa_ref_expr *x, int node, int lane);
/* Explains why the lane has no value: "column 7: log of -0.25". */
void fa_ref_expr_explain(const fa_ref_expr *x, int lane, char *text, size_t size);

/* Errors of one function's result y: eps |y| + floor. docs/reference/bounds.md, "Functions of expressions". */
typedef struct fa_ref_function_error {
  double eps, floor;
} fa_ref_function_error;

/* After fa_ref_expr_eval of n pairs: derivatives of the root with respect to every node, in reverse mode. The
 * expression must be a tree. */
void fa_ref_expr_derive(fa_ref_expr *x, int n);
/* What node (a SCORE or LOAD leaf) contributes to the derivative in this lane. NaN: it has none. */
void fa_ref_expr_share(const fa_ref_expr *x, int node, int lane, double *value, double *error);

#endif
