/* Private to ref/mods/expr.c: whole rows of lanes. */
#ifndef FA_REF_MODS_EXPR_ROWS_H
#define FA_REF_MODS_EXPR_ROWS_H

#include "ref/mods/expr.h"

/* Computes the node's row at once if possible; else returns false, and the row may hold anything. */
bool fa_ref_expr_row_at_once(fa_ref_expr *x, const fa_ref_pairs *p, int node);
/* After evaluating lane by lane (uniform nodes: lane 0), fills the other lanes and records whether the row is
 * clean. */
void fa_ref_expr_row_done(fa_ref_expr *x, const fa_ref_pairs *p, int node);

#endif
