/* Rows whose logits differ by less than a rounding: their P round alike, and the sum of such roundings is
 * more than sqrt(n) times one (docs/reference/bounds.md, "Rows that round alike"). */
#include "ref/bounds/terms.h"

#include <math.h>

void fa_bound_spread_begin(fa_bound_spread *s, double most) {
  *s = (fa_bound_spread){.last = -INFINITY, .most = most};
}

void fa_bound_spread_add(fa_bound_spread *s, const double *x, int64_t n) {
  double last = s->last;
  for (int64_t j = 0; j < n; ++j) {
    if (x[j] == -INFINITY) continue;
    const double apart = fabs(x[j] - last);
    if (last != -INFINITY) {
      s->sum += apart < s->most ? apart : s->most;
      ++s->n;
    }
    last = x[j];
  }
  s->last = last;
}

double fa_bound_least_spread(const fa_ref_call *c, double u, int64_t n, bool by_keys) {
  const double some = sqrt((double)n) / 2;
  return u * (by_keys && c->d <= 4 && some > 2 ? some : 2);
}

bool fa_bound_is_alike(const fa_bound_spread *s, double least) {
  return s->sum < 1.2 * least * (double)s->n;
}
