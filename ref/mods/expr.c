/* Values of an expression's nodes, with their errors. */
#include "ref/mods/expr_node.h"
#include "ref/mods/expr_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { L = FA_EXPR_LANES };

int64_t fa_ref_expr_element(const fa_ref_expr *x, int node, int lane) {
  return fa_expr_element(x, node, lane);
}

fa_status fa_ref_expr_init(fa_ref_expr *x, const fa_expr *e, const fa_tensors *in, fa_error *err) {
  const size_t rows = (size_t)e->n * L;
  *x = (fa_ref_expr){.e = e, .in = in};
  if (e->n == 0) return FA_OK;
  x->memory = calloc(rows, 4 * sizeof(double) + sizeof(int) + 2 * sizeof(uint8_t));
  if (!x->memory) return fa_fail(err, FA_ERR_MEMORY, "reference: out of memory for an expression");
  x->value = x->memory;
  x->error = x->value + rows;
  x->derivative = x->error + rows;
  x->derivative_e = x->derivative + rows;
  x->fault = (int *)(void *)(x->derivative_e + rows);
  x->reached = (uint8_t *)(x->fault + rows);
  x->uniform = x->reached + rows;
  x->clean = x->uniform + e->n;
  for (int node = 0; node < e->n; ++node) {
    const fa_expr_node *n = &e->node[node];
    x->uniform[node] = n->op != FA_EXPR_SCORE && n->op != FA_EXPR_KV_IDX;
    for (int k = 0; k < n->n_args; ++k) x->uniform[node] &= x->uniform[n->arg[k]];
  }
  return FA_OK;
}

void fa_ref_expr_free(fa_ref_expr *x) {
  free(x->memory);
  *x = (fa_ref_expr){0};
}

/* ---- nodes ---- */

void fa_ref_expr_eval(fa_ref_expr *x, const fa_ref_pairs *p) {
  for (int node = 0; node < x->e->n; ++node) {
    if (!x->uniform[node] && fa_ref_expr_row_at_once(x, p, node)) continue;
    for (int lane = 0; lane < (x->uniform[node] ? 1 : p->n); ++lane) {
      const fa_lane r = fa_expr_node_lane(x, p, node, lane);
      const int64_t at = (int64_t)node * L + lane;
      x->value[at] = r.v;
      x->error[at] = r.e;
      x->fault[at] = r.fault;
    }
    fa_ref_expr_row_done(x, p, node);
  }
}

/* ---- explaining faults ---- */

static void explain_load(const fa_ref_expr *x, const fa_expr_node *n, int lane, char *text, size_t size) {
  const fa_tensor *t = &x->in->t[FA_T_BUFFER_0 + n->buffer];
  bool unsure;
  const int axis = fa_expr_bad_axis(x, n, lane, &unsure);
  if (axis < 0 && n->type == FA_EXPR_INT)
    snprintf(text, size, "the buffer holds a number beyond int32 there");
  else if (axis < 0)
    snprintf(text, size, "the buffer holds no finite number there");
  else
    snprintf(text, size, "index %d is %.0f, not in 0 .. %lld", axis, fa_expr_lane(x, n->arg[axis], lane).v,
             (long long)t->shape[axis] - 1);
}

/* Follows the tree from the root to the operation that rounding decides. */
static int undecided(const fa_ref_expr *x, int lane) {
  int node = x->e->root;
  for (int k = 0; k < x->e->node[node].n_args; ++k) {
    const int part = x->e->node[node].arg[k];
    const double e = fa_expr_lane(x, part, lane).e;
    if (x->e->node[part].type == FA_EXPR_FLOAT ? e < INFINITY : e == 0) continue;
    node = part;
    k = -1;
  }
  return node;
}

void fa_ref_expr_explain(const fa_ref_expr *x, int lane, char *text, size_t size) {
  const fa_lane root = fa_expr_lane(x, x->e->root, lane);
  const int node = root.fault ? root.fault - 1 : undecided(x, lane);
  const fa_expr_node *n = &x->e->node[node];
  char what[160], a[32] = "", b[32] = "";
  if (n->n_args > 0) snprintf(a, sizeof a, "%.10g", fa_expr_lane(x, n->arg[0], lane).v);
  if (n->n_args > 1) snprintf(b, sizeof b, "%.10g", fa_expr_lane(x, n->arg[1], lane).v);
  if (!root.fault)
    snprintf(what, sizeof what,
             n->type == FA_EXPR_FLOAT ? "rounding decides whether there is a value" : "rounding decides it");
  else if (n->op == FA_EXPR_LOAD)
    explain_load(x, n, lane, what, sizeof what);
  else if (n->n_args == 2)
    snprintf(what, sizeof what, "%s %s %s has no value in %s", a, fa_expr_op_text(n->op), b,
             n->type == FA_EXPR_INT ? "int32" : "f32");
  else
    snprintf(what, sizeof what, "%s of %s has no value in %s", fa_expr_op_text(n->op), a,
             n->type == FA_EXPR_INT ? "int32" : "f32");
  snprintf(text, size, "column %d: %s", n->at + 1, what);
}
