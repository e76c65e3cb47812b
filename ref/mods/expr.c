/* Values of an expression's nodes, with their errors. */
#include "ref/mods/expr_rows.h"
#include "ref/mods/lane.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { L = FA_EXPR_LANES };

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

static fa_lane get(const fa_ref_expr *x, int node, int lane) {
  const int64_t at = (int64_t)node * L + lane;
  return (fa_lane){x->value[at], x->error[at], x->fault[at]};
}

/* The axis whose index is out of range, or -1; *unsure if rounding may decide an index. */
static int bad_axis(const fa_ref_expr *x, const fa_expr_node *n, int lane, bool *unsure) {
  const fa_tensor *t = &x->in->t[FA_T_BUFFER_0 + n->buffer];
  int bad = -1;
  *unsure = false;
  for (int k = n->n_args - 1; k >= 0; --k) {
    const fa_lane index = get(x, n->arg[k], lane);
    if (index.e > 0) *unsure = true;
    if (!(index.v >= 0 && index.v < (double)t->shape[k])) bad = k;
  }
  return bad;
}

int64_t fa_ref_expr_element(const fa_ref_expr *x, int node, int lane) {
  const fa_expr_node *n = &x->e->node[node];
  const fa_tensor *t = &x->in->t[FA_T_BUFFER_0 + n->buffer];
  int64_t at = 0;
  for (int k = 0; k < n->n_args; ++k) at = at * t->shape[k] + (int64_t)get(x, n->arg[k], lane).v;
  return at;
}

/* An element of i64 that is no int of expressions, which have 32 bits. */
static bool is_beyond(const fa_expr_node *n, double v) {
  return n->type == FA_EXPR_INT && !(v >= INT32_MIN && v <= INT32_MAX);
}

static fa_lane load_lane(const fa_ref_expr *x, int node, int lane) {
  const fa_expr_node *n = &x->e->node[node];
  const fa_tensor *t = &x->in->t[FA_T_BUFFER_0 + n->buffer];
  bool unsure;
  const double lost = n->type == FA_EXPR_FLOAT ? INFINITY : 1;
  if (bad_axis(x, n, lane, &unsure) >= 0) return (fa_lane){0, lost, unsure ? 0 : node + 1};
  int64_t index[FA_MAX_RANK] = {0};
  for (int k = 0; k < n->n_args; ++k) index[k] = (int64_t)get(x, n->arg[k], lane).v;
  const double v = fa_tensor_get(t, index);
  if (isnan(v) || isinf(v) || is_beyond(n, v)) return (fa_lane){0, lost, unsure ? 0 : node + 1};
  return (fa_lane){v, unsure ? lost : 0, 0};
}

static fa_lane leaf_lane(const fa_ref_expr *x, const fa_ref_pairs *p, int node, int lane) {
  const fa_expr_node *n = &x->e->node[node];
  switch (n->op) {
  case FA_EXPR_SCORE:
    return (fa_lane){p->score[lane], p->error ? p->error[lane] : 0, 0};
  case FA_EXPR_B:
    return (fa_lane){(double)p->b, 0, 0};
  case FA_EXPR_H:
    return (fa_lane){(double)p->h, 0, 0};
  case FA_EXPR_Q_IDX:
    return (fa_lane){(double)p->i, 0, 0};
  case FA_EXPR_KV_IDX:
    return (fa_lane){(double)(p->j0 + lane), 0, 0};
  case FA_EXPR_SEQLEN_Q:
    return (fa_lane){(double)p->seqlen_q, 0, 0};
  case FA_EXPR_SEQLEN_K:
    return (fa_lane){(double)p->seqlen_k, 0, 0};
  default:
    return (fa_lane){n->value, 0, 0};
  }
}

static fa_lane unary_lane(const fa_ref_expr *x, const fa_expr_node *n, fa_lane a, int node) {
  const bool floats = x->e->node[n->arg[0]].type == FA_EXPR_FLOAT;
  switch (n->op) {
  case FA_EXPR_TO_BOOL:
    return (fa_lane){a.v != 0, a.e, 0};
  case FA_EXPR_TO_INT:
    return a;
  case FA_EXPR_TO_FLOAT:
    return fa_lane_to_float(a);
  case FA_EXPR_NOT:
    return (fa_lane){a.v == 0, a.e, 0};
  case FA_EXPR_AS_INT:
    return floats ? fa_lane_to_int(a, node) : a;
  default:
    return floats ? fa_lane_float_unary(n->op, a, x->fast, node) : fa_lane_int_unary(n->op, a, node);
  }
}

static fa_lane node_lane(const fa_ref_expr *x, const fa_ref_pairs *p, int node, int lane) {
  const fa_expr_node *n = &x->e->node[node];
  if (n->n_args == 0 && n->op != FA_EXPR_LOAD) return leaf_lane(x, p, node, lane);
  const fa_lane a = n->n_args ? get(x, n->arg[0], lane) : (fa_lane){0, 0, 0};
  if (n->op == FA_EXPR_AND || n->op == FA_EXPR_OR) return fa_lane_logical(n->op, a, get(x, n->arg[1], lane));
  if (n->op == FA_EXPR_SELECT)
    return fa_lane_select(a, get(x, n->arg[1], lane), get(x, n->arg[2], lane), n->type == FA_EXPR_FLOAT);
  for (int k = 0; k < n->n_args; ++k) {
    const fa_lane part = get(x, n->arg[k], lane);
    if (part.fault) return part;
  }
  if (n->op == FA_EXPR_LOAD) return load_lane(x, node, lane);
  if (n->n_args == 1) return unary_lane(x, n, a, node);
  const fa_lane b = get(x, n->arg[1], lane);
  const bool floats = x->e->node[n->arg[0]].type == FA_EXPR_FLOAT;
  if (n->type == FA_EXPR_BOOL)
    return fa_expr_is_bitwise(n->op) ? fa_lane_bits(n->op, a, b) : fa_lane_compare(n->op, a, b, floats);
  return floats ? fa_lane_float_binary(n->op, a, b, node) : fa_lane_int_binary(n->op, a, b, node);
}

void fa_ref_expr_eval(fa_ref_expr *x, const fa_ref_pairs *p) {
  for (int node = 0; node < x->e->n; ++node) {
    if (!x->uniform[node] && fa_ref_expr_row_at_once(x, p, node)) continue;
    for (int lane = 0; lane < (x->uniform[node] ? 1 : p->n); ++lane) {
      const fa_lane r = node_lane(x, p, node, lane);
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
  const int axis = bad_axis(x, n, lane, &unsure);
  if (axis < 0 && n->type == FA_EXPR_INT)
    snprintf(text, size, "the buffer holds a number beyond int32 there");
  else if (axis < 0)
    snprintf(text, size, "the buffer holds no finite number there");
  else
    snprintf(text, size, "index %d is %.0f, not in 0 .. %lld", axis, get(x, n->arg[axis], lane).v,
             (long long)t->shape[axis] - 1);
}

/* Follows the tree from the root to the operation that rounding decides. */
static int undecided(const fa_ref_expr *x, int lane) {
  int node = x->e->root;
  for (int k = 0; k < x->e->node[node].n_args; ++k) {
    const int part = x->e->node[node].arg[k];
    const double e = get(x, part, lane).e;
    if (x->e->node[part].type == FA_EXPR_FLOAT ? e < INFINITY : e == 0) continue;
    node = part;
    k = -1;
  }
  return node;
}

void fa_ref_expr_explain(const fa_ref_expr *x, int lane, char *text, size_t size) {
  const fa_lane root = get(x, x->e->root, lane);
  const int node = root.fault ? root.fault - 1 : undecided(x, lane);
  const fa_expr_node *n = &x->e->node[node];
  char what[160], a[32] = "", b[32] = "";
  if (n->n_args > 0) snprintf(a, sizeof a, "%.10g", get(x, n->arg[0], lane).v);
  if (n->n_args > 1) snprintf(b, sizeof b, "%.10g", get(x, n->arg[1], lane).v);
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
