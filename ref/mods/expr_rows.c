/* Whole rows of the most common operations if no lane is special: the same numbers as lane by lane (expr.c),
 * without testing each lane. */
#include "ref/mods/expr_rows.h"

#include <float.h>
#include <math.h>

enum { L = FA_EXPR_LANES };

static const double u = 0x1p-24, tiny = 0x1p-126;

/* Copies lane 0 of the node, the only one computed so far, to every lane. */
static void broadcast(fa_ref_expr *x, int node, int n) {
  double *restrict v = x->value + (int64_t)node * L, *restrict e = x->error + (int64_t)node * L;
  int *restrict fault = x->fault + (int64_t)node * L;
  for (int lane = 1; lane < n; ++lane) {
    v[lane] = v[0];
    e[lane] = e[0];
    fault[lane] = fault[0];
  }
}

/* Values that are exact or come from an input. */
static void leaf_row(fa_ref_expr *x, const fa_ref_pairs *p, int node) {
  double *restrict v = x->value + (int64_t)node * L, *restrict e = x->error + (int64_t)node * L;
  const bool score = x->e->node[node].op == FA_EXPR_SCORE;
  for (int lane = 0; lane < p->n; ++lane) {
    v[lane] = score ? p->score[lane] : (double)(p->j0 + lane);
    e[lane] = score && p->error ? p->error[lane] : 0;
  }
}

/* True if the operands are exact ints and the results are in range. */
static bool int_row(fa_ref_expr *x, int node, int n) {
  const fa_expr_node *t = &x->e->node[node];
  const double *restrict a = x->value + (int64_t)t->arg[0] * L, *restrict b =
                                                                    x->value + (int64_t)t->arg[1] * L;
  double *restrict v = x->value + (int64_t)node * L, *restrict e = x->error + (int64_t)node * L, most = 0;
  for (int lane = 0; lane < n; ++lane) {
    v[lane] = t->op == FA_EXPR_ADD   ? a[lane] + b[lane]
              : t->op == FA_EXPR_SUB ? a[lane] - b[lane]
                                     : a[lane] * b[lane];
    e[lane] = 0;
    most = fabs(v[lane]) > most ? fabs(v[lane]) : most;
  }
  return most <= INT32_MAX;
}

static void compare_row(fa_ref_expr *x, int node, int n) {
  const fa_expr_node *t = &x->e->node[node];
  const double *restrict a = x->value + (int64_t)t->arg[0] * L, *restrict b =
                                                                    x->value + (int64_t)t->arg[1] * L;
  double *restrict v = x->value + (int64_t)node * L, *restrict e = x->error + (int64_t)node * L;
  const bool swap = t->op == FA_EXPR_GT || t->op == FA_EXPR_LE;
  const double *restrict low = swap ? b : a, *restrict high = swap ? a : b;
  const double not = t->op == FA_EXPR_LE || t->op == FA_EXPR_GE || t->op == FA_EXPR_NE;
  const bool equal = t->op == FA_EXPR_EQ || t->op == FA_EXPR_NE;
  for (int lane = 0; lane < n; ++lane) {
    const double yes = equal ? a[lane] == b[lane] : low[lane] < high[lane];
    v[lane] = yes != not ;
    e[lane] = 0;
  }
}

/* Sums and products of finite floats: false if a lane is infinite, unknown or too large. */
static bool float_row(fa_ref_expr *x, int node, int n) {
  const fa_expr_node *t = &x->e->node[node];
  const double *restrict a = x->value + (int64_t)t->arg[0] * L, *restrict b =
                                                                    x->value + (int64_t)t->arg[1] * L;
  const double *restrict ea = x->error + (int64_t)t->arg[0] * L, *restrict eb =
                                                                     x->error + (int64_t)t->arg[1] * L;
  double *restrict v = x->value + (int64_t)node * L, *restrict e = x->error + (int64_t)node * L;
  const bool product = t->op == FA_EXPR_MUL;
  const double sign = t->op == FA_EXPR_SUB ? -1 : 1;
  double most = 0;
  for (int lane = 0; lane < n; ++lane) {
    const double y = product ? a[lane] * b[lane] : a[lane] + sign * b[lane];
    const double in = product ? fabs(a[lane]) * eb[lane] + fabs(b[lane]) * ea[lane] + ea[lane] * eb[lane]
                              : ea[lane] + eb[lane];
    const double size = fabs(y), out = in + (u * (size + in) + tiny), reach = size + out;
    const bool fits = ((double)(float)y == y) & ((size >= FLT_MIN) | (size == 0));
    const bool exact = ((ea[lane] + eb[lane] == 0) & fits) | (size + in == 0);
    v[lane] = y;
    e[lane] = exact ? 0 : out;
    most = reach <= FLT_MAX ? most : INFINITY; /* NaN too */
  }
  return most == 0;
}

static bool is_clean(const fa_ref_expr *x, const fa_expr_node *t) {
  for (int k = 0; k < t->n_args; ++k)
    if (!x->clean[t->arg[k]]) return false;
  return true;
}

static bool some_row(fa_ref_expr *x, const fa_ref_pairs *p, int node) {
  const fa_expr_node *t = &x->e->node[node];
  if (t->op == FA_EXPR_SCORE || t->op == FA_EXPR_KV_IDX) {
    leaf_row(x, p, node);
    return true;
  }
  if (t->n_args != 2 || !is_clean(x, t)) return false;
  const bool floats = x->e->node[t->arg[0]].type == FA_EXPR_FLOAT;
  const bool sums = t->op == FA_EXPR_ADD || t->op == FA_EXPR_SUB || t->op == FA_EXPR_MUL;
  if (sums) return floats ? float_row(x, node, p->n) : int_row(x, node, p->n);
  if (floats || !fa_expr_is_comparison(t->op)) return false;
  compare_row(x, node, p->n);
  return true;
}

bool fa_ref_expr_row_at_once(fa_ref_expr *x, const fa_ref_pairs *p, int node) {
  if (!some_row(x, p, node)) return false;
  int *fault = x->fault + (int64_t)node * L;
  for (int lane = 0; lane < p->n; ++lane) fault[lane] = 0;
  x->clean[node] = true;
  return true;
}

void fa_ref_expr_row_done(fa_ref_expr *x, const fa_ref_pairs *p, int node) {
  const bool is_float = x->e->node[node].type == FA_EXPR_FLOAT;
  const double *e = x->error + (int64_t)node * L;
  const int *fault = x->fault + (int64_t)node * L;
  if (x->uniform[node]) broadcast(x, node, p->n);
  bool clean = true;
  for (int lane = 0; lane < p->n; ++lane) clean &= (fault[lane] == 0) & (is_float | (e[lane] == 0));
  x->clean[node] = clean;
}
