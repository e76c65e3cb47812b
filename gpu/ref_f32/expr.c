/* Evaluates every node of an expression over a row of pairs. */
#include "gpu/ref_f32/expr.h"

#include <stdlib.h>
#include <string.h>

enum { N = FA_F32_PAIRS };

fa_status fa_f32_expr_init(fa_f32_expr *x, const fa_expr *e, const fa_tensors *in, fa_error *err) {
  const size_t n = (size_t)e->n * N + 1;
  *x = (fa_f32_expr){
      .e = e, .in = in, .row = calloc(n, sizeof *x->row), .element = calloc(n, sizeof *x->element)};
  if (x->row && x->element) return FA_OK;
  fa_f32_expr_free(x);
  return fa_fail(err, FA_ERR_MEMORY, "out of memory for an expression");
}

void fa_f32_expr_free(fa_f32_expr *x) {
  free(x->row);
  free(x->element);
  *x = (fa_f32_expr){0};
}

/* ---- nodes ---- */

static void load_row(fa_f32_expr *x, int node, int n) {
  const fa_expr_node *t = &x->e->node[node];
  const fa_tensor *buffer = &x->in->t[FA_T_BUFFER_0 + t->buffer];
  for (int lane = 0; lane < n; ++lane) {
    int64_t offset = 0, element = 0;
    for (int k = 0; k < t->n_args; ++k) {
      const int32_t at = fa_scalar_index(fa_f32_expr_row(x, t->arg[k])[lane].i, buffer->shape[k]);
      offset += at * buffer->stride[k];
      element = element * buffer->shape[k] + at;
    }
    const char *at_element = buffer->data + offset * (int64_t)fa_dtype_size(buffer->dtype);
    x->row[(int64_t)node * N + lane] = fa_scalar_load(buffer->dtype, at_element);
    x->element[(int64_t)node * N + lane] = element;
  }
}

static fa_f32_word leaf(const fa_expr_node *t, const fa_f32_pairs *p, int lane) {
  switch (t->op) {
  case FA_EXPR_SCORE:
    return (fa_f32_word){.f = p->score[lane]};
  case FA_EXPR_B:
    return (fa_f32_word){.i = (int32_t)p->b};
  case FA_EXPR_H:
    return (fa_f32_word){.i = (int32_t)p->h};
  case FA_EXPR_Q_IDX:
    return (fa_f32_word){.i = (int32_t)p->i};
  case FA_EXPR_KV_IDX:
    return (fa_f32_word){.i = (int32_t)(p->j0 + lane)};
  case FA_EXPR_SEQLEN_Q:
    return (fa_f32_word){.i = (int32_t)p->seqlen_q};
  case FA_EXPR_SEQLEN_K:
    return (fa_f32_word){.i = (int32_t)p->seqlen_k};
  default:
    if (t->type == FA_EXPR_FLOAT) return (fa_f32_word){.f = (float)t->value};
    return (fa_f32_word){.i = (int32_t)t->value};
  }
}

static void node_row(fa_f32_expr *x, const fa_f32_pairs *p, int node) {
  const fa_expr_node *t = &x->e->node[node];
  fa_f32_word *to = x->row + (int64_t)node * N;
  if (t->op == FA_EXPR_LOAD) {
    load_row(x, node, p->n);
    return;
  }
  const fa_f32_word *a = t->n_args > 0 ? fa_f32_expr_row(x, t->arg[0]) : NULL;
  const fa_f32_word *b = t->n_args > 1 ? fa_f32_expr_row(x, t->arg[1]) : NULL;
  const fa_f32_word *c = t->n_args > 2 ? fa_f32_expr_row(x, t->arg[2]) : NULL;
  const bool floats = a && x->e->node[t->arg[0]].type == FA_EXPR_FLOAT;
  for (int lane = 0; lane < p->n; ++lane)
    to[lane] = c   ? (a[lane].i ? b[lane] : c[lane])
               : b ? fa_scalar_binary(t->op, t->type, floats, a[lane], b[lane])
               : a ? fa_scalar_unary(t->op, floats, a[lane])
                   : leaf(t, p, lane);
}

void fa_f32_expr_eval(fa_f32_expr *x, const fa_f32_pairs *p) {
  for (int node = 0; node < x->e->n; ++node) node_row(x, p, node);
}
