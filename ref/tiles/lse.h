/* The log of a row's sum of exponentials, without losing the sum beside a large maximum. */
#ifndef FA_REF_TILES_LSE_H
#define FA_REF_TILES_LSE_H

#include "ref/engine/call.h"
#include "ref/math/rows.h"

#include <math.h>

/* value + rest, unevaluated: where the largest score is -3e38, value is that score and rest the whole log of the
 * sum. */
typedef struct fa_ref_lse {
  double value; /* the nearest double */
  double rest;  /* what it lacks; 0 if it is not finite */
} fa_ref_lse;

/* The largest score, and the sum of exp(score - max). */
FA_BOTH fa_ref_lse fa_ref_lse_of(double max, double sum) {
  fa_ref_lse out;
  const double log_sum = log(sum), value = max + log_sum;
  out.value = value;
  out.rest = 0;
  if (!isfinite(value)) return out;
  const double added = value - max; /* Knuth's exact error of a sum */
  out.rest = (max - (value - added)) + (log_sum - added);
  return out;
}

/* ---- with a head's sink ---- */

/* The LSE that is returned leaves the sinks out. */
FA_BOTH bool fa_ref_sink_left_out(const fa_ref_call *c) {
  return c->p->sinks.present && !c->p->sinks.in_lse;
}

/* A row's largest logit and sum of exponentials with its sink, which there is; by: what sums of the keys are multiplied by. */
typedef struct fa_ref_joined {
  double m, l, by;
} fa_ref_joined;
FA_BOTH fa_ref_joined fa_ref_sink_joined(double m, double l, double sink) {
  fa_ref_joined out;
  out.m = fmax(m, sink);
  out.by = exp(m - out.m);
  out.l = l * out.by + exp(sink - out.m);
  return out;
}

/* log(exp(keys) + exp(sink)) */
FA_BOTH fa_ref_lse fa_ref_sink_add(fa_ref_lse keys, double sink) {
  if (sink == -INFINITY || keys.value == INFINITY) return keys; /* +inf: the sign of a row without keys */
  const double top = fmax(keys.value, sink);
  return fa_ref_lse_of(top, exp(keys.value - top + keys.rest) + exp(sink - top));
}

/* ---- of a call on the CPU ---- */

/* Turns n scores into P; -inf becomes 0. */
void fa_ref_lse_probabilities(const fa_rows *rows, double *x, int64_t n, fa_ref_lse lse);

/* Whether the backward's P of a row comes from the subject's own LSE. Otherwise it comes from the reference's
 * forward: without a given LSE, where that is too coarse, and for a kernel that keeps P. */
bool fa_ref_lse_is_given(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i);
/* The LSE that P is made from: the sink is in it, whether or not the returned one holds it. */
fa_ref_lse fa_ref_lse_load(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i);

#endif
