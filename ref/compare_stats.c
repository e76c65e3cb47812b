/* Second tier: errors that stay inside every element's bound, but are together too large, too small or
 * one-sided for the arithmetic that the kernel says it uses (a truncated instead of a rounded P, say). */
#include "ref/compare_internal.h"

#include <stdio.h>

#define MIN_ELEMENTS 4096

/* Where rms and |bias| of err / sigma lie for correct kernels. Below the lower edge a kernel is more accurate
 * than its profile: either the profile or the kernel is not what it claims. */
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
  const double diffuse =
      s->n_diffuse < MIN_ELEMENTS ? INFINITY : sqrt(s->diffuse_squares / (double)s->n_diffuse);
  const bool not_high = v->rms <= b.rms_high, not_low = diffuse >= b.rms_low,
             centred = fabs(v->bias) <= b.bias;
  v->stat_bad = !(not_high && not_low && centred);
  if (!not_high)
    snprintf(v->stat_why, sizeof v->stat_why, "rms %.3g of sigma is above %g", v->rms, b.rms_high);
  else if (!centred)
    snprintf(v->stat_why, sizeof v->stat_why, "bias %.3g of sigma is beyond %g", v->bias, b.bias);
  else if (!not_low)
    snprintf(v->stat_why, sizeof v->stat_why, "rms %.3g of sigma is below %g: more accurate than profile %s",
             diffuse, b.rms_low, opt->profile->name);
}
