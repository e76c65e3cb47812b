#include "gpu/contract/mods.h"

#include "cases/expr/ast.h"
#include "cases/vocabulary/problem_expr.h"

#include <string.h>

/* A condition's ~ and where leave no trace in the tree, so the text is searched for them; a buffer whose name contains
 * "where" costs a child that cannot read it anyway nothing but a case. */
static bool has_operators(const fa_problem *p, fa_expr_kind kind) {
  static const fa_expr_op later[] = {FA_EXPR_BITNOT,   FA_EXPR_CEIL,     FA_EXPR_ERF, FA_EXPR_SIGMOID,
                                     FA_EXPR_AS_INT,   FA_EXPR_AS_FLOAT, FA_EXPR_POW, FA_EXPR_FLOORDIV,
                                     FA_EXPR_FLOORMOD, FA_EXPR_SHL,      FA_EXPR_SHR, FA_EXPR_BITAND,
                                     FA_EXPR_BITXOR,   FA_EXPR_BITOR};
  const char *text = kind == FA_EXPR_SCORE_MOD ? p->score_mod : p->mask_mod;
  fa_expr e;
  if (!text || fa_expr_of(p, kind, &e, NULL) != FA_OK) return false;
  bool found = strchr(text, '~') || strstr(text, "where");
  for (size_t k = 0; k < sizeof later / sizeof *later; ++k) found |= fa_expr_uses(&e, later[k]);
  fa_expr_free(&e);
  return found;
}

bool fa_contract_mods_operators(const fa_problem *p) {
  return has_operators(p, FA_EXPR_SCORE_MOD) || has_operators(p, FA_EXPR_MASK_MOD);
}

bool fa_contract_blocks_shared(const fa_problem *p) {
  const fa_block_sparse *s = &p->block_sparse;
  if (!s->present || s->source != FA_BLOCKS_LISTS) return false;
  return (s->list_batch > 1 && s->list_batch < p->batch) || (s->list_heads > 1 && s->list_heads < p->heads_q);
}
