/* The formulas of sinks' bounds, by row (docs/reference/bounds.md, "Sinks"); as formula.h. */
#ifndef FA_REF_BOUNDS_SINK_FORMULA_H
#define FA_REF_BOUNDS_SINK_FORMULA_H

#include "ref/bounds/formula.h"
#include "ref/tiles/lse.h"

FA_BOTH double fa_bound_sink_grown(double eta) {
  return expm1(fmin(eta, 30.0));
}

/* A row's largest score, and its sum of exponentials relative to it: of its keys, and of these and the sink. */
typedef struct fa_bound_maxima {
  double key_m, key_l, m, l;
} fa_bound_maxima;

/* A kernel's maximum is that of all logits, or that of the keys', to which it adds the sink's exponential. */
FA_BOTH void fa_bound_row_either_maximum(const fa_bound_maxima *x, fa_bound_row *t) {
  const double to_keys = fabs(x->m + log(x->l) - x->key_m);
  const double alone = fabs(x->key_m + log(x->key_l) - x->m);
  t->log_l = fmax(fmax(t->log_l, to_keys), fmax(alone, fabs(log(x->key_l))));
  t->max = fmax(t->max, fabs(x->key_m));
}

/* Of the forward; extra: of every exponent of the row. */
FA_BOTH fa_bound_sink fa_bound_sink_of_maxima(const fa_bound_maxima *x, double sink, double extra) {
  fa_bound_sink out;
  out.share = out.error = 0;
  if (sink == -INFINITY || x->key_l == 0) return out;
  const double most = fmax(fabs(x->key_m), fabs(sink));
  out.share = exp(sink - x->m) / x->l;
  out.error =
      fa_bound_sink_grown(FA_F32_UNIT * (2 * fabs(sink - x->key_m) + 3 * fabs(sink) + 3 * most) + extra);
  return out;
}

/* Of the backward, which makes the share from an LSE that has the sink in it. */
FA_BOTH fa_bound_sink fa_bound_sink_of_lse(const fa_ref_call *c, double sink, fa_ref_lse lse,
                                           double lse_slack) {
  fa_bound_sink out;
  out.share = out.error = 0;
  if (sink == -INFINITY) return out;
  const double eta = FA_F32_UNIT * (2 * fabs(sink - lse.value) + fabs(sink) + 3 * fabs(lse.value)) +
                     c->profile->eps_exp + lse_slack;
  out.share = exp(sink - lse.value - lse.rest);
  out.error = fa_bound_sink_grown(eta);
  return out;
}

/* What adding the sink to an LSE that leaves it out may cost an exponent of the backward; 0: nothing is added. lse: the sum. */
FA_BOTH double fa_bound_sink_joined(const fa_ref_call *c, double sink, double lse) {
  if (!fa_ref_sink_left_out(c) || sink == -INFINITY) return 0;
  return 2 * c->profile->eps_exp + c->profile->eps_log + 8 * FA_F32_UNIT * (fabs(sink) + fabs(lse));
}

/* The error of the sum that the LSE is the logarithm of: with the sink, or of the keys alone, whose shares add up to less than
 * 1. Where they are nearly nothing, what is known of each is that it is nothing: infinity. */
FA_BOTH double fa_bound_row_error_of_sum(const fa_ref_call *c, const fa_bound_maxima *x,
                                         const fa_bound_row *t) {
  if (!fa_ref_sink_left_out(c)) return t->error_sum + t->sink.share * t->sink.error;
  const double share = exp(x->key_m - x->m) * x->key_l / x->l;
  return share > 0x1p-64 ? t->error_sum / share : INFINITY;
}

/* The LSE of a row that sees no key is its sink, which is finite. */
FA_BOTH float fa_bound_sink_alone(const fa_profile *p, double sink) {
  const double size = fabs(sink), rounds = p->max_splits > 1 ? p->max_splits : 0;
  return (float)((1 + rounds) * (p->eps_log + p->eps_exp + 4 * FA_F32_UNIT * size) + 4 * FA_F32_UNIT * size);
}

/* ---- the gradient of a head's sink ---- */

/* A row's part of the sum: minus its share times delta. */
typedef struct fa_bound_dsink {
  double value, size, error; /* size: of magnitudes */
} fa_bound_dsink;

FA_BOTH fa_bound_dsink fa_bound_dsink_of_row(const fa_bound_sink *sink, double delta, double e_delta) {
  fa_bound_dsink out;
  const double size = fabs(delta);
  out.value = -sink->share * delta;
  out.size = out.error = 0;
  if (sink->share == 0) return out;
  out.size = sink->share * size;
  out.error = sink->share * (size * (sink->error + 4 * FA_F32_UNIT) + (1 + sink->error) * e_delta) +
              0x1p-126 * (1 + size);
  return out;
}

/* Of the sum of n rows. */
FA_BOTH float fa_bound_dsink_sum(const fa_ref_call *c, int64_t n, double size, double error) {
  float accum = (float)(1.0001 * (error + fa_bound_sum(c, n) * size));
  if (size > 0 && c->profile->dsinks_atomic) accum += (float)((double)n * (FA_F32_UNIT * size + 0x1p-126));
  return accum;
}

#endif
