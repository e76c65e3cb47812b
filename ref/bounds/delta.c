/* How far a kernel's delta may be from the reference's, by where it comes from (docs/reference/bounds.md,
 * "Where delta comes from"). */
#include "ref/bounds/backward.h"
#include "ref/bounds/scattered.h"

#include <math.h>

static const double u = 0x1p-24;

/* The kernel's own O is unknown: how far the forward's bounds allow it to be off. rounded: by the O that is returned,
 * after its last rounding. */
static double forward_slack(const fa_ref_call *c, const fa_ref_rows *r, int64_t k, const fa_ref_scratch *w,
                            bool rounded) {
  const fa_want *o = &c->forward->t[FA_T_O];
  int64_t at = fa_ref_q_index(c, r->e, r->h, r->row[k], c->dv);
  double worst = 0, sure = 0, square = 0;
  for (int64_t x = 0; x < c->dv; ++x) {
    double g = fabs(w->d_o[k * c->dv + x]), noise = o->noise[at + x];
    double half = fa_half_ulp(o->dtype, fabs(o->value[at + x]) + o->quant[at + x] + o->accum[at + x]);
    if (!rounded) half = 0;
    worst += g * (o->quant[at + x] + o->accum[at + x] + half);
    sure += g * o->accum[at + x];
    square += g * g * (noise * noise + half * half);
  }
  if (isnan(worst)) return INFINITY; /* dO is 0 where O may be infinite: their product is NaN */
  return c->generic ? fmin(worst, sure + 1.5 * c->lambda * sqrt(square)) : worst;
}

static double dlse_of(const fa_ref_call *c, const fa_ref_rows *r, int64_t k) {
  const fa_tensor *t = &c->in->t[FA_T_DLSE];
  return t->data ? fabs(fa_ref_lse_get(c, t, r->e, r->h, r->row[k])) : 0;
}

/* Rounding of the kernel's own sum dO.O - dLSE in f32. */
static double product_rounding(const fa_ref_call *c, int64_t k, const fa_ref_scratch *w) {
  double size = 0;
  for (int64_t x = 0; x < c->dv; ++x) size += fabs(w->d_o[k * c->dv + x] * w->o[k * c->dv + x]);
  return fa_bound_delta_products(c, size);
}

/* Where the products are rounded to the element type first, and their sum again. */
static double narrow_products(const fa_ref_call *c, int64_t k, const fa_ref_scratch *w) {
  const fa_profile *p = c->profile;
  if (p->u_delta == 0) return 0;
  double worst = 0, squares = 0;
  for (int64_t x = 0; x < c->dv; ++x) {
    const double each = p->u_delta * fabs(w->d_o[k * c->dv + x] * w->o[k * c->dv + x]) + p->floor_delta;
    worst += each;
    squares += each * each;
  }
  const double sum = c->generic ? fmin(worst, c->lambda * sqrt(squares)) : worst;
  return 1.0001 * (sum + p->u_delta * (fabs(w->delta[k]) + sum) + p->floor_delta);
}

void fa_bound_delta_add(const fa_ref_call *c, const fa_ref_scratch *w, fa_bound_scratch *b, int64_t k,
                        int64_t n, int64_t begin, int64_t end) {
  const fa_profile *p = c->profile;
  const bool dropout = c->p->dropout.p > 0;
  const double unit_dp = b->unit_do * b->unit_v, k_d = fa_bound_dp_error(c) * unit_dp;
  const double one_sided = p->operands_cut ? p->operand[FA_PRODUCT_DP] : 0;
  const int times = dropout ? 2 : 1; /* dP is rounded, and Z dP again */
  const double u_each = p->u_p_in_ds + p->u_dp * times, floor_dp = p->floor_dp * times;
  fa_bound_delta_sum *sum = &b->row_delta[k];
  for (int64_t j = begin; j < end; ++j) {
    const int64_t at = k * n + j;
    const double z = dropout ? w->z[j - begin] : 1, pz = w->s[at] * z;
    const double size = fabs(w->dp[at]), e = b->e_logit[at];
    const double scattered = (b->e_score ? b->e_score[at] * size : 0) + (b->e_dp ? b->e_dp[at] * unit_dp : 0);
    const double lost = fmin(p->floor_p, w->s[at] * (1 + e)) * z; /* of a P below the normal range, in Z P */
    const double rounded = pz * (u_each * size + floor_dp) + lost * size;
    const double each = pz * scattered + rounded;
    const double pe = fmax(w->s[at], FA_TINY_WEIGHT) * e * z; /* an unknown P is not known to be small */
    sum->sure += pe * size + (pz + pe) * k_d * b->d[at] + pz * ((4 * u + one_sided) * size + FA_F32_TINY);
    sum->size += pz * size;
    sum->worst += c->lambda * pz * scattered + rounded;
    sum->squares += each * each;
  }
}

static double sum_error(const fa_ref_call *c, const fa_ref_rows *r, int64_t k, const fa_bound_scratch *b) {
  const fa_bound_delta_sum *s = &b->row_delta[k];
  const int64_t n = r->hi[k] - r->lo[k];
  const double scattered = c->generic ? fmin(s->worst, c->lambda * sqrt(s->squares)) : s->worst;
  return 1.0001 * (s->sure + scattered + fa_bound_sum(c, n) * s->size) + (double)n * FA_F32_TINY;
}

double fa_bound_delta(const fa_ref_call *c, const fa_ref_rows *r, int64_t k, const fa_ref_scratch *w,
                      const fa_bound_scratch *b) {
  const fa_profile *p = c->profile;
  const double size = fabs(w->delta[k]) + dlse_of(c, r, k), last = u * size;
  const fa_delta_source from = p->delta;
  if (from == FA_DELTA_SUM_P_DP) {
    const double factor = c->p->dropout.p > 0 ? p->u_dropout : 0; /* one rounding, the same for all pairs */
    return sum_error(c, r, k, b) + last + factor * size;
  }
  const bool stored = from == FA_DELTA_STORED_O, given = stored && c->given_o;
  const double slack = given ? 0 : forward_slack(c, r, k, w, stored);
  return product_rounding(c, k, w) + narrow_products(c, k, w) + last + slack;
}
