#include "fuzz/timing/order.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The largest rank r (from 0) for which sample[r] .. sample[n - 1 - r] still holds the median with 95 %: each sample lies below
 * it with probability 1/2, so at most r of n do with the binomial's lower tail, which must not exceed 2.5 %. */
static int rank_of(int n) {
  double tail = 0, term = pow(0.5, n);
  int r = 0;
  for (; r < n / 2; ++r) {
    tail += term;
    if (tail > 0.025) break;
    term *= (double)(n - r) / (double)(r + 1);
  }
  return r > 0 ? r - 1 : 0;
}

fa_median fa_median_of(double *sample, int n) {
  qsort(sample, (size_t)n, sizeof *sample, ascending);
  const int r = rank_of(n);
  return (fa_median){.n = n,
                     .median = 0.5 * (sample[(n - 1) / 2] + sample[n / 2]),
                     .low = sample[r],
                     .high = sample[n - 1 - r]};
}
