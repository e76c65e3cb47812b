/* Derivatives of an expression by reverse accumulation over its tree.
 *
 * A branch that is not taken contributes nothing, whatever its values; it is not multiplied by 0, because 0
 * times infinity would be NaN. If rounding may decide a branch, both are followed and the error covers
 * either. Kinks: docs/reference/expressions.md, "Derivatives". */
#include "ref/mods/expr_slope.h"

#include <string.h>

enum { L = FA_EXPR_LANES };

static void step(fa_ref_expr *x, int node, int k, int n) {
  for (int lane = 0; lane < n; ++lane) fa_expr_step_lane(x, node, k, lane);
}

void fa_ref_expr_derive(fa_ref_expr *x, int n) {
  const fa_expr *e = x->e;
  memset(x->reached, FA_REACHED_NOT, (size_t)e->n * L);
  for (int lane = 0; lane < n; ++lane) {
    const int64_t at = (int64_t)e->root * L + lane;
    x->derivative[at] = 1;
    x->derivative_e[at] = 0;
    x->reached[at] = x->fault[at] || !fa_expr_has_slope(e, e->root) ? FA_REACHED_NOT : FA_REACHED_BY_VALUE;
  }
  for (int node = e->root; node >= 0; --node)
    for (int k = fa_expr_first_slope(e, node); k < e->node[node].n_args; ++k)
      if (fa_expr_has_slope(e, e->node[node].arg[k])) step(x, node, k, n);
}

void fa_ref_expr_share(const fa_ref_expr *x, int node, int lane, double *value, double *error) {
  fa_expr_share(x, node, lane, value, error);
}
