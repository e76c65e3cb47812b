/* Private to the expression parser: tokens, and nodes with their types. */
#ifndef FA_CASES_EXPR_PARTS_H
#define FA_CASES_EXPR_PARTS_H

#include "cases/expr/ast.h"

typedef enum fa_token_kind {
  FA_TOKEN_END,
  FA_TOKEN_INT,
  FA_TOKEN_FLOAT,
  FA_TOKEN_NAME,
  FA_TOKEN_SIGN
} fa_token_kind;

typedef struct fa_token {
  fa_token_kind kind;
  size_t at, length; /* in the text */
  double value;      /* numbers */
} fa_token;

typedef struct fa_expr_parser {
  const char *text;
  size_t n_bytes, next; /* next: start of the token after `token` */
  fa_expr_kind kind;
  const fa_capture *captures;
  int n_captures;
  fa_token token;
  int depth;
  int closed; /* the node that parentheses closed last */
  fa_expr e;
  fa_error *err;
  fa_status status; /* of the first failure */
} fa_expr_parser;

/* Records FA_ERR_INPUT at byte `at`, unless an error is recorded already. Returns -1, which functions that
 * return nodes return on failure. */
int fa_expr_fail(fa_expr_parser *p, size_t at, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- cases/expr/lex.c ---- */

/* Reads the next token into p->token; false after a failure. */
bool fa_expr_next(fa_expr_parser *p);
/* True if p->token is this operator or name. */
bool fa_expr_is(const fa_expr_parser *p, const char *text);

/* ---- cases/expr/type.c: nodes with checked types and converted arguments; -1 after a failure ---- */

int fa_expr_leaf(fa_expr_parser *p, size_t at, fa_expr_op op, fa_expr_type type, double value);
int fa_expr_unary(fa_expr_parser *p, size_t at, fa_expr_op op, int x);
int fa_expr_binary(fa_expr_parser *p, size_t at, fa_expr_op op, int x, int y);
int fa_expr_select(fa_expr_parser *p, size_t at, int condition, int x, int y);
int fa_expr_load(fa_expr_parser *p, size_t at, int buffer, const int *index, const size_t *index_at, int n);
/* Converts x to the result type of score_mod or mask_mod. */
int fa_expr_result(fa_expr_parser *p, int x);

#endif
