/* Loops over one row of a tile, in double, built once per instruction set (rows_base.c, rows_avx2.c,
 * rows_avx512.c) and chosen at run time. All give the same bits: fma only where written, and a fixed order of
 * summation. (On a machine without fma, the C library's is slow but correct.) */
#ifndef FA_REF_MATH_ROWS_H
#define FA_REF_MATH_ROWS_H

#include "ref/math/element.h"

#include <stdbool.h>
#include <stdint.h>

/* One row of a tile for the bounds of O (docs/reference/bounds.md): inputs, then outputs, n of each. */
typedef struct fa_row_probabilities {
  const double *p;    /* exp(x - L) */
  const double *z;    /* dropout factors; NULL: all 1 */
  const float *e;     /* relative error of p */
  float floor;        /* a P below this is rounded like one of this size, */
  float per_u;        /* 1 / unit roundoff: but by no more than itself */
  float top;          /* a p of at least this is the row's largest: 1 in the kernel, rounded without error, */
  float at_top;       /* so its square is multiplied by this factor squared */
  float *w, *w2, *we; /* p z (at least floor), its square (never underflowing), p z e */
} fa_row_probabilities;

/* One row of a tile for the bounds of the gradients; y = (z dP - delta) / unit. */
typedef struct fa_row_gradient {
  const double *p, *dp, *z;   /* before fa_rows.dscore */
  const float *e, *d;         /* relative error of p; |dO| |V|^T in scaled units */
  const float *cap, *cap_err; /* softcap's derivative and its absolute error; NULL: 1 and 0 */
  double delta, per_unit;     /* per_unit = 1 / unit */
  float k_d, e_delta, u_dp;   /* error of dP per d; of delta / unit; relative rounding of z dP and delta */
  float floor_p, floor_ds, per_u_p, per_u_ds; /* as in fa_row_probabilities; 0: not rounded */
  float tiny;                                 /* what underflow may cost a dS / unit */
  bool squares;
  bool one_is_exact;                /* P itself is rounded: near 1 that costs less than elsewhere */
  float *w, *w2, *we, *g, *g2, *ge; /* p z, its square, p z e; |dS| / unit, its square, its error */
  double sum_terms; /* out: sum of p (z |dP| + |delta|) / unit, times cap or so (FA_UNSURE_SLOPE) */
  float *terms;     /* += the same, per key */
  float *exact;     /* += squares of p, per key, that w2 lacks because p is near 1 */
} fa_row_gradient;

/* One row of an output's bounds, computed from its scaled sums (docs/reference/bounds.md, "Forward", "Backward"): the
 * worst case of its terms, their squares, and the errors of what is computed in f32. */
typedef struct fa_row_settle {
  const double *value;
  const float *worst, *squares, *errors; /* squares NULL: only the worst case holds */
  fa_settle_terms terms;                 /* accum = errors by_errors + gamma G + |value| by_value + add */
  float *quant, *noise, *accum;          /* may be worst, squares, errors themselves */
} fa_row_settle;

/* One row of an output and its want (docs/reference/bounds.md, "acceptance"; ref/compare/stats.c for the
 * statistics). */
typedef struct fa_row_check {
  const double *got, *want;
  const float *quant, *accum, *noise; /* noise NULL: no statistics */
  fa_ulp ulp;                         /* of the output's type */
  double accept;                      /* the bound's factor */
  /* out */
  int64_t n_odd;                            /* elements to look at one by one: not finite, or not ok */
  double worst_ratio;                       /* err / bound of all others */
  int64_t n, n_diffuse;                     /* sums of fa_stats over all others */
  double sum, sum_squares, diffuse_squares; /* added to */
} fa_row_check;

/* Flash's dropout for one row (docs/reference/semantics.md, "Dropout"). */
typedef struct fa_row_dropout {
  uint64_t seed, lane; /* lane: offset and head, and the row's first */
  uint32_t row_block;  /* row / 16 */
  int shift;           /* of a word, to the row's two bytes */
  int threshold;       /* a byte of at most this keeps its element */
  double scale;
} fa_row_dropout;

typedef struct fa_rows {
  double (*max)(const double *x, int64_t n); /* -inf for n == 0 */
  /* x[j] = exp(x[j] - shift), and 0 for -inf whatever the shift; returns the sum. Relative error of each <
   * 2^-51. */
  double (*exp)(double *x, int64_t n, double shift);
  void (*scale)(double *x, int64_t n, double by);
  void (*multiply)(double *x, const double *y, int64_t n);
  void (*add)(double *to, const double *x, int64_t n);
  void (*add_bounds)(float *to, const float *x, int64_t n);
  /* p becomes p * z, dp becomes p * (z * dp - delta); z NULL: all 1. */
  void (*dscore)(double *p, double *dp, const double *z, double delta, int64_t n);
  /* ds[j] *= 1 - tanh[j]^2 where p[j] is not 0 (elsewhere tanh may be unset) */
  void (*dsoftcap)(double *ds, const double *tanh, int64_t n);
  /* e[j] += a |x[j] - c| + b |x[j]| + k, 0 where x is -inf; returns the largest. */
  float (*logit_error)(float *e, const double *x, int64_t n, double c, double a, double b, double k);
  /* e[j] += e[j]^2, which is at least exp(e[j]) - 1 for e[j] <= 1/2; returns the largest. */
  float (*grow)(float *e, int64_t n);
  float (*greatest)(const float *x, int64_t n); /* at least 0 */
  /* e[j] = k e[j] + a |x[j]| + b */
  void (*product_error)(float *e, const double *x, int64_t n, double k, double a, double b);
  /* to[j] = |from[j] by|; to2 (NULL: omitted) = its square, of nonzero ones at least that of
   * FA_LEAST_OPERAND. */
  void (*magnitudes)(const double *from, int64_t n, double by, float *to, float *to2);
  /* Returns the sum of p e. */
  double (*weights)(const fa_row_probabilities *r, int64_t n, bool squares);
  void (*gradient)(fa_row_gradient *r, int64_t n);
  void (*settle)(const fa_row_settle *r, int64_t n);
  void (*check)(fa_row_check *r, int64_t n);
  /* The largest fa_want_bound where want is finite; ignores got, noise, accept and all results. */
  double (*widest_bound)(const fa_row_check *r, int64_t n);
  /* f16 or bf16 patterns to double, exactly. */
  void (*widen)(const uint16_t *bits, int64_t n, bool bf16, double *out);
  /* out[j - j0] = scale or 0 for keys j0 .. j0 + n - 1. */
  void (*flash_dropout)(const fa_row_dropout *r, int64_t j0, int64_t n, double *out);
} fa_rows;

extern const fa_rows fa_rows_base, fa_rows_avx2, fa_rows_avx512;
const fa_rows *fa_rows_best(void);

#endif
