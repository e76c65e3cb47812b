/* Derivatives of functions, as value and error without a fault: of erf, of a sigmoid whose value is y, of pow by its base and by its
 * exponent. */
#ifndef FA_REF_MODS_LANE_SLOPES_H
#define FA_REF_MODS_LANE_SLOPES_H

#include "ref/mods/lane_floats.h"

/* c exp(-x^2), whose own slope is -2 x times it. A kernel rounds x^2 first, and multiplies by log2(e). */
FA_SHARED fa_lane fa_lane_erf_slope(fa_lane a) {
  const double near = nearest_zero(a), v = FA_LANE_SLOPE_OF_ERF * exp(-a.v * a.v);
  if (a.e == INFINITY) return fa_lane_of(v, FA_LANE_SLOPE_OF_ERF, 0);
  const double moved =
      fmin(FA_LANE_SLOPE_OF_ERF,
           a.e * fmin(1.0, 2 * (fabs(a.v) + a.e) * FA_LANE_SLOPE_OF_ERF * exp(-near * near)));
  const double eps = 0x1p-21 + 4 * FA_LANE_U * (1 + a.v * a.v);
  return fa_lane_of(v, moved + (v > 0 ? fmin(2 * FA_LANE_SLOPE_OF_ERF, eps * (v + moved)) : 0) + FA_LANE_TINY,
                    0);
}

FA_SHARED fa_lane fa_lane_sigmoid_slope(fa_lane y) {
  const double v = y.v * (1 - y.v);
  return fa_lane_of(v, fa_lane_times(y.e, 1 + y.e) + FA_LANE_U * y.v + 4 * FA_LANE_U * v + FA_LANE_TINY, 0);
}

/* A product of two factors and its error; kernels round it a few times. */
FA_SHARED fa_lane product(fa_lane a, fa_lane b) {
  const double v = a.v * b.v;
  const double e = fa_lane_times(fabs(a.v), b.e) + fa_lane_times(fabs(b.v), a.e) + fa_lane_times(a.e, b.e);
  return fa_lane_of(v, v == 0 && e == 0 ? 0 : e + 0x1p-21 * (fabs(v) + e) + FA_LANE_TINY, 0);
}

/* b a^(b - 1); 0 where b is 0, as PyTorch has it. */
FA_SHARED fa_lane fa_lane_pow_by_base(fa_lane a, fa_lane b) {
  const double less = b.v - 1;
  if (b.v == 0 && b.e == 0) return fa_lane_of(0, 0, 0);
  const bool exact = b.e == 0 && (double)(float)less == less;
  const fa_lane exponent = {less, exact ? 0 : b.e + FA_LANE_U * (fabs(less) + b.e), 0};
  const fa_lane y = fa_lane_pow(a, exponent, 0);
  if (y.fault) return fa_lane_of(isnan(pow(a.v, less)) ? NAN : INFINITY, 0, 0); /* no derivative in f32 */
  return product(b, y);
}

/* a^b ln a; 0 where a is 0, as PyTorch has it. */
FA_SHARED fa_lane fa_lane_pow_by_exponent(fa_lane a, fa_lane b, fa_lane y, bool fast) {
  if (a.v == 0 && a.e == 0) return fa_lane_of(b.v < 0 ? INFINITY : 0, 0, 0);
  const fa_lane log_a = fa_lane_float_unary(FA_EXPR_LOG, a, fast, 0);
  if (log_a.fault) return fa_lane_of(NAN, 0, 0);
  return product(y, log_a);
}

#endif
