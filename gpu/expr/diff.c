/* Derivatives by reverse accumulation over the tree, as new nodes.
 *
 * A branch's contribution is selected at the end (guard ? derivative : 0) and never multiplied by 0: an
 * infinity in a branch that is not taken must not become NaN. Simplifications: constants are folded in f32; x
 * * 1, x + 0 and --x become x; x * 0 becomes 0 (so an infinite or NaN x is lost, and perhaps the sign of a
 * zero). */
#include "gpu/expr/diff.h"

#include <stdlib.h>
#include <string.h>

/* ---- making nodes; -1 as an argument gives -1: out of memory ---- */

static int add_node(fa_expr *e, fa_expr_op op, fa_expr_type type, int n_args, int x, int y, int z) {
  if (x < 0 || y < 0 || z < 0) return -1;
  return fa_expr_add(e, (fa_expr_node){.op = op, .type = type, .n_args = n_args, .arg = {x, y, z}});
}

static int constant(fa_expr *e, double value, fa_expr_type type) {
  return fa_expr_add(e, (fa_expr_node){.op = FA_EXPR_CONST, .type = type, .value = value});
}

static bool is_constant(const fa_expr *e, int x, double value) {
  return x >= 0 && e->node[x].op == FA_EXPR_CONST && e->node[x].type == FA_EXPR_FLOAT &&
         e->node[x].value == value;
}

static bool both_constant(const fa_expr *e, int x, int y) {
  return x >= 0 && y >= 0 && e->node[x].op == FA_EXPR_CONST && e->node[y].op == FA_EXPR_CONST;
}

static int negative(fa_expr *e, int x) {
  if (x >= 0 && e->node[x].op == FA_EXPR_NEG) return e->node[x].arg[0];
  if (x >= 0 && e->node[x].op == FA_EXPR_CONST) return constant(e, -e->node[x].value, FA_EXPR_FLOAT);
  return add_node(e, FA_EXPR_NEG, FA_EXPR_FLOAT, 1, x, 0, 0);
}

static int product(fa_expr *e, int x, int y) {
  if (is_constant(e, x, 1)) return y;
  if (is_constant(e, y, 1)) return x;
  if (is_constant(e, x, 0) || is_constant(e, y, 0)) return constant(e, 0, FA_EXPR_FLOAT);
  if (is_constant(e, x, -1)) return negative(e, y);
  if (is_constant(e, y, -1)) return negative(e, x);
  if (both_constant(e, x, y))
    return constant(e, (float)e->node[x].value * (float)e->node[y].value, FA_EXPR_FLOAT);
  return add_node(e, FA_EXPR_MUL, FA_EXPR_FLOAT, 2, x, y, 0);
}

static int quotient(fa_expr *e, int x, int y) {
  if (is_constant(e, y, 1) || is_constant(e, x, 0)) return x;
  return add_node(e, FA_EXPR_DIV, FA_EXPR_FLOAT, 2, x, y, 0);
}

static int sum(fa_expr *e, int x, int y) {
  if (is_constant(e, x, 0)) return y;
  if (is_constant(e, y, 0)) return x;
  return add_node(e, FA_EXPR_ADD, FA_EXPR_FLOAT, 2, x, y, 0);
}

static int compare(fa_expr *e, fa_expr_op op, int x, int y) {
  return add_node(e, op, FA_EXPR_BOOL, 2, x, y, 0);
}

static int choose(fa_expr *e, int condition, int x, int y) {
  return add_node(e, FA_EXPR_SELECT, FA_EXPR_FLOAT, 3, condition, x, y);
}

/* The conjunction of two conditions; NONE: always true. */
enum { NONE = -2 };
static int both(fa_expr *e, int guard, int condition) {
  if (guard == NONE) return condition;
  return add_node(e, FA_EXPR_AND, FA_EXPR_BOOL, 2, guard, condition, 0);
}

/* ---- one step down the tree ---- */

typedef struct fa_walk {
  fa_expr *e;
  int *derivative, *guard; /* per node of the tree; derivative NONE: not reached */
} fa_walk;

static void reach(fa_walk *w, int child, int derivative, int guard) {
  const fa_expr_node *n = &w->e->node[child];
  if (n->type != FA_EXPR_FLOAT || n->op == FA_EXPR_TO_FLOAT || n->op == FA_EXPR_CONST) return;
  w->derivative[child] = derivative;
  w->guard[child] = guard;
}

/* min and max: all to the selected argument, half to each at a tie. */
static void step_choice(fa_walk *w, const fa_expr_node *n, int derivative, int guard) {
  fa_expr *e = w->e;
  const int a = n->arg[0], b = n->arg[1];
  const fa_expr_op op = n->op == FA_EXPR_MIN ? FA_EXPR_LE : FA_EXPR_GE;
  const int half = product(e, derivative, constant(e, 0.5, FA_EXPR_FLOAT));
  const int share = choose(e, compare(e, FA_EXPR_EQ, a, b), half, derivative);
  reach(w, a, share, both(e, guard, compare(e, op, a, b)));
  reach(w, b, share, both(e, guard, compare(e, op, b, a)));
}

static void step_quotient(fa_walk *w, const fa_expr_node *n, int node, int derivative, int guard) {
  fa_expr *e = w->e;
  const int a = n->arg[0], b = n->arg[1];
  reach(w, a, quotient(e, derivative, b), guard);
  reach(w, b, negative(e, product(e, derivative, quotient(e, node, b))), guard);
}

static int sign_times(fa_expr *e, int x, int derivative) {
  const int zero = constant(e, 0, FA_EXPR_FLOAT);
  const int below = choose(e, compare(e, FA_EXPR_LT, x, zero), negative(e, derivative), zero);
  return choose(e, compare(e, FA_EXPR_GT, x, zero), derivative, below);
}

static int function(fa_expr *e, fa_expr_op op, int x) {
  return add_node(e, op, FA_EXPR_FLOAT, 1, x, 0, 0);
}

static int difference(fa_expr *e, int x, int y) {
  if (both_constant(e, x, y))
    return constant(e, (float)e->node[x].value - (float)e->node[y].value, FA_EXPR_FLOAT);
  return add_node(e, FA_EXPR_SUB, FA_EXPR_FLOAT, 2, x, y, 0);
}

/* 2 / sqrt(pi) exp(-x^2) */
static int erf_slope(fa_expr *e, int x) {
  const int factor = constant(e, (float)1.1283791670955126, FA_EXPR_FLOAT);
  return product(e, factor, function(e, FA_EXPR_EXP, negative(e, product(e, x, x))));
}

/* By the base, y x^(y - 1), 0 where y is 0; by the exponent, x^y ln x, 0 where x is 0. */
static void step_power(fa_walk *w, const fa_expr_node *n, int node, int derivative, int guard) {
  fa_expr *e = w->e;
  const int x = n->arg[0], y = n->arg[1], zero = constant(e, 0, FA_EXPR_FLOAT);
  const int less = difference(e, y, constant(e, 1, FA_EXPR_FLOAT));
  const int power = is_constant(e, less, 0)   ? constant(e, 1, FA_EXPR_FLOAT)
                    : is_constant(e, less, 1) ? x
                                              : add_node(e, FA_EXPR_POW, FA_EXPR_FLOAT, 2, x, less, 0);
  const int base = product(e, derivative, product(e, y, power));
  const int exponent = product(e, derivative, product(e, node, function(e, FA_EXPR_LOG, x)));
  reach(w, x, choose(e, compare(e, FA_EXPR_EQ, y, zero), zero, base), guard);
  reach(w, y, choose(e, compare(e, FA_EXPR_EQ, x, zero), zero, exponent), guard);
}

/* The derivative with respect to the argument of a function of one argument. */
static int through(fa_expr *e, fa_expr_op op, int node, int x, int derivative) {
  switch (op) {
  case FA_EXPR_NEG:
    return negative(e, derivative);
  case FA_EXPR_ABS:
    return sign_times(e, x, derivative);
  case FA_EXPR_EXP:
    return product(e, derivative, node);
  case FA_EXPR_LOG:
    return quotient(e, derivative, x);
  case FA_EXPR_SQRT:
    return quotient(e, product(e, derivative, constant(e, 0.5, FA_EXPR_FLOAT)), node);
  case FA_EXPR_TANH: {
    const int square = product(e, node, node), one = constant(e, 1, FA_EXPR_FLOAT);
    return product(e, derivative, add_node(e, FA_EXPR_SUB, FA_EXPR_FLOAT, 2, one, square, 0));
  }
  case FA_EXPR_SIN:
    return product(e, derivative, function(e, FA_EXPR_COS, x));
  case FA_EXPR_ERF:
    return product(e, derivative, erf_slope(e, x));
  case FA_EXPR_SIGMOID:
    return product(e, derivative, product(e, node, difference(e, constant(e, 1, FA_EXPR_FLOAT), node)));
  case FA_EXPR_AS_FLOAT:
    return derivative;
  default: /* cos */
    return negative(e, product(e, derivative, function(e, FA_EXPR_SIN, x)));
  }
}

static void step(fa_walk *w, int node) {
  fa_expr *e = w->e;
  const fa_expr_node n = e->node[node]; /* a copy, because adding nodes moves them */
  const int derivative = w->derivative[node], guard = w->guard[node], x = n.arg[0], y = n.arg[1];
  switch (n.op) {
  case FA_EXPR_SCORE:
  case FA_EXPR_LOAD:
  case FA_EXPR_FLOOR:
  case FA_EXPR_CEIL:
    return;
  case FA_EXPR_ADD:
  case FA_EXPR_SUB:
    reach(w, x, derivative, guard);
    reach(w, y, n.op == FA_EXPR_ADD ? derivative : negative(e, derivative), guard);
    return;
  case FA_EXPR_MUL:
    reach(w, x, product(e, derivative, y), guard);
    reach(w, y, product(e, derivative, x), guard);
    return;
  case FA_EXPR_DIV:
    step_quotient(w, &n, node, derivative, guard);
    return;
  case FA_EXPR_POW:
    step_power(w, &n, node, derivative, guard);
    return;
  case FA_EXPR_MIN:
  case FA_EXPR_MAX:
    step_choice(w, &n, derivative, guard);
    return;
  case FA_EXPR_SELECT:
    reach(w, y, derivative, both(e, guard, x));
    reach(w, n.arg[2], derivative, both(e, guard, add_node(e, FA_EXPR_NOT, FA_EXPR_BOOL, 1, x, 0, 0)));
    return;
  default:
    reach(w, x, through(e, n.op, node, x, derivative), guard);
  }
}

/* ---- the expression ---- */

/* The contribution of a leaf. */
static int share_of(fa_walk *w, int leaf) {
  if (w->guard[leaf] == NONE) return w->derivative[leaf];
  return choose(w->e, w->guard[leaf], w->derivative[leaf], constant(w->e, 0, FA_EXPR_FLOAT));
}

static bool collect(fa_walk *w, int n_tree, fa_expr_gradient *out) {
  out->score = constant(w->e, 0, FA_EXPR_FLOAT);
  for (int node = 0; node < n_tree && out->score >= 0; ++node) {
    const fa_expr_op op = w->e->node[node].op;
    if (w->derivative[node] == NONE) continue;
    if (op == FA_EXPR_SCORE) out->score = sum(w->e, out->score, share_of(w, node));
    if (op != FA_EXPR_LOAD) continue;
    const int derivative = share_of(w, node);
    if (derivative < 0) return false;
    out->read[out->n_reads++] = (fa_expr_read){node, derivative};
  }
  return out->score >= 0;
}

fa_status fa_expr_differentiate(const fa_expr *e, fa_expr_gradient *out, fa_error *err) {
  const int n = e->n;
  fa_walk w = {.e = &out->e};
  bool good = false;
  *out = (fa_expr_gradient){0};
  w.derivative = malloc((size_t)n * sizeof *w.derivative);
  w.guard = malloc((size_t)n * sizeof *w.guard);
  out->read = malloc((size_t)n * sizeof *out->read);
  if (!w.derivative || !w.guard || !out->read || fa_expr_copy(&out->e, e) != FA_OK) goto out;
  for (int node = 0; node < n; ++node) w.derivative[node] = w.guard[node] = NONE;
  const int one = constant(&out->e, 1, FA_EXPR_FLOAT);
  reach(&w, e->root, one, NONE);
  good = one >= 0;
  for (int node = e->root; node >= 0 && good; --node) {
    if (w.derivative[node] == NONE) continue;
    if (w.derivative[node] == -1 || w.guard[node] == -1)
      good = false;
    else
      step(&w, node);
  }
  good = good && collect(&w, n, out);
out:
  free(w.derivative);
  free(w.guard);
  if (good) return FA_OK;
  fa_expr_gradient_free(out);
  return fa_fail(err, FA_ERR_MEMORY, "out of memory for the derivatives of an expression");
}

void fa_expr_gradient_free(fa_expr_gradient *g) {
  fa_expr_free(&g->e);
  free(g->read);
  *g = (fa_expr_gradient){0};
}
