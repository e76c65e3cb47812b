/* Parses the expressions of a problem. */
#ifndef FA_CASES_VOCABULARY_PROBLEM_EXPR_H
#define FA_CASES_VOCABULARY_PROBLEM_EXPR_H

#include "cases/expr/ast.h"
#include "cases/vocabulary/problem.h"

/* Parses score_mod or mask_mod of a problem; messages begin with "$.score_mod: ". If absent, *out has n ==
 * 0. */
fa_status fa_expr_of(const fa_problem *p, fa_expr_kind kind, fa_expr *out, fa_error *err);

#endif
