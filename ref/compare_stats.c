/* Second tier: errors that stay inside every element's bound, but are together too large, too small or
 * one-sided for the arithmetic that the kernel says it uses (a truncated instead of a rounded P, say). */
#include "ref/compare_internal.h"

#define MIN_ELEMENTS 4096

/* Where rms and |bias| of err / sigma lie for correct kernels. The lower edge says "more accurate than its
 * profile": either the profile or the kernel is not what it claims. */
typedef struct band {
  double rms_low, rms_high, bias;
} band;

static band band_of(fa_tensor_id id, const fa_profile *profile) {
  const bool narrow = profile != NULL && profile->u_p > 0;
  (void)id;
  return narrow ? (band){0.5, 1.3, 0.25} : (band){0, 1.3, 0.5};
}

void fa_stats_judge(const fa_stats *s, const fa_compare_options *opt, fa_verdict *v) {
  v->n_stat = s->n;
  if (s->n == 0) return;
  v->rms = sqrt(s->sum_squares / (double)s->n);
  v->bias = s->sum / (double)s->n;
  if (!opt->generic || s->n < MIN_ELEMENTS) return;
  const band b = band_of(v->id, opt->profile);
  const bool ok = v->rms >= b.rms_low && v->rms <= b.rms_high && fabs(v->bias) <= b.bias;
  v->stat_bad = !ok;
}
