/* Score and mask expressions (family flex): the text of a case parsed into a typed tree. docs/reference/expressions.md
 * defines the language and the meaning of every operation.
 *
 * The text is data: it is parsed here and never pasted into source. An expression is an array of nodes in
 * which arguments come before the nodes that use them, so that walking it in order needs no recursion.
 * Parsing yields a tree; differentiation may share nodes. */
#ifndef FA_CASES_EXPR_AST_H
#define FA_CASES_EXPR_AST_H

#include "cases/base/both.h"
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
  /* conversions, which are implicit in the text */
  FA_EXPR_TO_BOOL,  /* int != 0 */
  FA_EXPR_TO_INT,   /* bool as 0 or 1 */
  FA_EXPR_TO_FLOAT, /* int, rounded to f32 */
  /* one argument */
  FA_EXPR_NEG,
  FA_EXPR_NOT,
  FA_EXPR_BITNOT, /* int */
  FA_EXPR_ABS,
  FA_EXPR_EXP,
  FA_EXPR_LOG,
  FA_EXPR_SQRT,
  FA_EXPR_TANH,
  FA_EXPR_SIN,
  FA_EXPR_COS,
  FA_EXPR_FLOOR,
  FA_EXPR_CEIL,
  FA_EXPR_ERF,
  FA_EXPR_SIGMOID,
  FA_EXPR_AS_INT,   /* a float truncated, or the int itself */
  FA_EXPR_AS_FLOAT, /* the float itself; an int is converted before */
  /* two, of one type: both int or both float (and, or: bool) */
  FA_EXPR_MIN,
  FA_EXPR_MAX,
  FA_EXPR_POW,      /* float only */
  FA_EXPR_FLOORDIV, /* int only, like Python's // */
  FA_EXPR_FLOORMOD, /* int only, like Python's %: the sign of the divisor */
  FA_EXPR_MUL,
  FA_EXPR_DIV,
  FA_EXPR_REM, /* int only */
  FA_EXPR_ADD,
  FA_EXPR_SUB,
  FA_EXPR_SHL, /* int only */
  FA_EXPR_SHR,
  FA_EXPR_LT,
  FA_EXPR_LE,
  FA_EXPR_GT,
  FA_EXPR_GE,
  FA_EXPR_EQ,
  FA_EXPR_NE,
  FA_EXPR_BITAND, /* both int or both bool; looks at both sides, as AND and OR need not */
  FA_EXPR_BITXOR,
  FA_EXPR_BITOR,
  FA_EXPR_AND,
  FA_EXPR_OR,
  /* three: condition, then, else */
  FA_EXPR_SELECT,
  FA_EXPR_N_OPS
} fa_expr_op;

/* Limits of a text. A case's text is shorter (10,000 characters). */
#define FA_EXPR_MAX_BYTES 65536
#define FA_EXPR_MAX_NODES 4096
#define FA_EXPR_MAX_DEPTH 128   /* nesting of parentheses, indices, ?: and prefix operators */
#define FA_EXPR_MAX_HEIGHT 1000 /* operations from the root to the deepest leaf */

typedef struct fa_expr_node {
  fa_expr_op op;
  fa_expr_type type; /* of the result */
  int at;            /* byte offset in the text */
  int height;        /* 0 for leaves */
  int n_args;
  int arg[FA_MAX_CAPTURE_RANK]; /* indices of earlier nodes */
  int buffer;                   /* FA_EXPR_LOAD: index of the capture */
  double value;                 /* FA_EXPR_CONST: exact in f32, int32 or 0/1; +inf is allowed */
} fa_expr_node;

typedef struct fa_expr {
  fa_expr_node *node; /* owned */
  int n, capacity;
  int root;
} fa_expr;

/* Which names the text may use and what it must return: a score is a float; a mask is a condition (bool, or
 * an int that is true if not 0) and must not use the score. */
typedef enum fa_expr_kind { FA_EXPR_SCORE_MOD, FA_EXPR_MASK_MOD } fa_expr_kind;

/* FA_ERR_INPUT: "column 17: what is wrong; what is allowed", then the text around it and a line with a caret.
 * Takes time linear in n_bytes. The text need not be UTF-8 or NUL-terminated, and may contain NUL. *out is
 * owned by the caller (fa_expr_free) and set on FA_OK only. */
fa_status fa_expr_parse(const char *text, size_t n_bytes, fa_expr_kind kind, const fa_capture *captures,
                        int n_captures, fa_expr *out, fa_error *err);
void fa_expr_free(fa_expr *e);                            /* leaves it empty */
fa_status fa_expr_copy(fa_expr *dst, const fa_expr *src); /* dst is overwritten, not freed */

/* Canonical text, malloc'd; NULL when out of memory. It has no parentheses that precedence does not need, and
 * parsing it gives the same tree. For trees only: a shared node is printed each time. */
char *fa_expr_print(const fa_expr *e, const fa_capture *captures);
/* The same operations on the same arguments. */
bool fa_expr_equal(const fa_expr *a, const fa_expr *b);

bool fa_expr_uses(const fa_expr *e, fa_expr_op op);
bool fa_expr_reads(const fa_expr *e, int buffer);
/* True if the results are about as spread out as the scores, so that equal results, whose roundings repeat,
 * are rare. Allowed are a shift independent of the score, a factor of 1/4 to 4, negation, -inf by position,
 * and softcap's form c * tanh(score / c). *cap is the smallest such c, 0 without one. False if unknown. */
bool fa_expr_like_score(const fa_expr *e, double *cap);
/* Names with a meaning in expressions, which no buffer may have. */
bool fa_expr_is_reserved(const char *name);
const char *fa_expr_op_text(fa_expr_op op); /* "+", "tanh", "score", "" for conversions and constants */

static inline bool fa_expr_is_conversion(fa_expr_op op) { /* implicit ones, which the text does not show */
  return op >= FA_EXPR_TO_BOOL && op <= FA_EXPR_TO_FLOAT;
}
FA_BOTH bool fa_expr_is_comparison(fa_expr_op op) {
  return op >= FA_EXPR_LT && op <= FA_EXPR_NE;
}
FA_BOTH bool fa_expr_is_bitwise(fa_expr_op op) { /* of two ints or two conditions */
  return op >= FA_EXPR_BITAND && op <= FA_EXPR_BITOR;
}

/* ---- making nodes (parser, differentiation) ---- */

/* Appends a node and sets its height. Returns its index, or -1 when out of memory. */
int fa_expr_add(fa_expr *e, fa_expr_node node);

#endif
