/* Loops over one row of a tile, in double: built once per instruction set (rows_base.c, rows_avx2.c,
 * rows_avx512.c), chosen at run time. No fma and fixed summation order: the same bits from each. */
#ifndef FA_REF_ROWS_H
#define FA_REF_ROWS_H

#include <stdint.h>

typedef struct fa_rows {
  double (*max)(const double *x, int64_t n); /* -inf for n == 0 */
  /* x[j] = exp(x[j] - shift), 0 for -inf whatever the shift; returns the sum. Relative error of each < 2^-51.
   */
  double (*exp)(double *x, int64_t n, double shift);
  void (*scale)(double *x, int64_t n, double by);
  void (*multiply)(double *x, const double *y, int64_t n);
  /* p becomes p * z, dp becomes p * (z * dp - delta); z NULL: all 1. */
  void (*dscore)(double *p, double *dp, const double *z, double delta, int64_t n);
  /* ds[j] *= 1 - tanh[j]^2, where p[j] is not 0 (elsewhere tanh may be unset) */
  void (*dsoftcap)(double *ds, const double *tanh, int64_t n);
} fa_rows;

extern const fa_rows fa_rows_base, fa_rows_avx2, fa_rows_avx512;
const fa_rows *fa_rows_best(void);

#endif
