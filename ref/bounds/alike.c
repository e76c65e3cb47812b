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
