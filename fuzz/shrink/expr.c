/* Passes that simplify expressions: replace the whole by a part, an operation by an operand; remove unused
 * buffers. */
#include "cases/expr/ast.h"
#include "cases/vocabulary/problem_expr.h"
#include "fuzz/shrink/reduce.h"

#include <stdlib.h>
#include <string.h>

/* First each node's own subtree as the whole, then each node's operands in its place. Leaves come first. */
enum { PER_NODE = 1 + FA_MAX_CAPTURE_RANK };

static int64_t count_of(const fa_case *c, fa_expr_kind kind) {
  fa_expr e;
  if (fa_expr_of(&c->problem, kind, &e, NULL) != FA_OK) return 0;
  const int64_t n = (int64_t)e.n * PER_NODE;
  fa_expr_free(&e);
  return n;
}

static int64_t count_expressions(const fa_case *c) {
  return count_of(c, FA_EXPR_SCORE_MOD) + count_of(c, FA_EXPR_MASK_MOD);
}

/* False: there is no proposal i. */
static bool simplify(fa_expr *e, int64_t i) {
  if (i < e->n) {
    const bool is_root = i == e->root;
    e->root = (int)i;
    return !is_root;
  }
  const int node = (int)(i % e->n), k = (int)(i / e->n) - 1;
  const fa_expr_node *x = &e->node[node];
  if (k >= x->n_args || e->node[x->arg[k]].type != x->type) return false;
  const int by = x->arg[k];
  if (node == e->root) e->root = by;
  for (int other = node + 1; other < e->n; ++other)
    for (int a = 0; a < e->node[other].n_args; ++a)
      if (e->node[other].arg[a] == node) e->node[other].arg[a] = by;
  return true;
}

static bool edit_text(fa_case *c, fa_expr_kind kind, int64_t i) {
  fa_problem *p = &c->problem;
  char **text = kind == FA_EXPR_SCORE_MOD ? &p->score_mod : &p->mask_mod, *simpler = NULL;
  fa_expr e;
  if (fa_expr_of(p, kind, &e, NULL) != FA_OK) return false;
  if (simplify(&e, i)) simpler = fa_expr_print(&e, p->captures);
  fa_expr_free(&e);
  const bool shorter = simpler && strlen(simpler) < strlen(*text);
  if (shorter) {
    free(*text);
    *text = simpler;
  } else {
    free(simpler);
  }
  return shorter;
}

static bool edit_expression(fa_case *c, int64_t i, const fa_shrink_goal *goal) {
  (void)goal;
  const int64_t n = count_of(c, FA_EXPR_SCORE_MOD);
  return i < n ? edit_text(c, FA_EXPR_SCORE_MOD, i) : edit_text(c, FA_EXPR_MASK_MOD, i - n);
}

static int64_t count_buffers(const fa_case *c) {
  return c->problem.n_captures;
}

/* Removing a buffer that is read makes the case invalid, so it is not tried. */
static bool edit_buffer(fa_case *c, int64_t i, const fa_shrink_goal *goal) {
  (void)goal;
  fa_problem *p = &c->problem;
  if (i >= p->n_captures) return false;
  --p->n_captures;
  memmove(p->captures + i, p->captures + i + 1, (size_t)(p->n_captures - i) * sizeof *p->captures);
  return true;
}

/* Simpler kinds of a buffer: dense, f32, i32, without a gradient. */
enum { BUFFER_KINDS = 4 };

static int64_t count_buffer_kinds(const fa_case *c) {
  return BUFFER_KINDS * c->problem.n_captures;
}

static bool edit_buffer_kind(fa_case *c, int64_t i, const fa_shrink_goal *goal) {
  (void)goal;
  fa_capture *x = &c->problem.captures[i / BUFFER_KINDS];
  const fa_capture before = *x;
  switch (i % BUFFER_KINDS) {
  case 0:
    x->n_strides = 0;
    return before.n_strides > 0;
  case 1:
    if (fa_capture_is_float(x)) x->dtype = FA_F32;
    break;
  case 2:
    if (x->dtype == FA_I64 && x->below <= INT32_MAX) x->dtype = FA_I32;
    break;
  default:
    x->grad = false;
    return before.grad && c->problem.backward;
  }
  return x->dtype != before.dtype;
}

const fa_shrink_pass fa_shrink_expressions[] = {{"expressions", count_expressions, edit_expression, NULL},
                                                {"buffers", count_buffers, edit_buffer, NULL},
                                                {"buffer kinds", count_buffer_kinds, edit_buffer_kind, NULL},
                                                {0}};
