/* Inside of ref/mods/expr.c: rows of lanes at once. */
#ifndef FA_REF_MODS_EXPR_ROWS_H
#define FA_REF_MODS_EXPR_ROWS_H

#include "ref/mods/expr.h"

/* The node's row, if that can be had at once; else false, and the row may hold anything. */
bool fa_ref_expr_row_at_once(fa_ref_expr *x, const fa_ref_pairs *p, int node);
/* After lane by lane (uniform nodes: lane 0): the others, and whether the row is clean. */
void fa_ref_expr_row_done(fa_ref_expr *x, const fa_ref_pairs *p, int node);

#endif
