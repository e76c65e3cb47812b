#include "cases/vocabulary/problem_expr.h"

#include <string.h>

fa_status fa_expr_of(const fa_problem *p, fa_expr_kind kind, fa_expr *out, fa_error *err) {
  const char *text = kind == FA_EXPR_SCORE_MOD ? p->score_mod : p->mask_mod;
  *out = (fa_expr){0};
  if (!text) return FA_OK;
  fa_status status = fa_expr_parse(text, strlen(text), kind, p->captures, p->n_captures, out, err);
  if (status != FA_OK) fa_error_prefix(err, kind == FA_EXPR_SCORE_MOD ? "$.score_mod" : "$.mask_mod");
  return status;
}
