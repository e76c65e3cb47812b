/* Tokens to a tree: recursive descent with C's operator precedence. */
#include "cases/expr/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int parse_conditional(fa_expr_parser *p);

static bool enter(fa_expr_parser *p) {
  if (++p->depth <= FA_EXPR_MAX_DEPTH) return true;
  fa_expr_fail(p, p->token.at, "nested more than %d deep", FA_EXPR_MAX_DEPTH);
  return false;
}

/* Describes the current token for messages; a long token is truncated. */
static const char *found(const fa_expr_parser *p, char buffer[48]) {
  const fa_token *t = &p->token;
  if (t->kind == FA_TOKEN_END) return "the end";
  snprintf(buffer, 48, t->length > 32 ? "\"%.*s...\"" : "\"%.*s\"", t->length > 32 ? 32 : (int)t->length,
           p->text + t->at);
  return buffer;
}

static bool expect(fa_expr_parser *p, const char *sign, const char *why) {
  char buffer[48];
  if (fa_expr_is(p, sign)) return fa_expr_next(p);
  fa_expr_fail(p, p->token.at, "%s, '%s' %s", found(p, buffer), sign, why);
  return false;
}

/* ---- names ---- */

static const char functions[] =
    "abs min max exp log sqrt tanh sin cos floor ceil erf sigmoid pow floordiv floormod int float where";

static int unknown_name(fa_expr_parser *p) {
  char buffer[48], buffers[200] = "";
  for (int k = 0; k < p->n_captures; ++k) {
    const size_t used = strlen(buffers);
    snprintf(buffers + used, sizeof buffers - used, "%s%.63s", k ? ", " : "; buffers ", p->captures[k].name);
  }
  return fa_expr_fail(p, p->token.at,
                      "%s is unknown; known are %sb, h, q_idx, kv_idx, seqlen_q, seqlen_k, true, false, inf; "
                      "%s%s",
                      found(p, buffer), p->kind == FA_EXPR_SCORE_MOD ? "score, " : "", functions, buffers);
}

static int find_buffer(const fa_expr_parser *p) {
  for (int k = 0; k < p->n_captures; ++k)
    if (fa_expr_is(p, p->captures[k].name)) return k;
  return -1;
}

/* name[i, j] or name[i][j]; a buffer without axes is its name alone. The name is p->token. */
static int parse_load(fa_expr_parser *p, int buffer) {
  const size_t at = p->token.at;
  int index[FA_MAX_CAPTURE_RANK] = {0}, n = 0;
  size_t index_at[FA_MAX_CAPTURE_RANK] = {0};
  if (!fa_expr_next(p)) return -1;
  while (fa_expr_is(p, "[")) {
    do {
      if (!fa_expr_next(p)) return -1;
      if (n == FA_MAX_CAPTURE_RANK)
        return fa_expr_fail(p, p->token.at, "more than %d indices", FA_MAX_CAPTURE_RANK);
      index_at[n] = p->token.at;
      if ((index[n++] = parse_conditional(p)) < 0) return -1;
    } while (fa_expr_is(p, ","));
    if (!expect(p, "]", "must close the index")) return -1;
  }
  return fa_expr_load(p, at, buffer, index, index_at, n);
}

/* A function of one or two arguments; its name is p->token. */
static int parse_call(fa_expr_parser *p, fa_expr_op op) {
  const size_t at = p->token.at;
  const bool two = op >= FA_EXPR_MIN && op <= FA_EXPR_FLOORMOD;
  char what[64];
  int x, y = -1;
  snprintf(what, sizeof what, "must follow %s", fa_expr_op_text(op));
  if (!fa_expr_next(p) || !expect(p, "(", what)) return -1;
  if ((x = parse_conditional(p)) < 0) return -1;
  if (two) {
    snprintf(what, sizeof what, "must follow: %s takes two arguments", fa_expr_op_text(op));
    if (!expect(p, ",", what) || (y = parse_conditional(p)) < 0) return -1;
  }
  snprintf(what, sizeof what, "must close the argument%s of %s", two ? "s" : "", fa_expr_op_text(op));
  if (!expect(p, ")", what)) return -1;
  return two ? fa_expr_binary(p, at, op, x, y) : fa_expr_unary(p, at, op, x);
}

/* where(condition, this, that): another spelling of condition ? this : that. */
static int parse_where(fa_expr_parser *p) {
  const size_t at = p->token.at;
  const char *const three = "must follow: where takes a condition and two values";
  if (!fa_expr_next(p) || !expect(p, "(", "must follow where")) return -1;
  const int condition = parse_conditional(p);
  if (condition < 0 || !expect(p, ",", three)) return -1;
  const int yes = parse_conditional(p);
  if (yes < 0 || !expect(p, ",", three)) return -1;
  const int no = parse_conditional(p);
  if (no < 0 || !expect(p, ")", "must close the arguments of where")) return -1;
  return fa_expr_select(p, at, condition, yes, no);
}

static int parse_name(fa_expr_parser *p) {
  const size_t at = p->token.at;
  const int buffer = find_buffer(p);
  if (buffer >= 0) return parse_load(p, buffer);
  if (fa_expr_is(p, "where")) return parse_where(p);
  for (int op = FA_EXPR_ABS; op <= FA_EXPR_FLOORMOD; ++op)
    if (fa_expr_is(p, fa_expr_op_text((fa_expr_op)op))) return parse_call(p, (fa_expr_op)op);
  for (int op = FA_EXPR_SCORE; op <= FA_EXPR_SEQLEN_K; ++op) {
    if (!fa_expr_is(p, fa_expr_op_text((fa_expr_op)op))) continue;
    if (op == FA_EXPR_SCORE && p->kind == FA_EXPR_MASK_MOD)
      return fa_expr_fail(p, at, "mask_mod does not know the score; score_mod may give -inf");
    if (!fa_expr_next(p)) return -1;
    return fa_expr_leaf(p, at, (fa_expr_op)op, op == FA_EXPR_SCORE ? FA_EXPR_FLOAT : FA_EXPR_INT, 0);
  }
  const bool yes = fa_expr_is(p, "true"), no = fa_expr_is(p, "false");
  if (!yes && !no && !fa_expr_is(p, "inf")) return unknown_name(p);
  if (!fa_expr_next(p)) return -1;
  if (yes || no) return fa_expr_leaf(p, at, FA_EXPR_CONST, FA_EXPR_BOOL, yes);
  return fa_expr_leaf(p, at, FA_EXPR_CONST, FA_EXPR_FLOAT, (double)INFINITY);
}

/* ---- operators ---- */

static int parse_primary(fa_expr_parser *p) {
  const fa_token t = p->token;
  char buffer[48];
  int x;
  if (t.kind == FA_TOKEN_NAME) return parse_name(p);
  if (t.kind == FA_TOKEN_INT || t.kind == FA_TOKEN_FLOAT) {
    if (!fa_expr_next(p)) return -1;
    return fa_expr_leaf(p, t.at, FA_EXPR_CONST, t.kind == FA_TOKEN_INT ? FA_EXPR_INT : FA_EXPR_FLOAT,
                        t.value);
  }
  if (!fa_expr_is(p, "("))
    return fa_expr_fail(p, t.at, "%s, where a name, a number or '(' must stand", found(p, buffer));
  if (!fa_expr_next(p) || (x = parse_conditional(p)) < 0) return -1;
  if (!expect(p, ")", "must close the parenthesis")) return -1;
  return p->closed = x;
}

static int parse_unary(fa_expr_parser *p) {
  const size_t at = p->token.at;
  const bool minus = fa_expr_is(p, "-"), not = fa_expr_is(p, "!"), bits = fa_expr_is(p, "~");
  if (!minus && !not &&!bits && !fa_expr_is(p, "+")) return parse_primary(p);
  if (!enter(p) || !fa_expr_next(p)) return -1;
  int x = parse_unary(p);
  --p->depth;
  if (x < 0 || (!minus && !not &&!bits)) return x;
  return fa_expr_unary(p, at, minus ? FA_EXPR_NEG : bits ? FA_EXPR_BITNOT : FA_EXPR_NOT, x);
}

/* Precedence of the binary operator here; 0 if there is none. */
static int level_of(const fa_expr_parser *p, fa_expr_op *op) {
  static const struct {
    fa_expr_op op;
    int level;
  } table[] = {{FA_EXPR_OR, 1},     {FA_EXPR_AND, 2}, {FA_EXPR_BITOR, 3}, {FA_EXPR_BITXOR, 4},
               {FA_EXPR_BITAND, 5}, {FA_EXPR_EQ, 6},  {FA_EXPR_NE, 6},    {FA_EXPR_LT, 7},
               {FA_EXPR_LE, 7},     {FA_EXPR_GT, 7},  {FA_EXPR_GE, 7},    {FA_EXPR_SHL, 8},
               {FA_EXPR_SHR, 8},    {FA_EXPR_ADD, 9}, {FA_EXPR_SUB, 9},   {FA_EXPR_MUL, 10},
               {FA_EXPR_DIV, 10},   {FA_EXPR_REM, 10}};
  if (p->token.kind != FA_TOKEN_SIGN) return 0;
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i)
    if (fa_expr_is(p, fa_expr_op_text(table[i].op))) return *op = table[i].op, table[i].level;
  return 0;
}

/* C and Python read a & b == c differently, so that operands of & ^ | may not be comparisons without
 * parentheses. Returns x, or -1. */
static int not_bare(fa_expr_parser *p, fa_expr_op op, int x) {
  if (x < 0 || !fa_expr_is_bitwise(op) || x == p->closed || !fa_expr_is_comparison(p->e.node[x].op)) return x;
  return fa_expr_fail(p, (size_t)p->e.node[x].at,
                      "a comparison beside %s needs parentheses: C and Python read it differently without",
                      fa_expr_op_text(op));
}

/* Operators with a precedence of at least `least`. */
static int parse_binary(fa_expr_parser *p, int least) {
  fa_expr_op op = FA_EXPR_ADD;
  int x = parse_unary(p), level, before = 0;
  while (x >= 0 && (level = level_of(p, &op)) >= least && level > 0) {
    const size_t at = p->token.at;
    if (level == before && fa_expr_is_comparison(op))
      return fa_expr_fail(p, at, "comparisons do not chain; a < b && b < c");
    if (not_bare(p, op, x) < 0 || !fa_expr_next(p)) return -1;
    x = fa_expr_binary(p, at, op, x, not_bare(p, op, parse_binary(p, level + 1)));
    before = level;
  }
  return x;
}

static int parse_conditional(fa_expr_parser *p) {
  if (!enter(p)) return -1;
  int x = parse_binary(p, 1);
  if (x >= 0 && fa_expr_is(p, "?")) {
    const size_t at = p->token.at;
    int yes = fa_expr_next(p) ? parse_conditional(p) : -1, no = -1;
    if (yes >= 0 && expect(p, ":", "must follow: condition ? this : that")) no = parse_conditional(p);
    x = fa_expr_select(p, at, x, yes, no);
  }
  --p->depth;
  return x;
}

fa_status fa_expr_parse(const char *text, size_t n_bytes, fa_expr_kind kind, const fa_capture *captures,
                        int n_captures, fa_expr *out, fa_error *err) {
  fa_expr_parser p = {.text = text,
                      .n_bytes = n_bytes,
                      .kind = kind,
                      .captures = captures,
                      .n_captures = n_captures,
                      .closed = -1,
                      .err = err};
  char buffer[48];
  *out = (fa_expr){0};
  if (n_bytes > FA_EXPR_MAX_BYTES)
    return fa_fail(err, FA_ERR_INPUT, "an expression of %zu bytes, at most %d", n_bytes, FA_EXPR_MAX_BYTES);
  int root = fa_expr_next(&p) ? parse_conditional(&p) : -1;
  if (root >= 0 && p.token.kind != FA_TOKEN_END)
    root = fa_expr_fail(&p, p.token.at, "%s, where an operator or the end must stand", found(&p, buffer));
  p.e.root = fa_expr_result(&p, root);
  if (p.status == FA_OK) {
    *out = p.e;
    return FA_OK;
  }
  fa_expr_free(&p.e);
  return p.status;
}
