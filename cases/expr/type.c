/* Builds nodes with checked types and converted arguments. As in C, bool becomes int and int becomes float
 * where the other operand requires it; a float is never converted implicitly. */
#include "cases/expr/parts.h"

#include <stdio.h>

static const char *type_name(fa_expr_type t) {
  static const char *const names[] = {"a condition", "an int", "a float"};
  return names[t];
}

/* What an element is in an expression. */
static fa_expr_type type_of_element(const fa_capture *c) {
  if (fa_capture_is_int(c)) return FA_EXPR_INT;
  return c->dtype == FA_BOOL ? FA_EXPR_BOOL : FA_EXPR_FLOAT;
}

static fa_expr_type type_of(const fa_expr_parser *p, int x) {
  return p->e.node[x].type;
}

static int add(fa_expr_parser *p, fa_expr_node node) {
  if (p->status != FA_OK) return -1;
  if (p->e.n >= FA_EXPR_MAX_NODES)
    return fa_expr_fail(p, (size_t)node.at, "more than %d operations, names and numbers", FA_EXPR_MAX_NODES);
  const int x = fa_expr_add(&p->e, node);
  if (x < 0) {
    p->status = fa_fail(p->err, FA_ERR_MEMORY, "out of memory");
    return -1;
  }
  if (p->e.node[x].height > FA_EXPR_MAX_HEIGHT)
    return fa_expr_fail(p, (size_t)node.at, "more than %d operations on top of each other",
                        FA_EXPR_MAX_HEIGHT);
  return x;
}

int fa_expr_leaf(fa_expr_parser *p, size_t at, fa_expr_op op, fa_expr_type type, double value) {
  return add(p, (fa_expr_node){.op = op, .type = type, .at = (int)at, .value = value});
}

static int convert(fa_expr_parser *p, int x, fa_expr_op op, fa_expr_type to) {
  return add(p, (fa_expr_node){.op = op, .type = to, .at = p->e.node[x].at, .n_args = 1, .arg = {x}});
}

static int to_int(fa_expr_parser *p, int x) {
  return type_of(p, x) == FA_EXPR_BOOL ? convert(p, x, FA_EXPR_TO_INT, FA_EXPR_INT) : x;
}

static int to_float(fa_expr_parser *p, int x) {
  x = to_int(p, x);
  return x >= 0 && type_of(p, x) == FA_EXPR_INT ? convert(p, x, FA_EXPR_TO_FLOAT, FA_EXPR_FLOAT) : x;
}

/* Converts to a condition; `what` names the operator that needs it, for messages. */
static int to_bool(fa_expr_parser *p, int x, const char *what) {
  if (type_of(p, x) == FA_EXPR_FLOAT)
    return fa_expr_fail(p, (size_t)p->e.node[x].at, "%s is a float; a comparison makes it a condition", what);
  return type_of(p, x) == FA_EXPR_INT ? convert(p, x, FA_EXPR_TO_BOOL, FA_EXPR_BOOL) : x;
}

static int to_type(fa_expr_parser *p, int x, fa_expr_type type) {
  if (type == FA_EXPR_FLOAT) return to_float(p, x);
  return type == FA_EXPR_INT ? to_int(p, x) : x;
}

int fa_expr_unary(fa_expr_parser *p, size_t at, fa_expr_op op, int x) {
  if (x < 0) return -1;
  if (op == FA_EXPR_BITNOT && type_of(p, x) == FA_EXPR_FLOAT)
    return fa_expr_fail(p, at, "~ takes ints or conditions; int(x) makes a float an int");
  if (op == FA_EXPR_BITNOT && type_of(p, x) == FA_EXPR_BOOL) op = FA_EXPR_NOT;
  if (op == FA_EXPR_NOT)
    x = to_bool(p, x, "the operand of !");
  else if (op == FA_EXPR_NEG || op == FA_EXPR_ABS || op == FA_EXPR_AS_INT)
    x = to_int(p, x);
  else if (op != FA_EXPR_BITNOT)
    x = to_float(p, x);
  if (x < 0) return -1;
  const fa_expr_type type = op == FA_EXPR_AS_INT ? FA_EXPR_INT : type_of(p, x);
  return add(p, (fa_expr_node){.op = op, .type = type, .at = (int)at, .n_args = 1, .arg = {x}});
}

/* Operators of ints alone, and what to write for floats. */
static const char *const int_only[FA_EXPR_N_OPS] = {
    [FA_EXPR_REM] = "% takes ints; of floats, x - y * floor(x / y)",
    [FA_EXPR_FLOORDIV] = "floordiv takes ints; of floats, floor(x / y)",
    [FA_EXPR_FLOORMOD] = "floormod takes ints; of floats, x - y * floor(x / y)",
    [FA_EXPR_SHL] = "<< takes ints; of floats, x * pow(2.0, n)",
    [FA_EXPR_SHR] = ">> takes ints; of floats, x / pow(2.0, n)",
    [FA_EXPR_BITAND] = "& takes ints or conditions; int(x) makes a float an int",
    [FA_EXPR_BITXOR] = "^ takes ints or conditions, and is no power; pow(x, y) is",
    [FA_EXPR_BITOR] = "| takes ints or conditions; int(x) makes a float an int",
};

/* The type that both operands get. */
static fa_expr_type operand_type(fa_expr_op op, fa_expr_type wider) {
  if (op == FA_EXPR_POW) return FA_EXPR_FLOAT;
  if (wider == FA_EXPR_BOOL && !fa_expr_is_bitwise(op)) return FA_EXPR_INT;
  return wider;
}

int fa_expr_binary(fa_expr_parser *p, size_t at, fa_expr_op op, int x, int y) {
  if (x < 0 || y < 0) return -1;
  fa_expr_type type = type_of(p, x) > type_of(p, y) ? type_of(p, x) : type_of(p, y);
  if (op == FA_EXPR_AND || op == FA_EXPR_OR) {
    char what[32];
    snprintf(what, sizeof what, "an operand of %s", fa_expr_op_text(op));
    x = to_bool(p, x, what);
    y = x < 0 ? -1 : to_bool(p, y, what);
    type = FA_EXPR_BOOL;
  } else {
    type = operand_type(op, type);
    if (int_only[op] && type == FA_EXPR_FLOAT) return fa_expr_fail(p, at, "%s", int_only[op]);
    x = to_type(p, x, type);
    y = x < 0 ? -1 : to_type(p, y, type);
    if (fa_expr_is_comparison(op)) type = FA_EXPR_BOOL;
  }
  if (x < 0 || y < 0) return -1;
  return add(p, (fa_expr_node){.op = op, .type = type, .at = (int)at, .n_args = 2, .arg = {x, y}});
}

int fa_expr_select(fa_expr_parser *p, size_t at, int condition, int x, int y) {
  if (condition < 0 || x < 0 || y < 0) return -1;
  const fa_expr_type type = type_of(p, x) > type_of(p, y) ? type_of(p, x) : type_of(p, y);
  condition = to_bool(p, condition, "what stands before ?");
  x = condition < 0 ? -1 : to_type(p, x, type);
  y = x < 0 ? -1 : to_type(p, y, type);
  if (y < 0) return -1;
  return add(p,
             (fa_expr_node){
                 .op = FA_EXPR_SELECT, .type = type, .at = (int)at, .n_args = 3, .arg = {condition, x, y}});
}

int fa_expr_load(fa_expr_parser *p, size_t at, int buffer, const int *index, const size_t *index_at, int n) {
  const fa_capture *c = &p->captures[buffer];
  if (n != c->rank)
    return fa_expr_fail(p, at, "buffer \"%s\" has %d axes, and %d indices here", c->name, c->rank, n);
  fa_expr_node node = {
      .op = FA_EXPR_LOAD, .type = type_of_element(c), .at = (int)at, .n_args = n, .buffer = buffer};
  for (int k = 0; k < n; ++k) {
    if (type_of(p, index[k]) == FA_EXPR_FLOAT)
      return fa_expr_fail(p, index_at[k], "index %d of \"%s\" is a float; indices are ints", k, c->name);
    if ((node.arg[k] = to_int(p, index[k])) < 0) return -1;
  }
  return add(p, node);
}

int fa_expr_result(fa_expr_parser *p, int x) {
  if (x < 0) return -1;
  if (p->kind == FA_EXPR_SCORE_MOD) return to_float(p, x);
  if (type_of(p, x) != FA_EXPR_FLOAT) return to_bool(p, x, "mask_mod");
  return fa_expr_fail(p, (size_t)p->e.node[x].at, "mask_mod gives %s; it must give a condition",
                      type_name(FA_EXPR_FLOAT));
}
