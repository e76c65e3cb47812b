/* Shared by the parts of the comparison. A row is all axes of a tensor but the last. */
#ifndef FA_REF_COMPARE_INTERNAL_H
#define FA_REF_COMPARE_INTERNAL_H

#include "ref/compare/verdict.h"
#include "ref/math/rows.h"

#include "cases/base/bits.h"
#include "cases/tensors/table.h"

#include <math.h>

#define FA_DEFAULT_SLACK 0x1p-6 /* the bounds are themselves computed in f32 and to first order */

/* ---- ref/compare/class.c: the class of an element, from its bits alone ---- */

typedef enum fa_class { FA_CLASS_FINITE, FA_CLASS_POS_INF, FA_CLASS_NEG_INF, FA_CLASS_NAN } fa_class;

fa_class fa_class_of_bits(fa_dtype t, uint64_t bits);
static inline fa_class fa_class_of_f64(double x) {
  const uint64_t u = fa_f64_bits(x), magnitude = u & 0x7fffffffffffffffu;
  if (magnitude < 0x7ff0000000000000u) return FA_CLASS_FINITE;
  if (magnitude > 0x7ff0000000000000u) return FA_CLASS_NAN;
  return u >> 63 ? FA_CLASS_NEG_INF : FA_CLASS_POS_INF;
}
/* Loads n elements, stride in elements: raw bits, and values as double (P_DEBUG: 0 for a set sign bit, else
 * 1). */
void fa_compare_load_row(fa_tensor_id id, const fa_tensor *t, const char *at, int64_t n, uint64_t *bits,
                         double *value);
/* Smallest magnitude that rounds to infinity, as far as such an output may. */
double fa_overflow_threshold(const fa_want *w, fa_dtype t);

/* ---- ref/compare/verdict.c: one element ---- */

typedef enum fa_fit {
  FA_FIT_UNCOMPARED, /* nothing is wanted of it */
  FA_FIT_SAME,       /* right without a look at its error: the same infinity, or an overflow that may be */
  FA_FIT_NUMBERS,    /* two numbers: right if their difference is within *bound times accept */
  FA_FIT_CLASS       /* wrong: NaN or infinity on one side alone, or different ones */
} fa_fit;
/* Element e of the want against the raw bits of a subject's element. overflow: the smallest magnitude that rounds to
 * infinity. *bound is set where there is one. */
fa_fit fa_compare_fit(const fa_want *w, int64_t e, fa_dtype dtype, uint64_t bits, double accept,
                      double overflow, double *bound);

/* ---- ref/compare/where.c: where the bad elements are ---- */

typedef struct fa_where fa_where;
fa_where *fa_where_new(fa_tensor_id id, const fa_problem *p, const fa_want *want); /* NULL: out of memory */
void fa_where_free(fa_where *w);
/* Adds one bad element; positions (row-major) must increase from call to call. */
void fa_where_add(fa_where *w, int64_t position);
/* Writes v->where and v->by_axis. */
void fa_where_describe(const fa_where *w, fa_verdict *v);

/* ---- ref/compare/axes.c: axes as a person would name them ---- */

/* b, q, h, d ... in this order. With variable length, the token axis becomes (b, local position). */
typedef struct fa_axes {
  int n;
  const char *name[FA_MAX_RANK];
  int64_t extent[FA_MAX_RANK]; /* of the local position: the longest sequence */
  int seq;                     /* the axis of positions in a sequence; -1: none */
  const int32_t *cu;           /* variable length: first token of each sequence, else NULL */
  int64_t n_entries;
  int token_axis;       /* in the tensor's own index, where cu is set */
  int map[FA_MAX_RANK]; /* tensor axis -> logical axis (the token axis maps to seq) */
  const char *row_noun; /* "row", "key", "slot", "element": what all axes but the last address */
} fa_axes;
fa_axes fa_axes_of(fa_tensor_id id, const fa_problem *p, const fa_want *want);
/* Tensor index -> logical coordinates. */
void fa_axes_coordinates(const fa_axes *a, const int64_t *index, int64_t *coordinate);
/* Number of positions of sequence b on the seq axis. */
int64_t fa_axes_length(const fa_axes *a, int64_t b);

/* ---- ref/compare/stats.c: statistics, the second tier ---- */

/* Errors of one row (for LSE, whose elements are one per row, of a run of them). Its elements may share
 * errors: the rounding of one P affects the whole row of O. */
typedef struct fa_stats_row {
  int64_t n, n_diffuse;                     /* diffuse: counts for the lower edge */
  double sum, sum_squares, diffuse_squares; /* of err / sigma */
  uint64_t print;                           /* fa_element_print of its elements; 0: unknown, as of LSEs */
} fa_stats_row;

/* Mean over elements, and sums over rows for its uncertainty. */
typedef struct fa_stats_mean {
  int64_t n_rows, n;
  double sum, sum_2, sum_n, n_2; /* over rows: sums s, s s, s n, n n */
} fa_stats_mean;

/* Rows that are remembered: many times as many as a call has heads, which take turns. */
enum { FA_STATS_SEEN = 1024 };

typedef struct fa_stats {
  fa_stats_mean error, square, diffuse; /* of err / sigma, of its square, of the diffuse elements' squares */
  uint64_t seen[FA_STATS_SEEN];         /* prints of rows that were added */
} fa_stats;

/* Adds one element. worst_noise: the worst case of the roundings in noise.
 *
 * Elements whose sigma is mainly a single rounding of P or dS do not count: the next key or row may have the
 * same P (1 if one key takes all, times dropout's constant), and then the same error.
 *
 * Only an element whose sigma is mainly the roundings of P or dS, several of them of similar size, can be
 * "too accurate": no kernel avoids the output's own rounding, f32's part of sigma is a worst case, and if one
 * key takes all, P is 1 and exact. */
static inline void fa_stats_add(fa_stats_row *s, double signed_err, double half_ulp, double noise,
                                double worst_noise, double accum) {
  const double third = accum / 3, inner = 0.18 * noise * noise,
               outer = half_ulp * half_ulp / 3 + third * third;
  const bool several = worst_noise > 2 * noise;
  if (!(inner + outer > 0) || (8 * inner > outer && !several)) return;
  const double square = signed_err * signed_err / (inner + outer);
  ++s->n;
  s->sum += signed_err / sqrt(inner + outer);
  s->sum_squares += square;
  if (!(inner > 2 * outer && several)) return;
  ++s->n_diffuse;
  s->diffuse_squares += square;
}
/* Adds a complete row, unless one with the same numbers was added before: rows that see one same key, whose V times its
 * descale the output's type rounds, have the same errors, and are one sample. */
void fa_stats_add_row(fa_stats *s, const fa_stats_row *row);
void fa_stats_judge(const fa_stats *s, const fa_problem *p, const fa_compare_options *opt, fa_verdict *v);

/* Sets out for the row of w from element e on, except got, noise and accept, for fa_rows.check. False:
 * unsupported type, or no bounds. */
bool fa_compare_row(const fa_want *w, int64_t e, fa_row_check *out);

/* ---- ref/compare/vacuous.c: could the check have failed? ---- */

/* Says in v->vacuous which of them passes. False: out of memory, and nothing is said. */
bool fa_vacuous_judge(const fa_problem *p, const fa_tensors *in, const fa_want *want,
                      const fa_compare_options *opt, fa_verdict *v);
/* A trivially wrong answer is one that is further than scale * row's scale + floor from the right one. whole false: without
 * what takes a look at all inputs, which is less, and no memory. Of the want, only type, shape and steepest are read. */
typedef struct fa_vacuous_tolerance {
  double scale, floor;
} fa_vacuous_tolerance;
/* False: out of memory. */
bool fa_vacuous_tolerance_of(const fa_problem *p, const fa_tensors *in, fa_tensor_id id, const fa_want *want,
                             const fa_profile *profile, bool whole, fa_vacuous_tolerance *out);
/* Of n numbers, which it sorts; 0 of none. */
double fa_median(double *x, int64_t n);
/* Median over rows of max bound / scale; 0 if no row has a scale. */
double fa_tightness(const fa_want *want);

#endif
