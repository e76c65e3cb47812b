/* Order statistics: what can be said of times without knowing how they are distributed. */
#ifndef FA_FUZZ_TIMING_ORDER_H
#define FA_FUZZ_TIMING_ORDER_H

typedef struct fa_median {
  int n;
  double median, low,
      high; /* low .. high: holds the distribution's median with at least 95 %; of fewer than six
                               samples there is none, and it is their range */
} fa_median;

/* Sorts the samples. n >= 1. */
fa_median fa_median_of(double *sample, int n);

#endif
