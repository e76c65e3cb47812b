/* Expression trees: nodes, comparison, and the meaning of names. */
#include "cases/expr/ast.h"

#include <stdlib.h>
#include <string.h>

static const char *const texts[FA_EXPR_N_OPS] = {
    [FA_EXPR_CONST] = "",
    [FA_EXPR_SCORE] = "score",
    [FA_EXPR_B] = "b",
    [FA_EXPR_H] = "h",
    [FA_EXPR_Q_IDX] = "q_idx",
    [FA_EXPR_KV_IDX] = "kv_idx",
    [FA_EXPR_SEQLEN_Q] = "seqlen_q",
    [FA_EXPR_SEQLEN_K] = "seqlen_k",
    [FA_EXPR_LOAD] = "[]",
    [FA_EXPR_TO_BOOL] = "",
    [FA_EXPR_TO_INT] = "",
    [FA_EXPR_TO_FLOAT] = "",
    [FA_EXPR_NEG] = "-",
    [FA_EXPR_NOT] = "!",
    [FA_EXPR_BITNOT] = "~",
    [FA_EXPR_ABS] = "abs",
    [FA_EXPR_EXP] = "exp",
    [FA_EXPR_LOG] = "log",
    [FA_EXPR_SQRT] = "sqrt",
    [FA_EXPR_TANH] = "tanh",
    [FA_EXPR_SIN] = "sin",
    [FA_EXPR_COS] = "cos",
    [FA_EXPR_FLOOR] = "floor",
    [FA_EXPR_CEIL] = "ceil",
    [FA_EXPR_ERF] = "erf",
    [FA_EXPR_SIGMOID] = "sigmoid",
    [FA_EXPR_AS_INT] = "int",
    [FA_EXPR_AS_FLOAT] = "float",
    [FA_EXPR_MIN] = "min",
    [FA_EXPR_MAX] = "max",
    [FA_EXPR_POW] = "pow",
    [FA_EXPR_FLOORDIV] = "floordiv",
    [FA_EXPR_FLOORMOD] = "floormod",
    [FA_EXPR_MUL] = "*",
    [FA_EXPR_DIV] = "/",
    [FA_EXPR_REM] = "%",
    [FA_EXPR_ADD] = "+",
    [FA_EXPR_SUB] = "-",
    [FA_EXPR_SHL] = "<<",
    [FA_EXPR_SHR] = ">>",
    [FA_EXPR_LT] = "<",
    [FA_EXPR_LE] = "<=",
    [FA_EXPR_GT] = ">",
    [FA_EXPR_GE] = ">=",
    [FA_EXPR_EQ] = "==",
    [FA_EXPR_NE] = "!=",
    [FA_EXPR_BITAND] = "&",
    [FA_EXPR_BITXOR] = "^",
    [FA_EXPR_BITOR] = "|",
    [FA_EXPR_AND] = "&&",
    [FA_EXPR_OR] = "||",
    [FA_EXPR_SELECT] = "?:",
};

const char *fa_expr_op_text(fa_expr_op op) {
  FA_ASSERT((unsigned)op < FA_EXPR_N_OPS);
  return texts[op];
}

bool fa_expr_is_reserved(const char *name) {
  static const char *const constants[] = {"true", "false", "inf", "where"};
  for (size_t i = 0; i < sizeof constants / sizeof *constants; ++i)
    if (strcmp(name, constants[i]) == 0) return true;
  for (int op = 0; op < FA_EXPR_N_OPS; ++op)
    if (*texts[op] && strcmp(name, texts[op]) == 0) return true;
  return false;
}

int fa_expr_add(fa_expr *e, fa_expr_node node) {
  if (e->n == e->capacity) {
    const int capacity = e->capacity ? 2 * e->capacity : 32;
    fa_expr_node *grown = realloc(e->node, (size_t)capacity * sizeof *grown);
    if (!grown) return -1;
    e->node = grown;
    e->capacity = capacity;
  }
  node.height = 0;
  for (int k = 0; k < node.n_args; ++k) {
    FA_ASSERT(node.arg[k] >= 0 && node.arg[k] < e->n);
    if (e->node[node.arg[k]].height >= node.height) node.height = e->node[node.arg[k]].height + 1;
  }
  e->node[e->n] = node;
  return e->n++;
}

void fa_expr_free(fa_expr *e) {
  free(e->node);
  *e = (fa_expr){0};
}

fa_status fa_expr_copy(fa_expr *dst, const fa_expr *src) {
  *dst = (fa_expr){0};
  if (src->n == 0) return FA_OK;
  dst->node = malloc((size_t)src->n * sizeof *dst->node);
  if (!dst->node) return FA_ERR_MEMORY;
  memcpy(dst->node, src->node, (size_t)src->n * sizeof *dst->node);
  dst->n = dst->capacity = src->n;
  dst->root = src->root;
  return FA_OK;
}

bool fa_expr_equal(const fa_expr *a, const fa_expr *b) {
  if (a->n != b->n || (a->n > 0 && a->root != b->root)) return false;
  for (int i = 0; i < a->n; ++i) {
    const fa_expr_node *x = &a->node[i], *y = &b->node[i];
    if (x->op != y->op || x->type != y->type || x->n_args != y->n_args) return false;
    for (int k = 0; k < x->n_args; ++k)
      if (x->arg[k] != y->arg[k]) return false;
    if (x->op == FA_EXPR_LOAD && x->buffer != y->buffer) return false;
    if (x->op == FA_EXPR_CONST && memcmp(&x->value, &y->value, sizeof x->value) != 0) return false;
  }
  return true;
}

bool fa_expr_uses(const fa_expr *e, fa_expr_op op) {
  for (int i = 0; i < e->n; ++i)
    if (e->node[i].op == op) return true;
  return false;
}

bool fa_expr_reads(const fa_expr *e, int buffer) {
  for (int i = 0; i < e->n; ++i)
    if (e->node[i].op == FA_EXPR_LOAD && e->node[i].buffer == buffer) return true;
  return false;
}
