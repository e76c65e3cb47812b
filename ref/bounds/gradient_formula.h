/* The formulas of the bounds of gradients, by row, by key and by call; as formula.h. */
#ifndef FA_REF_BOUNDS_GRADIENT_FORMULA_H
#define FA_REF_BOUNDS_GRADIENT_FORMULA_H

#include "ref/bounds/formula.h"

/* Whether operands of a product have roundings that are independent from pair to pair and worth two more products. */
FA_BOTH bool fa_bound_coarse_operands(const fa_profile *p, fa_product which) {
  return p->operand[which] > 0x1p-20 || p->operand_step[which] > 0;
}

/* The other errors of dP's product, relative to |dO| |V|^T. */
FA_BOTH double fa_bound_dp_error(const fa_ref_call *c) {
  const fa_profile *p = c->profile;
  const bool apart = c->generic && fa_bound_coarse_operands(p, FA_PRODUCT_DP);
  const double step = c->generic ? 0 : 2 * p->operand_step[FA_PRODUCT_DP];
  return fa_bound_gamma(c, FA_PRODUCT_DP, c->dv) + (apart ? 0 : p->operand[FA_PRODUCT_DP]) + step;
}

/* What rounding takes from a small dS: with every operation rounded, before and after it is multiplied by the scale. */
FA_BOTH double fa_bound_floor_of_ds(const fa_ref_call *c) {
  const fa_profile *p = c->profile;
  const double scale = fabs(c->p->scale);
  if (p->u_scores > 0) return p->floor_ds * (1 + 1 / scale);
  return p->ds_scaled && scale > 0 ? p->floor_ds / scale : p->floor_ds;
}

/* The same as fa_element_rounded_like takes it, in units of dS. */
FA_BOTH float fa_bound_floor_in_units(const fa_ref_call *c, double per_unit) {
  return (float)(fa_bound_floor_of_ds(c) / c->profile->u_ds * per_unit);
}

/* Dropped pairs have dS = -P delta. Where the P of a row are nearly equal, so are these dS, and they round
 * alike. Below the normal range the spacing of numbers is coarser. */
FA_BOTH double fa_bound_least_spread_of_ds(const fa_ref_call *c, int64_t n, double delta) {
  const fa_profile *p = c->profile;
  const double size = fabs(delta) / (double)n;
  if (!c->generic || !(c->p->dropout.p > 0) || p->u_ds == 0 || !(size > 0)) return 0;
  return fa_bound_least_spread(c, fmax(p->u_ds, fa_bound_floor_of_ds(c) / size), n, true);
}

/* Rounding of the kernel's own sum dO.O - dLSE in f32; size: sum |dO O|. */
FA_BOTH double fa_bound_delta_products(const fa_ref_call *c, double size) {
  return (double)c->dv * (FA_F32_UNIT * size + 2 * FA_F32_TINY);
}

/* What dP loses to operands near 0 and to subnormal numbers. */
FA_BOTH double fa_bound_lost_dp(const fa_ref_call *c, double unit_do, double unit_v) {
  const fa_profile *p = c->profile;
  const double floor = p->floor_operand + p->operand_floor[FA_PRODUCT_DP];
  return ((double)c->dv * ((unit_do + unit_v) * floor + FA_F32_TINY) +
          fa_bound_sum_floor(c, FA_PRODUCT_DP, c->dv) + p->floor_dp) /
             (1 - c->p->dropout.p) +
         (c->p->dropout.p > 0 ? p->floor_dp : 0); /* Z dP is rounded again */
}

/* delta's error and what dP loses, in the unit of dS. */
FA_BOTH float fa_bound_e_delta(double error, double lost, double unit_ds) {
  const double e_delta = (error + lost) / unit_ds * 1.0001;
  return e_delta < FA_GREATEST_WEIGHT ? (float)e_delta : FA_GREATEST_WEIGHT;
}

/* Relative rounding of Z dP and delta. */
FA_BOTH float fa_bound_u_dp(const fa_ref_call *c) {
  const fa_profile *p = c->profile;
  const bool dropout = c->p->dropout.p > 0;
  return (float)((dropout ? 5 : 2) * FA_F32_UNIT + (dropout ? p->u_dropout : 0) +
                 (p->operands_cut ? p->operand[FA_PRODUCT_DP] : 0));
}

/* Underflow of a dS / unit, plus what the products computed here lose, in these units. */
FA_BOTH float fa_bound_tiny_ds(double per_unit) {
  return (float)(FA_F32_TINY * (per_unit + 8));
}

/* The largest |dS| / unit that does not overflow its narrow type. */
FA_BOTH float fa_bound_most_ds(const fa_ref_call *c, double per_unit) {
  const fa_profile *p = c->profile;
  return (float)(p->max_p / (p->ds_scaled ? fmax(1.0, fabs(c->p->scale)) : 1) * per_unit);
}

/* Whether dS goes through derivatives of a score chain. */
FA_BOTH bool fa_bound_has_chain(const fa_problem *p) {
  return p->softcap > 0 || p->score_mod;
}

/* An upper bound of all |dS| = P |Z dP - delta|. */
FA_BOTH double fa_bound_greatest_ds(const fa_ref_call *c, double unit_ds) {
  return (1 + 2 * (double)c->dv / (1 - c->p->dropout.p)) * unit_ds;
}

/* What an absolute error of operands adds to a term of dQ or dK where the score chain is steep, whose factor greatest_ds does
 * not include. unit_ds: of the head where it is largest. */
FA_BOTH double fa_bound_steep(const fa_ref_call *c, double unit_ds, double steepest) {
  return 1.0001 * fabs(c->p->scale) * fa_bound_greatest_ds(c, unit_ds) * (steepest - 1) *
         c->profile->floor_operand;
}

/* Of an element, whose terms are so many; where there is none, there is nothing to add. */
FA_BOTH float fa_bound_add_steep(double value, float accum, double terms, double steep) {
  return value != 0 || accum != 0 ? accum + (float)(terms * steep) : accum;
}

/* ---- dBias ---- */

/* A pair's share of an element's errors, or magnitudes, which are in units of dS. */
FA_BOTH float fa_bound_dbias_term(double size, double unit_ds) {
  return (float)(size * unit_ds * 1.0001);
}

/* How many pairs are summed in an element. */
FA_BOTH int64_t fa_bound_dbias_terms(const fa_problem *p) {
  const int64_t batch = p->bias.per_batch ? 1 : p->batch, heads = p->bias.per_head ? 1 : p->heads_q;
  return batch * heads * (p->bias.per_query ? 1 : p->seqlen_q);
}

/* Of a sum of n elements in f32: their errors, and magnitudes. */
FA_BOTH float fa_bound_dbias(const fa_profile *f, int64_t n, float errors, float size) {
  const double growth = n > 1 ? (double)n * 0x1p-24 : 0, slack = 1.0001 + growth;
  return (float)(slack * (errors + growth * size) + (double)n * (FA_F32_TINY + f->floor_dbias));
}

/* ---- gradients of captured buffers ---- */

/* One element's sums over the pairs that read it. */
typedef struct fa_bound_element {
  double value, error, size, squares,
      before; /* size: sum of magnitudes; before: the same before P (dP - delta) cancels */
  int64_t n;
} fa_bound_element;

/* A pair's derivative of score_mod by the element, v, goes into it with g = P (Z dP - delta). p: P Z. */
typedef struct fa_bound_contribution {
  double g, g_error, p, delta, v, v_error;
} fa_bound_contribution;

FA_BOTH double fa_bound_times(double a,
                              double b) { /* an infinite error means unknown, whatever it is multiplied by */
  return isinf(a) || isinf(b) ? INFINITY : a * b;
}

FA_BOTH void fa_bound_element_add(const fa_bound_contribution *x, bool bounds, fa_bound_element *to) {
  const double term = x->g * x->v;
  to->value += term;
  to->n += 1;
  if (!bounds) return;
  to->error += fa_bound_times(x->g_error, fabs(x->v) + x->v_error) + fa_bound_times(fabs(x->g), x->v_error);
  to->size += fabs(term);
  to->squares += term * term;
  to->before += (fabs(x->g) + 2 * x->p * fabs(x->delta)) * fabs(x->v);
}

FA_BOTH void fa_bound_element_join(const fa_bound_element *from, fa_bound_element *to) {
  to->value += from->value;
  to->error += from->error;
  to->size += from->size;
  to->squares += from->squares;
  to->before += from->before;
  to->n += from->n;
}

FA_BOTH float fa_bound_clamped(double x) {
  return x < FA_GREATEST_WEIGHT ? (float)x : FA_GREATEST_WEIGHT;
}

/* Its bound: terms summed in f32, in any order. Never read: exactly 0. */
FA_BOTH float fa_bound_element_accum(const fa_ref_call *c, const fa_bound_element *s) {
  double size = s->size;
  if (s->n == 0) return 0;
  if (c->generic) size = fmin(size, fabs(s->value) + 4 * sqrt(s->squares));
  return fa_bound_clamped(1.0001 * (s->error + (fa_bound_sum(c, s->n) + 0x1p-23) * size) +
                          (double)s->n * 0x1p-126);
}

/* Turns one element's scaled sums into quant, accum and noise; n terms were summed. */
typedef struct fa_bound_sums {
  double unit, gamma, tiny;
  double u_narrow, u_noise; /* of the roundings to the narrow type: worst-case sum and root-sum-square */
  double slack;             /* of the float32 sums that the bound is computed from */
  double exact;             /* scaled squares of terms that round without error; not in the given squares */
  double by_value;          /* of the element itself: roundings to one side */
  double limit, raw; /* no bound where the sum of magnitudes is more; raw: its unit, before it is scaled */
} fa_bound_sums;

/* u_first, u_second: two independent roundings of each term. most: the largest factor of a product's operand. */
FA_BOTH fa_bound_sums fa_bound_sums_of(const fa_ref_call *c, fa_product which, int64_t n, double unit,
                                       double u_first, double u_second, double most) {
  fa_bound_sums out;
  const fa_profile *p = c->profile;
  const double blocks = fa_bound_changes(c, n), floor = p->floor_operand + p->operand_floor[which];
  const double after = (double)(n + 2) * (1 + fabs(c->p->scale)) / (1 - c->p->dropout.p);
  out.unit = unit;
  out.gamma = fa_bound_gamma(c, which, n) + (blocks + (c->p->dropout.p > 0 ? 5 : 2)) * FA_F32_UNIT +
              p->operand[which];
  out.u_narrow = u_first + u_second;
  out.u_noise = hypot(u_first, u_second);
  out.tiny = after * FA_F32_TINY + (double)n * most * floor + fa_bound_lost(n, unit) +
             fa_bound_sum_floor(c, which, n) * (1 + fabs(c->p->scale)) / (1 - c->p->dropout.p);
  out.slack = 1.0001 + 0x1p-24 * (double)n;
  out.exact = out.by_value = out.raw = 0;
  out.limit = INFINITY;
  return out;
}

/* For a kernel that adds tiles of rows in memory: each tile costs one more f32 rounding and one flushed
 * subnormal. A head whose rows do not start at a tile has one more tile, and the convert step sums the heads.
 * after: the factor applied to the sum. */
FA_BOTH void fa_bound_add_in_memory(const fa_ref_call *c, int64_t rows, double after, fa_bound_sums *t) {
  const fa_profile *p = c->profile;
  if (!p->dkv_atomic) return;
  const double n = (double)c->group * ((double)rows / p->block_m + 3);
  t->gamma += n * FA_F32_UNIT;
  t->tiny += n * fabs(after) * p->floor_dkv;
}

/* Whether a group's heads each round their part of dK and dV to the I/O type. */
FA_BOTH bool fa_bound_heads_apart(const fa_ref_call *c) {
  return c->profile && c->profile->gqa_partials_in_io && c->group > 1;
}

/* What these roundings cost an element: a subnormal part is rounded to a whole number of the smallest. parts: sum of
 * magnitudes; io: unit roundoff and smallest number of that type. */
typedef struct fa_bound_io {
  double unit, least;
} fa_bound_io;
FA_BOTH float fa_bound_add_parts(const fa_ref_call *c, const fa_bound_io *io, float accum, float parts) {
  return parts > 0 ? accum + (float)(parts * io->unit + (double)c->group / 2 * io->least) : accum;
}

/* What settling an element needs of its sums. */
FA_BOTH fa_settle_terms fa_bound_settle_terms(const fa_ref_call *c, const fa_bound_sums *t) {
  fa_settle_terms out;
  const double unit = t->unit * t->slack;
  out.unit = unit;
  out.lambda = c->lambda;
  out.exact = t->exact;
  out.u_narrow = t->u_narrow;
  out.u_noise = t->u_noise;
  out.by_errors = unit;
  out.gamma = t->gamma;
  out.by_value = 2 * FA_F32_UNIT + t->by_value;
  out.add = t->tiny;
  out.zero = 0; /* no visible pair: exactly 0 */
  return out;
}

#endif
