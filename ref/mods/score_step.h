/* What score_mod makes of a score's error and of the derivative of the steps before it, for one pair; as lane.h. */
#ifndef FA_REF_MODS_SCORE_STEP_H
#define FA_REF_MODS_SCORE_STEP_H

#include "ref/mods/expr_slope.h"

/* Clamped, so that products with zeros stay zeros; beyond the clamp nothing is known anyway. */
FA_SHARED float fa_mod_up(double x) {
  return x < 0x1p50 ? (float)(x * (1 + 0x1p-22)) : 0x1p50f;
}

/* Rounding decides whether there is a score at all. */
FA_SHARED bool fa_mod_is_unsure(double value, double error) {
  return error == INFINITY || (isinf(value) && error > 0);
}

/* The expression makes so much of the error of its argument that nothing is known about the score's exponential. */
FA_SHARED bool fa_mod_amplifies(double error, double before) {
  return error > 16 && error > 8 * before && error != INFINITY;
}

/* Derivative of the root with respect to the score, in one lane. */
FA_SHARED void fa_mod_slope(const fa_ref_expr *x, int lane, double *value, double *error) {
  *value = *error = 0;
  for (int node = 0; node < x->e->n; ++node) {
    double v, e;
    if (x->e->node[node].op != FA_EXPR_SCORE) continue;
    fa_expr_share(x, node, lane, &v, &e);
    *value += v;
    *error += e;
  }
}

/* Magnitude and absolute error of the derivative of the steps before score_mod become those of the whole chain; v: score_mod's,
 * NaN: none. */
FA_SHARED void fa_mod_chain(double v, double v_error, float *cap, float *cap_err) {
  const double size = isnan(v) ? 0 : fabs(v);
  *cap_err = fa_mod_up(fa_lane_times(*cap, v_error) + fa_lane_times(*cap_err, size + v_error) +
                       0x1p-23 * *cap * size);
  *cap = fa_mod_up(*cap * size);
}

#endif
