/* What a node of an expression comes to in one lane: its arguments were computed before it. The judge on a device compiles the
 * same lines, with rows of its own length and buffers in memory of its own. */
#ifndef FA_REF_MODS_EXPR_NODE_H
#define FA_REF_MODS_EXPR_NODE_H

#include "ref/mods/lane_floats.h"

#ifndef FA_EXPR_STRIDE /* lanes of a node's row; how a buffer is read */
#define FA_EXPR_STRIDE FA_EXPR_LANES
#define fa_expr_fetch fa_tensor_get
#endif

FA_SHARED fa_lane fa_expr_lane(const fa_ref_expr *x, int node, int lane) {
  const int64_t at = (int64_t)node * FA_EXPR_STRIDE + lane;
  return fa_lane_of(x->value[at], x->error[at], x->fault[at]);
}

/* The axis whose index is out of range, or -1; *unsure if rounding may decide an index. */
FA_SHARED int fa_expr_bad_axis(const fa_ref_expr *x, const fa_expr_node *n, int lane, bool *unsure) {
  const fa_tensor *t = &x->in->t[FA_T_BUFFER_0 + n->buffer];
  int bad = -1;
  *unsure = false;
  for (int k = n->n_args - 1; k >= 0; --k) {
    const fa_lane index = fa_expr_lane(x, n->arg[k], lane);
    if (index.e > 0) *unsure = true;
    if (!(index.v >= 0 && index.v < (double)t->shape[k])) bad = k;
  }
  return bad;
}

/* Row-major index of the buffer's element that an FA_EXPR_LOAD reads in this lane; its indices are in range. */
FA_SHARED int64_t fa_expr_element(const fa_ref_expr *x, int node, int lane) {
  const fa_expr_node *n = &x->e->node[node];
  const fa_tensor *t = &x->in->t[FA_T_BUFFER_0 + n->buffer];
  int64_t at = 0;
  for (int k = 0; k < n->n_args; ++k) at = at * t->shape[k] + (int64_t)fa_expr_lane(x, n->arg[k], lane).v;
  return at;
}

/* An element of i64 that is no int of expressions, which have 32 bits. */
FA_SHARED bool is_beyond(const fa_expr_node *n, double v) {
  return n->type == FA_EXPR_INT && !(v >= INT32_MIN && v <= INT32_MAX);
}

FA_SHARED fa_lane load_lane(const fa_ref_expr *x, int node, int lane) {
  const fa_expr_node *n = &x->e->node[node];
  const fa_tensor *t = &x->in->t[FA_T_BUFFER_0 + n->buffer];
  bool unsure;
  const double lost = n->type == FA_EXPR_FLOAT ? INFINITY : 1;
  if (fa_expr_bad_axis(x, n, lane, &unsure) >= 0) return fa_lane_of(0, lost, unsure ? 0 : node + 1);
  int64_t index[FA_MAX_RANK] = {0};
  for (int k = 0; k < n->n_args; ++k) index[k] = (int64_t)fa_expr_lane(x, n->arg[k], lane).v;
  const double v = fa_expr_fetch(t, index);
  if (isnan(v) || isinf(v) || is_beyond(n, v)) return fa_lane_of(0, lost, unsure ? 0 : node + 1);
  return fa_lane_of(v, unsure ? lost : 0, 0);
}

FA_SHARED fa_lane leaf_lane(const fa_ref_expr *x, const fa_ref_pairs *p, int node, int lane) {
  const fa_expr_node *n = &x->e->node[node];
  switch (n->op) {
  case FA_EXPR_SCORE:
    return fa_lane_of(p->score[lane], p->error ? p->error[lane] : 0, 0);
  case FA_EXPR_B:
    return fa_lane_of((double)p->b, 0, 0);
  case FA_EXPR_H:
    return fa_lane_of((double)p->h, 0, 0);
  case FA_EXPR_Q_IDX:
    return fa_lane_of((double)p->i, 0, 0);
  case FA_EXPR_KV_IDX:
    return fa_lane_of((double)(p->j0 + lane), 0, 0);
  case FA_EXPR_SEQLEN_Q:
    return fa_lane_of((double)p->seqlen_q, 0, 0);
  case FA_EXPR_SEQLEN_K:
    return fa_lane_of((double)p->seqlen_k, 0, 0);
  default:
    return fa_lane_of(n->value, 0, 0);
  }
}

FA_SHARED fa_lane unary_lane(const fa_ref_expr *x, const fa_expr_node *n, fa_lane a, int node) {
  const bool floats = x->e->node[n->arg[0]].type == FA_EXPR_FLOAT;
  switch (n->op) {
  case FA_EXPR_TO_BOOL:
    return fa_lane_of(a.v != 0, a.e, 0);
  case FA_EXPR_TO_INT:
    return a;
  case FA_EXPR_TO_FLOAT:
    return fa_lane_to_float(a);
  case FA_EXPR_NOT:
    return fa_lane_of(a.v == 0, a.e, 0);
  case FA_EXPR_AS_INT:
    return floats ? fa_lane_to_int(a, node) : a;
  default:
    return floats ? fa_lane_float_unary(n->op, a, x->fast, node) : fa_lane_int_unary(n->op, a, node);
  }
}

FA_SHARED fa_lane fa_expr_node_lane(const fa_ref_expr *x, const fa_ref_pairs *p, int node, int lane) {
  const fa_expr_node *n = &x->e->node[node];
  if (n->n_args == 0 && n->op != FA_EXPR_LOAD) return leaf_lane(x, p, node, lane);
  const fa_lane a = n->n_args ? fa_expr_lane(x, n->arg[0], lane) : fa_lane_of(0, 0, 0);
  if (n->op == FA_EXPR_AND || n->op == FA_EXPR_OR)
    return fa_lane_logical(n->op, a, fa_expr_lane(x, n->arg[1], lane));
  if (n->op == FA_EXPR_SELECT)
    return fa_lane_select(a, fa_expr_lane(x, n->arg[1], lane), fa_expr_lane(x, n->arg[2], lane),
                          n->type == FA_EXPR_FLOAT);
  for (int k = 0; k < n->n_args; ++k) {
    const fa_lane part = fa_expr_lane(x, n->arg[k], lane);
    if (part.fault) return part;
  }
  if (n->op == FA_EXPR_LOAD) return load_lane(x, node, lane);
  if (n->n_args == 1) return unary_lane(x, n, a, node);
  const fa_lane b = fa_expr_lane(x, n->arg[1], lane);
  const bool floats = x->e->node[n->arg[0]].type == FA_EXPR_FLOAT;
  if (n->type == FA_EXPR_BOOL)
    return fa_expr_is_bitwise(n->op) ? fa_lane_bits(n->op, a, b) : fa_lane_compare(n->op, a, b, floats);
  return floats ? fa_lane_float_binary(n->op, a, b, node) : fa_lane_int_binary(n->op, a, b, node);
}

#endif
