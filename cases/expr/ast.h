/* Score and mask expressions (family flex): the text of a case, read into a typed tree. Language and meaning
 * of every operation: docs/reference/expressions.md.
 *
 * The text is data: it is parsed here and never pasted into source. An expression is an array of nodes in
 * which arguments stand before those who use them, so walking it in order needs no recursion. What parsing
 * makes is a tree; whoever differentiates it may share nodes. */
#ifndef FA_CASES_EXPR_AST_H
#define FA_CASES_EXPR_AST_H

#include "cases/base/status.h"
#include "cases/expr/capture.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fa_expr_type { FA_EXPR_BOOL, FA_EXPR_INT, FA_EXPR_FLOAT } fa_expr_type;

typedef enum fa_expr_op {
  /* leaves */
  FA_EXPR_CONST, /* value */
  FA_EXPR_SCORE,
  FA_EXPR_B,
  FA_EXPR_H,
  FA_EXPR_Q_IDX,
  FA_EXPR_KV_IDX,
  FA_EXPR_SEQLEN_Q,
  FA_EXPR_SEQLEN_K,
  FA_EXPR_LOAD, /* element of a buffer; the arguments are its indices */
  /* conversions, which the text does not show */
  FA_EXPR_TO_BOOL,  /* int != 0 */
  FA_EXPR_TO_INT,   /* bool as 0 or 1 */
  FA_EXPR_TO_FLOAT, /* int, rounded to f32 */
  /* one argument */
  FA_EXPR_NEG,
  FA_EXPR_NOT,
  FA_EXPR_ABS,
  FA_EXPR_EXP,
  FA_EXPR_LOG,
  FA_EXPR_SQRT,
  FA_EXPR_TANH,
  FA_EXPR_SIN,
  FA_EXPR_COS,
  FA_EXPR_FLOOR,
  /* two, of one type: both int or both float (and, or: bool) */
  FA_EXPR_MIN,
  FA_EXPR_MAX,
  FA_EXPR_MUL,
  FA_EXPR_DIV,
  FA_EXPR_REM, /* int only */
  FA_EXPR_ADD,
  FA_EXPR_SUB,
  FA_EXPR_LT,
  FA_EXPR_LE,
  FA_EXPR_GT,
  FA_EXPR_GE,
  FA_EXPR_EQ,
  FA_EXPR_NE,
  FA_EXPR_AND,
  FA_EXPR_OR,
  /* three: condition, then, else */
  FA_EXPR_SELECT,
  FA_EXPR_N_OPS
} fa_expr_op;

/* Limits of a text. A case's text is shorter (10,000 characters). */
#define FA_EXPR_MAX_BYTES 65536
#define FA_EXPR_MAX_NODES 4096
#define FA_EXPR_MAX_DEPTH 128   /* of parentheses, indices, ?: and prefix operators inside each other */
#define FA_EXPR_MAX_HEIGHT 1000 /* operations from the root to the farthest leaf */

typedef struct fa_expr_node {
  fa_expr_op op;
  fa_expr_type type; /* of the result */
  int at;            /* byte of the text that it comes from */
  int height;        /* 0 for leaves */
  int n_args;
  int arg[FA_MAX_CAPTURE_RANK]; /* nodes before this one */
  int buffer;                   /* FA_EXPR_LOAD: index of the capture */
  double value;                 /* FA_EXPR_CONST: exact in f32, int32 or 0/1; +inf is allowed */
} fa_expr_node;

typedef struct fa_expr {
  fa_expr_node *node; /* owned */
  int n, capacity;
  int root;
} fa_expr;

/* What the text may name and what it must give: a score is a float, a mask a condition (bool, or an int that
 * is not 0) that does not know the score. */
typedef enum fa_expr_kind { FA_EXPR_SCORE_MOD, FA_EXPR_MASK_MOD } fa_expr_kind;

/* FA_ERR_INPUT: "column 17: what is wrong; what is allowed", then the text around it and a line with a caret.
 * Takes time linear in n_bytes. The text need not be UTF-8 nor end with NUL, and may hold NUL. *out is the
 * caller's (fa_expr_free), set on FA_OK only. */
fa_status fa_expr_parse(const char *text, size_t n_bytes, fa_expr_kind kind, const fa_capture *captures,
                        int n_captures, fa_expr *out, fa_error *err);
void fa_expr_free(fa_expr *e);                            /* leaves it empty */
fa_status fa_expr_copy(fa_expr *dst, const fa_expr *src); /* dst is overwritten, not freed */

/* Canonical text, malloc'd; NULL when out of memory. No parenthesis that precedence does not need; parsing it
 * gives the same tree. Trees only: shared nodes are printed each time. */
char *fa_expr_print(const fa_expr *e, const fa_capture *captures);
/* The same operations on the same arguments. */
bool fa_expr_equal(const fa_expr *a, const fa_expr *b);

bool fa_expr_uses(const fa_expr *e, fa_expr_op op);
bool fa_expr_reads(const fa_expr *e, int buffer);
/* True if results are about as spread as the scores that go in, so that equal ones, whose roundings repeat,
 * are rare: a shift by what does not know the score, a factor of 1/4 to 4, another sign, -inf by position,
 * softcap's form c * tanh(score / c); *cap = the least such c, 0 without. False: not known. */
bool fa_expr_like_score(const fa_expr *e, double *cap);
/* Names that mean something in expressions: no buffer can have them. */
bool fa_expr_is_reserved(const char *name);
const char *fa_expr_op_text(fa_expr_op op); /* "+", "tanh", "score", "" for conversions and constants */

/* ---- making nodes (parser, differentiation) ---- */

/* Appends a node, whose height is set here. Returns its index, or -1: out of memory. */
int fa_expr_add(fa_expr *e, fa_expr_node node);

#endif
