/* Coverage of the operators and functions of expressions. */
#include "cases/expr/ast.h"
#include "cases/vocabulary/problem_expr.h"
#include "fuzz/coverage/table.h"

static const struct {
  fa_expr_op op;
  const char *score, *mask; /* names of the rows; NULL: none */
} rows[] = {
    {FA_EXPR_BITAND, "& in score_mod", "& in mask_mod"},
    {FA_EXPR_BITXOR, "^ in score_mod", "^ in mask_mod"},
    {FA_EXPR_BITOR, "| in score_mod", "| in mask_mod"},
    {FA_EXPR_BITNOT, "~ in score_mod", NULL},
    {FA_EXPR_SHL, "<< in score_mod", "<< in mask_mod"},
    {FA_EXPR_SHR, ">> in score_mod", ">> in mask_mod"},
    {FA_EXPR_FLOORDIV, "floordiv in score_mod", "floordiv in mask_mod"},
    {FA_EXPR_FLOORMOD, "floormod in score_mod", "floormod in mask_mod"},
    {FA_EXPR_AS_INT, "int() in score_mod", "int() in mask_mod"},
    {FA_EXPR_AS_FLOAT, "float() in score_mod", NULL},
    {FA_EXPR_POW, "pow in score_mod", NULL},
    {FA_EXPR_ERF, "erf in score_mod", NULL},
    {FA_EXPR_SIGMOID, "sigmoid in score_mod", NULL},
    {FA_EXPR_CEIL, "ceil in score_mod", NULL},
};

void fa_coverage_operators(fa_coverage *v, const fa_problem *p) {
  fa_expr score = {0}, mask = {0};
  const bool known = fa_expr_of(p, FA_EXPR_SCORE_MOD, &score, NULL) == FA_OK &&
                     fa_expr_of(p, FA_EXPR_MASK_MOD, &mask, NULL) == FA_OK;
  for (size_t k = 0; k < sizeof rows / sizeof *rows; ++k) {
    fa_coverage_see(v, FA_COVER_SCORES, 10, rows[k].score, known && fa_expr_uses(&score, rows[k].op));
    if (rows[k].mask)
      fa_coverage_see(v, FA_COVER_SCORES, 5, rows[k].mask, known && fa_expr_uses(&mask, rows[k].op));
  }
  fa_expr_free(&score);
  fa_expr_free(&mask);
}
