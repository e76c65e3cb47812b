#include "tests/bench/median.h"

#include <stddef.h>
#include <stdlib.h>
#include <time.h>

enum { BATCHES = 101, WARM_UP = 5 };

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double bench_median_us(void (*f)(void *data), void *data, int n, void (*wait)(void)) {
  double times[BATCHES];
  for (int b = -WARM_UP; b < BATCHES; ++b) {
    const double begin = now_us();
    for (int i = 0; i < n; ++i) f(data);
    if (b >= 0) times[b] = (now_us() - begin) / n;
    if (wait) wait();
  }
  qsort(times, BATCHES, sizeof *times, by_value);
  return times[BATCHES / 2];
}
