/* What the reference expects of every output, and the bound of each element. */
#ifndef FA_REF_ENGINE_WANT_H
#define FA_REF_ENGINE_WANT_H

#include "cases/tensors/set.h"
#include "ref/math/element.h"

/* Consecutive elements. */
typedef struct fa_want_span {
  int64_t first, n;
} fa_want_span;

/* What an output should be, and how far a correct kernel may be from it. Arrays are row-major over the
 * tensor's own shape. An element's bound is quant + accum + h(|value| + quant + accum), where h is half an
 * ulp of the output's type, and exactly 0 where value, quant and accum are all 0 (fa_want_bound). */
typedef struct fa_want {
  fa_dtype dtype; /* of the subject's tensor */
  int rank;
  int64_t shape[FA_MAX_RANK];
  int64_t n; /* elements; 0 = this output is not judged */
  double *value;
  double *rest;     /* the forward's LSE: what value lacks of it (ref/tiles/lse.h); NULL: of another output */
  float *sum_error; /* the same, with bounds: how far a row's sum of exponentials may be off, relative */
  float *quant;     /* rounding of P / dS to a narrow type: min(worst case, lambda * root mean square) */
  float *accum;     /* everything computed in f32: GEMM sums, logits, exponentials, delta */
  float *noise; /* root-sum-square of the quant roundings (statistics tier); NULL when bounds were not asked
                   for */
  float *least,
      *most; /* the debug matrix, with bounds: its magnitudes; value has what its signs say. NULL: of another
                          output, or nobody knows */
  double steepest; /* dQ, dK: the largest factor of P (dP - delta) from the score chain */
  bool exact;      /* values are numbers of the type: nothing is rounded to it at the end */
  bool saturates;  /* what is beyond the type's largest number becomes that: infinity is never right */
  float *scale;    /* one per row (all axes but the last): size of the terms that were summed, for the vacuity
                      check */
  fa_want_span
      *span; /* of a sample: the elements that are wanted, ascending, each within a row; NULL: all are */
  int64_t n_spans;
} fa_want;

/* How many spans there are to look at, rows if all elements are wanted, and the one at a place. */
int64_t fa_want_spans(const fa_want *w);
fa_want_span fa_want_span_at(const fa_want *w, int64_t at);

double fa_want_bound(const fa_want *w, int64_t element);

typedef struct fa_wants {
  fa_want t[FA_T_COUNT]; /* only outputs are filled; kvcache: also FA_T_K and FA_T_V (whole cache after the
                            call) */
} fa_wants;
void fa_wants_free(fa_wants *w);

/* Allocates value (zeroed) and, with bounds, quant, accum, noise, scale. _unset: all without a value, which takes no time. */
fa_status fa_want_init(fa_want *w, fa_dtype dtype, int rank, const int64_t *shape, bool bounds,
                       fa_error *err);
fa_status fa_want_init_unset(fa_want *w, fa_dtype dtype, int rank, const int64_t *shape, bool bounds,
                             fa_error *err);

/* Of the floats of 8 bits to 32. */
fa_ulp fa_want_ulp(fa_dtype t);

#endif
