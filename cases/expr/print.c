/* A tree as canonical text. */
#include "cases/base/json.h"
#include "cases/expr/ast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct printer {
  const fa_expr *e;
  const fa_capture *captures;
  char *text;
  size_t n, capacity;
  bool failed;
} printer;

static void put(printer *p, const char *text) {
  const size_t more = strlen(text);
  if (p->n + more + 1 > p->capacity) {
    const size_t capacity = 2 * p->capacity + more + 64;
    char *grown = p->failed ? NULL : realloc(p->text, capacity);
    if (!grown) {
      p->failed = true;
      return;
    }
    p->text = grown;
    p->capacity = capacity;
  }
  memcpy(p->text + p->n, text, more + 1);
  p->n += more;
}

static void put_constant(printer *p, const fa_expr_node *x) {
  char text[64];
  if (x->type == FA_EXPR_BOOL) {
    put(p, x->value != 0 ? "true" : "false");
  } else if (x->type == FA_EXPR_INT) {
    snprintf(text, sizeof text, "%.0f", x->value);
    put(p, text);
  } else if (isinf(x->value)) {
    put(p, "inf");
  } else {
    fa_json_number_text(text, sizeof text, x->value, true);
    put(p, text);
    if (!strpbrk(text, ".e")) put(p, ".0");
  }
}

/* Precedence of a node's text: ?: is lowest, then the binary operators, prefix operators, and all else. */
enum { TERNARY = 0, UNARY = 11, PRIMARY = 12 };

static int strength_of(fa_expr_op op) {
  switch (op) {
  case FA_EXPR_SELECT:
    return TERNARY;
  case FA_EXPR_OR:
    return 1;
  case FA_EXPR_AND:
    return 2;
  case FA_EXPR_BITOR:
    return 3;
  case FA_EXPR_BITXOR:
    return 4;
  case FA_EXPR_BITAND:
    return 5;
  case FA_EXPR_EQ:
  case FA_EXPR_NE:
    return 6;
  case FA_EXPR_LT:
  case FA_EXPR_LE:
  case FA_EXPR_GT:
  case FA_EXPR_GE:
    return 7;
  case FA_EXPR_SHL:
  case FA_EXPR_SHR:
    return 8;
  case FA_EXPR_ADD:
  case FA_EXPR_SUB:
    return 9;
  case FA_EXPR_MUL:
  case FA_EXPR_DIV:
  case FA_EXPR_REM:
    return 10;
  case FA_EXPR_NEG:
  case FA_EXPR_NOT:
  case FA_EXPR_BITNOT:
    return UNARY;
  default:
    return PRIMARY;
  }
}

static void put_node(printer *p, int index, int least);

static void put_arguments(printer *p, const fa_expr_node *x, const char *open, const char *close) {
  put(p, open);
  for (int k = 0; k < x->n_args; ++k) {
    if (k) put(p, ", ");
    put_node(p, x->arg[k], TERNARY);
  }
  put(p, close);
}

/* What an operand needs so that it stands without parentheses: & ^ | take no bare comparison. */
static int least_for(const printer *p, const fa_expr_node *x, int k, int own) {
  const fa_expr_node *operand = &p->e->node[x->arg[k]];
  while (fa_expr_is_conversion(operand->op)) operand = &p->e->node[operand->arg[0]];
  if (fa_expr_is_bitwise(x->op) && fa_expr_is_comparison(operand->op)) return PRIMARY;
  const bool chains = !fa_expr_is_comparison(x->op); /* comparisons do not chain */
  return k == 0 && chains ? own : own + 1;
}

static void put_operator(printer *p, const fa_expr_node *x, int own) {
  if (x->op == FA_EXPR_SELECT) {
    put_node(p, x->arg[0], own + 1);
    put(p, " ? ");
    put_node(p, x->arg[1], TERNARY);
    put(p, " : ");
    put_node(p, x->arg[2], TERNARY);
  } else if (own == UNARY) {
    put(p, fa_expr_op_text(x->op));
    put_node(p, x->arg[0], UNARY);
  } else {
    put_node(p, x->arg[0], least_for(p, x, 0, own));
    put(p, " ");
    put(p, fa_expr_op_text(x->op));
    put(p, " ");
    put_node(p, x->arg[1], least_for(p, x, 1, own));
  }
}

/* Parenthesised if its precedence is below `least`. */
static void put_node(printer *p, int index, int least) {
  const fa_expr_node *x = &p->e->node[index];
  while (fa_expr_is_conversion(x->op)) x = &p->e->node[x->arg[0]];
  const int own = strength_of(x->op);
  if (own < least) put(p, "(");
  if (x->op == FA_EXPR_CONST) {
    put_constant(p, x);
  } else if (x->op == FA_EXPR_LOAD) {
    put(p, p->captures[x->buffer].name);
    if (x->n_args) put_arguments(p, x, "[", "]");
  } else {
    if (own == PRIMARY) put(p, fa_expr_op_text(x->op));
    if (own == PRIMARY && x->n_args) put_arguments(p, x, "(", ")");
    if (own != PRIMARY) put_operator(p, x, own);
  }
  if (own < least) put(p, ")");
}

char *fa_expr_print(const fa_expr *e, const fa_capture *captures) {
  printer p = {.e = e, .captures = captures};
  put(&p, "");
  if (e->n > 0) put_node(&p, e->root, TERNARY);
  if (!p.failed) return p.text;
  free(p.text);
  return NULL;
}
