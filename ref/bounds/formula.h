/* The formulas of the bounds of scores, O and LSE, by row: scalars in, scalars out (docs/reference/bounds.md); those of gradients:
 * gradient_formula.h. The judge on a device reads them too, so that nothing here follows a pointer but those to the profile
 * and the problem, of which only numbers are read. */
#ifndef FA_REF_BOUNDS_FORMULA_H
#define FA_REF_BOUNDS_FORMULA_H

#include "ref/bounds/sums.h"

/* ---- logits ---- */

/* Errors of a score that ALiBi moved, and of one that went through softcap. */
FA_BOTH float fa_bound_alibi_error(double slope, double distance, double x) {
  return (float)(FA_F32_UNIT * (4 * fabs(slope * distance) + 2 * fabs(x)));
}

/* The error of a score after a bias was added: x. */
FA_BOTH bool fa_bound_bias_swallows(double bias, double x) {
  return fabs(bias) >= 0x1p80 && x == bias; /* in f32 as in double: exact */
}
FA_BOTH float fa_bound_bias_error(float e, double bias, double x) {
  return fa_bound_bias_swallows(bias, x) ? 0 : e + (float)(FA_F32_UNIT * (2 * fabs(bias) + 2 * fabs(x)));
}

typedef struct fa_bound_cap {
  float e, slope, error; /* of the score; derivative of the step and its error */
} fa_bound_cap;

FA_BOTH fa_bound_cap fa_bound_softcap(const fa_ref_call *c, double th, float e) {
  fa_bound_cap out;
  double limit = c->p->softcap, eps = c->profile->eps_tanh;
  double t = fabs(th), before = e / limit, slope = (1 - t) * (1 + t);
  double through = fmin(1.0, slope + 2 * before), e_tanh = (eps + 2 * FA_F32_UNIT) * t + through * before;
  out.e = (float)(limit * e_tanh * (1 + 4 * FA_F32_UNIT));
  out.slope = (float)slope;
  out.error = (float)(2 * t * e_tanh + e_tanh * e_tanh + 4 * FA_F32_UNIT);
  return out;
}

/* What small operands and small scores lose. A subnormal q.k matters only with a scale near the largest float. */
FA_BOTH double fa_bound_lost_scores(const fa_ref_call *c, double unit_q, double unit_k) {
  const fa_profile *p = c->profile;
  const double scale = fabs(c->p->scale), lost = scale * (double)(c->d + 1) * FA_F32_TINY;
  const double operands = (double)c->d * (unit_q + unit_k) * p->operand_floor[FA_PRODUCT_QK];
  const double coarse = scale * (operands + fa_bound_sum_floor(c, FA_PRODUCT_QK, c->d) + p->floor_scores);
  return (lost > 0x1p-60 ? lost : 0) + coarse + 4 * p->floor_scores;
}

/* Of the product, by its size: it is scaled, by descales too where there are any, and divided by the cap. */
FA_BOTH double fa_bound_score_steps(const fa_ref_call *c) {
  return (c->profile->descales ? 5 : 3) * FA_F32_UNIT;
}

/* The error of an exponent x - shift is that of x plus a |x - shift| + s |x| + k: two roundings and the constant's own,
 * or those of one fma. from_lse: shift is an LSE and not the row's maximum. */
typedef struct fa_bound_exponents {
  double a, s, k;
} fa_bound_exponents;

FA_BOTH fa_bound_exponents fa_bound_exponents_of(const fa_ref_call *c, double shift, bool from_lse,
                                                 double extra) {
  fa_bound_exponents out;
  double a = 2.25, s = 0, k = 0;
  if (c->profile->exp_scaled) {
    a = from_lse ? 2 : 4;
    s = from_lse ? 1 : 2;
    k = from_lse ? 3 : 4;
  }
  if (!from_lse && c->profile->max_splits > 1) a += 4;
  out.a = a * FA_F32_UNIT;
  out.s = s * FA_F32_UNIT;
  out.k = k * FA_F32_UNIT * fabs(shift) + extra;
  return out;
}

/* The relative error of exp(x - shift) where e, its exponent's, is of order 1. *kept becomes false if the exponential's
 * magnitude is then unknown. */
FA_BOTH float fa_bound_large_exponent(float e, double x, double shift, bool *kept) {
  const bool negligible = x - shift + e < -104; /* below every float: 0, or flushed to 0 */
  if (!negligible && !(e <= 1)) *kept = false;
  return negligible ? 1 : expm1f(e < 30 ? e : 30);
}

/* ---- rows of the forward ---- */

/* A row's sink: its share of the row's sum, 0 without one; and how far the kernel's share may be from that, relative. */
typedef struct fa_bound_sink {
  double share, error;
} fa_bound_sink;

/* Terms of a whole row. */
typedef struct fa_bound_row {
  int64_t n;      /* visible keys, by range; or entries of the row's list, if these are more */
  double most;    /* how often the list names one key at most */
  double changes; /* number of changes of the running max */
  double rounds;  /* of combining splits */
  double log_l;   /* log of the row sum, relative to the row max */
  double max;     /* magnitude of that max */
  fa_bound_sink sink;
  double lifted;      /* what log n of a repeated key adds to that */
  double extra;       /* part of every exponent's error */
  double error_sum;   /* sum_j p_j e_j, and the next */
  double independent; /* what errors add that are independent of other pairs' */
  double scattered;   /* sum_j (p_j e_score_j)^2 */
  double widest;      /* largest e_j of the row: its LSE cannot be off by more */
  double
      alone; /* that of an LSE without the sink, which is of these keys however far below the sink they are */
  bool kept; /* false: the magnitude of some exponential is unknown */
  double least; /* fa_bound_least_spread; 0: roundings do not repeat */
  fa_bound_spread spread;
  bool overflows; /* its scores may not fit the kernel's formats */
  float max_v;
} fa_bound_row;

/* max: the row's largest score; sum: of exponentials relative to it. */
FA_BOTH void fa_bound_row_begin(int64_t n, double max, double sum, fa_bound_row *t) {
  memset(t, 0, sizeof *t);
  t->n = n;
  t->most = 1;
  t->kept = true;
  t->log_l = sum > 0 ? fabs(log(sum)) : 0;
  t->max = fabs(max);
}

/* A kernel takes a key that its list names n times as n keys: its maximum lacks log n, its sum has it more, and each of
 * the n weights is rounded by itself (docs/reference/bounds.md, "Lists of keys"). most: how often one is named at most. */
FA_BOTH void fa_bound_row_repeat(const fa_ref_call *c, double most, fa_bound_row *t) {
  if (t->n > 0 && t->n < c->p->topk.k) t->n = c->p->topk.k;
  t->most = most;
  const double lift = log(t->most);
  t->log_l += lift;
  t->max += lift;
  t->lifted = 16 * FA_F32_UNIT * lift;
}

/* Roundings of P in 8 bits: two logits that differ by less than an eighth have P that round alike. */
#define FA_COARSE_P 0x1p-6

/* Once n, log_l, max and lifted are final. */
FA_BOTH void fa_bound_row_extra(const fa_ref_call *c, fa_bound_row *t) {
  const fa_profile *p = c->profile;
  t->changes = fa_bound_changes(c, t->n);
  /* Without dropout the largest P is 1 and the next ones are where representable numbers are dense; times 1 /
   * (1 - p) they can be anywhere. */
  if (c->generic && (c->p->dropout.p > 0 || p->u_p > FA_COARSE_P) && p->u_p > 0)
    t->least = fa_bound_least_spread(c, p->u_p, t->n, false);
  t->spread.last = -INFINITY;
  t->spread.most = 4 * t->least;
  if (p->max_splits > 1) t->rounds = p->exp_scaled ? 2 : fmin((double)p->max_splits, (double)t->n);
  t->extra = (1 + t->changes) * p->eps_exp +
             t->rounds * (2 * p->eps_exp + p->eps_log + 4 * FA_F32_UNIT * (t->max + t->log_l)) + t->lifted;
}

/* What fa_element_weights needs of a row. */
typedef struct fa_bound_rounding {
  float floor, per_u, top, at_top;
} fa_bound_rounding;

FA_BOTH fa_bound_rounding fa_bound_row_rounding(const fa_ref_call *c, double most, double sum) {
  fa_bound_rounding out;
  const fa_profile *p = c->profile;
  memset(&out, 0, sizeof out);
  out.top = INFINITY;
  if (!(p->u_p > 0)) return out;
  /* in units of the row's largest weight, or of their sum where P is divided by it first */
  const double divided = p->p_kept ? 1 : sum;
  out.per_u = (float)(1 / p->u_p);
  const double smallest = p->p_descaled ? fmin(c->v_descale_least, 1.0) : 1;
  out.floor = (float)(most * p->floor_p / p->u_p / divided / (1 - c->p->dropout.p) / smallest);
  out.top = (float)((1 - 0x1p-20) / sum);
  out.at_top = c->p->dropout.p > 0 || most > 1 || p->max_rounded || p->p_kept || p->truncated_p > 0
                   ? 1
                   : 0x1p-12f; /* exp2(x s - m s) of the maximum is 1 except for one rounding of m s */
  return out;
}

/* Of the row's sum of exponentials: rounding of its additions. */
FA_BOTH double fa_bound_row_sum_error(const fa_ref_call *c, const fa_bound_row *t) {
  const double error = fa_bound_sum(c, c->profile->mma_block ? t->n / 4 + (int64_t)t->changes : t->n);
  return t->sink.share > 0 ? error + 2 * FA_F32_UNIT : error;
}

FA_BOTH double fa_bound_row_shift(const fa_bound_row *t, double sum_error) {
  return t->error_sum + t->sink.share * t->sink.error + sum_error;
}

/* y: the error of the sum that the LSE is the logarithm of, without its additions; size: the LSE's magnitude. */
FA_BOTH float fa_bound_row_lse(const fa_ref_call *c, const fa_bound_row *t, double y, double size,
                               double sum_error) {
  const fa_profile *p = c->profile;
  const double scores = t->kept && y <= 0.25 ? y * (1 + y) : t->widest;
  if (t->overflows) return INFINITY;
  return (float)(scores + sum_error + (1 + t->rounds) * (p->eps_log + 2 * FA_F32_UNIT * size) +
                 t->rounds * p->eps_exp + 3 * FA_F32_UNIT * t->log_l + FA_F32_UNIT * t->max +
                 p->u_lse * size);
}

/* What a magnitude of the debug matrix of dropout may be (ref/bounds/magnitudes.c). p: exp(score - row's maximum); widest, known:
 * of the row. */
typedef struct fa_bound_magnitude {
  float least, most;
} fa_bound_magnitude;

#define FA_FLUSHED 0x1p-125 /* below it exp may be 0 */
FA_BOTH fa_bound_magnitude fa_bound_magnitude_of(float p, double widest, bool known, const fa_ulp *ulp) {
  fa_bound_magnitude out;
  const double off = (1 + widest) * (1 + 0x1p-20), most = off + fa_element_half_ulp(off, ulp);
  const double before = known ? p / (off * off) : 0, least = before - fa_element_half_ulp(before, ulp);
  out.least = (float)(before < FA_FLUSHED || least < 0 ? 0 : least * (1 - 0x1p-20));
  out.most = (float)(known ? most : INFINITY);
  return out;
}

/* How far the row's sum may be off, relative; unknown: infinity. */
FA_BOTH float fa_bound_row_sum(const fa_bound_row *t, double sum_error) {
  const double shift = fa_bound_row_shift(t, sum_error);
  return (float)(t->kept && shift <= 0.25 ? shift / (1 - shift) : INFINITY);
}

/* What small values, and small sums of an accumulator of few bits, lose. */
FA_BOTH double fa_bound_lost_values(const fa_ref_call *c, int64_t n, double unit_v) {
  const fa_profile *p = c->profile;
  return p->operand_floor[FA_PRODUCT_PV] + p->operand_step[FA_PRODUCT_PV] * unit_v +
         fa_bound_sum_floor(c, FA_PRODUCT_PV, n) + p->floor_partials * p->max_splits;
}

/* The row of O may be infinite or NaN on the way. sum: the larger of the row's sums of exponentials. */
FA_BOTH bool fa_bound_row_overflows(const fa_ref_call *c, const fa_bound_row *t, double unit_v, double sum) {
  const fa_profile *p = c->profile;
  return t->overflows || 1 / (1 - c->p->dropout.p) > p->max_weight ||
         (p->max_splits > 1 && (double)t->max_v * sum > p->max_partials) ||
         (double)t->max_v * sum > fa_bound_sum_limit(c, FA_PRODUCT_PV) ||
         unit_v / 2 > p->operand_max[FA_PRODUCT_PV];
}

/* Whether the squares of a row's roundings say anything. */
FA_BOTH bool fa_bound_row_has_squares(const fa_ref_call *c, const fa_bound_row *t) {
  return c->generic && !(t->least > 0 && fa_bound_is_alike(&t->spread, t->least));
}

/* Whether the roundings of V are counted as independent errors of the pairs. scatters: the scores have such errors. */
FA_BOTH bool fa_bound_values_scatter(const fa_ref_call *c, bool scatters) {
  return scatters && c->generic && c->profile->operand[FA_PRODUCT_PV] > 0 && !c->profile->operands_cut;
}

/* Of a row of O. scatters: its scores have independent errors. */
FA_BOTH fa_settle_terms fa_bound_row_o(const fa_ref_call *c, const fa_bound_row *t, double unit_v, double sum,
                                       bool scatters, double sum_error) {
  fa_settle_terms out;
  const fa_profile *p = c->profile;
  const double kept = 1 - c->p->dropout.p, shift = fa_bound_row_shift(t, sum_error), grow = 1 / (1 - shift);
  /* V's few numbers of 8 bits round to one side in the mean: that much of the value, beside what scatters. */
  const double one_sided = fa_bound_values_scatter(c, scatters) ? p->operand[FA_PRODUCT_PV] : 0;
  double gamma = fa_bound_gamma(c, FA_PRODUCT_PV, t->n) +
                 (2 * t->changes + 2 * t->rounds + (c->p->dropout.p > 0 ? 3 : 0)) * FA_F32_UNIT +
                 (fa_bound_values_scatter(c, scatters) ? 0 : p->operand[FA_PRODUCT_PV]) +
                 (p->p_kept ? 2 * FA_F32_UNIT : 0) + (t->rounds > 0 ? 2 * p->u_partials : 0);
  const bool twice = c->p->dropout.p > 0 && p->u_dropout > 0; /* P is rounded, and P / (1 - p) again */
  double u_p = twice ? 2 * p->u_p : p->u_p, noise = twice ? sqrt(2.0) * p->u_p : p->u_p;
  if (twice) gamma += p->u_dropout;
  if (u_p == 0 && scatters) u_p = noise = fa_bound_unit(0);
  /* The sum, its rescalings, the quotient and the factors of splits may be subnormal; dropout scales last. */
  const double steps = (double)t->n + t->changes + 2 * t->rounds + 2;
  double tiny = (steps * FA_F32_TINY + p->floor_operand + fa_bound_lost_values(c, t->n, unit_v)) / kept +
                fa_bound_lost(t->n, unit_v);
  if (p->floor_o_descaled > 0) tiny += p->floor_o_descaled * c->v_descale_most;
  const bool lost = !t->kept || shift > 0.25; /* at least a mean of V */
  /* The sink may be a factor behind a finished O, made of an LSE that has its own error. */
  const double factor =
      t->sink.share > 0 ? t->sink.share * (shift + p->eps_log + 4 * FA_F32_UNIT * t->max) + 3 * FA_F32_UNIT
                        : 0;
  out.unit = unit_v;
  out.lambda = c->lambda;
  out.exact = 0;
  out.u_narrow = 1.0001 * u_p;
  out.u_noise = noise;
  out.by_errors = lost ? 0 : 1.0001 * grow * unit_v;
  out.gamma = lost ? 0 : 1.0001 * gamma;
  out.by_value = 1.0001 * (lost ? 1
                                : grow * (shift + factor) + (4 + 2 * p->descales) * FA_F32_UNIT +
                                      p->truncated_p + p->u_o_descaled + one_sided);
  out.add =
      fa_bound_row_overflows(c, t, unit_v, sum) ? INFINITY : 1.0001 * (lost ? 2 * t->max_v / kept : tiny);
  out.zero = 1;
  return out;
}

#endif
