/* Noise of a narrow dS below its type's normal range. sigma takes 0.18 of a rounding's worst case squared, the mean over
 * mantissas (ref/compare/stats.c). Below the normal range errors are uniform up to half a step, 1/3 of it, and what is less
 * than half a step is lost whole. The worst case, and with it the bound, is the same: only the noise of a row or key is
 * raised, by its share of such squares (docs/reference/bounds.md, "Statistics"). */
#ifndef FA_REF_BOUNDS_BELOW_NORMAL_H
#define FA_REF_BOUNDS_BELOW_NORMAL_H

#include "ref/bounds/gradient_formula.h"

/* Sums of (dS / unit)^2 as they are rounded: all of them, and what those below the normal range are noisier by. */
typedef struct fa_below_normal {
  float all, more;
} fa_below_normal;

/* Whether any dS to speak of is rounded below the normal range: of f16 and types of 8 bits, not of bf16. */
FA_BOTH bool fa_below_normal_matters(const fa_ref_call *c) {
  return c->generic && c->profile->u_ds > 0 && c->profile->floor_ds > 0x1p-40;
}

/* g, g2: what fa_element_gradient and _squares returned for this floor. */
FA_BOTH void fa_below_normal_add(fa_below_normal *to, float g, float g2, float floor) {
  const float uniform = (float)(1 / 3.0 / 0.18 - 1), lost = (float)(1 / 0.18 - 1);
  to->all += g2;
  to->more += g < floor ? lost * g2 : g == floor ? uniform * g2 : 0.0f;
}

FA_BOTH void fa_below_normal_join(fa_below_normal *to, const fa_below_normal *from) {
  to->all += from->all;
  to->more += from->more;
}

/* What the noise of a sum over these dS is multiplied by. */
FA_BOTH double fa_below_normal_factor(const fa_below_normal *x) {
  const double share = (double)x->more / x->all;
  return x->all > 0 && share < INFINITY ? sqrt(1 + share) : 1; /* unknown: bounds say so */
}

#endif
