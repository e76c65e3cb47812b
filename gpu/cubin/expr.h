/* Expressions over the sizes of a case, as a launch plan has them: "cdiv(seqlen_q, 64) * heads_q".
 *
 * Integers of 64 bits, names, + - *, unary -, == != < <= > >= (1 or 0), parentheses, and cdiv(a, b), the quotient rounded
 * up, min(a, b), max(a, b). What does not fit 64 bits is an error. */
#ifndef FA_GPU_CUBIN_EXPR_H
#define FA_GPU_CUBIN_EXPR_H

#include "cases/base/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { FA_SIZE_EXPR_STEPS = 64 };

typedef struct fa_size_step {
  int op;        /* see expr.c */
  int64_t value; /* of a constant, or which name */
} fa_size_step;

/* In postfix order. */
typedef struct fa_size_expr {
  int n;
  fa_size_step step[FA_SIZE_EXPR_STEPS];
} fa_size_expr;

/* The number of a name, from 0; -1: there is no such name. */
typedef int (*fa_size_find)(const char *name);
/* The value of the name with this number. */
typedef int64_t (*fa_size_value)(const void *sizes, int name);

void fa_size_constant(fa_size_expr *out, int64_t value);
/* FA_ERR_INPUT: "column 7: there is no name seqlen; ..." */
fa_status fa_size_parse(const char *text, fa_size_find find, fa_size_expr *out, fa_error *err);
/* FA_ERR_INPUT: a division by what is not positive, or a result that does not fit. */
fa_status fa_size_evaluate(const fa_size_expr *x, fa_size_value value, const void *sizes, int64_t *out,
                           fa_error *err);

#ifdef __cplusplus
}
#endif

#endif
