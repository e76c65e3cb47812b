/* Every node of an expression over a row of pairs. */
#include "gpu/expr_f32.h"

#include <math.h>
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

/* ---- integers: wrapping ---- */

static int32_t wrap(uint32_t x) {
  int32_t y;
  memcpy(&y, &x, sizeof y);
  return y;
}

static int32_t divide(int32_t a, int32_t b) {
  if (b == 0) return 0;
  return b == -1 ? wrap(0u - (uint32_t)a) : a / b;
}

static int32_t remainder_of(int32_t a, int32_t b) {
  return b == 0 || b == -1 ? 0 : a % b;
}

static int32_t int_binary(fa_expr_op op, int32_t a, int32_t b) {
  switch (op) {
  case FA_EXPR_ADD:
    return wrap((uint32_t)a + (uint32_t)b);
  case FA_EXPR_SUB:
    return wrap((uint32_t)a - (uint32_t)b);
  case FA_EXPR_MUL:
    return wrap((uint32_t)a * (uint32_t)b);
  case FA_EXPR_DIV:
    return divide(a, b);
  case FA_EXPR_REM:
    return remainder_of(a, b);
  case FA_EXPR_MIN:
    return a < b ? a : b;
  case FA_EXPR_MAX:
    return a > b ? a : b;
  case FA_EXPR_LT:
    return a < b;
  case FA_EXPR_LE:
    return a <= b;
  case FA_EXPR_GT:
    return a > b;
  case FA_EXPR_GE:
    return a >= b;
  case FA_EXPR_EQ:
    return a == b;
  case FA_EXPR_NE:
    return a != b;
  case FA_EXPR_AND:
    return a && b;
  default:
    return a || b;
  }
}

/* ---- floats ---- */

static float float_binary(fa_expr_op op, float a, float b) {
  switch (op) {
  case FA_EXPR_ADD:
    return a + b;
  case FA_EXPR_SUB:
    return a - b;
  case FA_EXPR_MUL:
    return a * b;
  case FA_EXPR_DIV:
    return a / b;
  case FA_EXPR_MIN:
    return fminf(a, b);
  default:
    return fmaxf(a, b);
  }
}

static bool float_compare(fa_expr_op op, float a, float b) {
  switch (op) {
  case FA_EXPR_LT:
    return a < b;
  case FA_EXPR_LE:
    return a <= b;
  case FA_EXPR_GT:
    return a > b;
  case FA_EXPR_GE:
    return a >= b;
  case FA_EXPR_EQ:
    return a == b;
  default:
    return a != b;
  }
}

static float float_unary(fa_expr_op op, float a) {
  switch (op) {
  case FA_EXPR_NEG:
    return -a;
  case FA_EXPR_ABS:
    return fabsf(a);
  case FA_EXPR_EXP:
    return expf(a);
  case FA_EXPR_LOG:
    return logf(a);
  case FA_EXPR_SQRT:
    return sqrtf(a);
  case FA_EXPR_TANH:
    return tanhf(a);
  case FA_EXPR_SIN:
    return sinf(a);
  case FA_EXPR_COS:
    return cosf(a);
  default:
    return floorf(a);
  }
}

/* ---- nodes ---- */

static int32_t index_in(int32_t x, int64_t n) {
  return x < 0 ? 0 : x >= n ? (int32_t)(n - 1) : x;
}

static void load_row(fa_f32_expr *x, int node, int n) {
  const fa_expr_node *t = &x->e->node[node];
  const fa_tensor *buffer = &x->in->t[FA_T_BUFFER_0 + t->buffer];
  for (int lane = 0; lane < n; ++lane) {
    int64_t offset = 0, element = 0;
    for (int k = 0; k < t->n_args; ++k) {
      const int32_t at = index_in(fa_f32_expr_row(x, t->arg[k])[lane].i, buffer->shape[k]);
      offset += at * buffer->stride[k];
      element = element * buffer->shape[k] + at;
    }
    memcpy(&x->row[(int64_t)node * N + lane], buffer->data + offset * 4, 4); /* f32 or i32 */
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

static fa_f32_word unary(const fa_expr_node *t, fa_f32_word a) {
  switch (t->op) {
  case FA_EXPR_TO_BOOL:
    return (fa_f32_word){.i = a.i != 0};
  case FA_EXPR_TO_INT:
    return a;
  case FA_EXPR_TO_FLOAT:
    return (fa_f32_word){.f = (float)a.i};
  case FA_EXPR_NOT:
    return (fa_f32_word){.i = !a.i};
  default:
    break;
  }
  if (t->type == FA_EXPR_FLOAT) return (fa_f32_word){.f = float_unary(t->op, a.f)};
  return (fa_f32_word){.i = t->op == FA_EXPR_ABS && a.i >= 0 ? a.i : wrap(0u - (uint32_t)a.i)};
}

static fa_f32_word binary(const fa_expr_node *t, bool floats, fa_f32_word a, fa_f32_word b) {
  if (!floats) return (fa_f32_word){.i = int_binary(t->op, a.i, b.i)};
  if (t->type == FA_EXPR_BOOL) return (fa_f32_word){.i = float_compare(t->op, a.f, b.f)};
  return (fa_f32_word){.f = float_binary(t->op, a.f, b.f)};
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
               : b ? binary(t, floats, a[lane], b[lane])
               : a ? unary(t, a[lane])
                   : leaf(t, p, lane);
}

void fa_f32_expr_eval(fa_f32_expr *x, const fa_f32_pairs *p) {
  for (int node = 0; node < x->e->n; ++node) node_row(x, p, node);
}
