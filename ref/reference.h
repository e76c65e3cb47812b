/* The judge's own attention: float64 values and per-element error bounds, by blocked GEMMs on OpenBLAS.
 *
 * Formulas: docs/semantics.md (values), docs/bounds.md (bounds). Memory is O(S * d): scores exist one tile at
 * a time, and tiles without a visible pair are skipped. Work is split by (sequence, head, block) over
 * n_threads threads, with OpenBLAS single-threaded inside; the result does not depend on n_threads. */
#ifndef FA_REF_REFERENCE_H
#define FA_REF_REFERENCE_H

#include "cases/vocabulary/problem.h"
#include "cases/vocabulary/profile.h"
#include "cases/tensors/tensor.h"

/* What an output should be, and how far a correct kernel may be from it. Arrays are row-major over the
 * tensor's own shape. An element's bound is quant + accum + h(|value| + quant + accum), where h is half an
 * ulp of the output's type, and exactly 0 where value, quant and accum are all 0 (fa_want_bound). */
typedef struct fa_want {
  fa_dtype dtype; /* of the subject's tensor */
  int rank;
  int64_t shape[FA_MAX_RANK];
  int64_t n; /* elements; 0 = this output is not judged */
  double *value;
  float *quant; /* rounding of P / dS to a narrow type: min(worst case, lambda * root mean square) */
  float *accum; /* everything computed in f32: GEMM sums, logits, exponentials, delta */
  float *noise; /* root-sum-square of the quant roundings (statistics tier); NULL when bounds were not asked
                   for */
  double steepest; /* dQ, dK: the largest factor of P (dP - delta) from the score chain */
  float *scale;    /* one per row (all axes but the last): size of the terms that were summed, for the vacuity
                      check */
} fa_want;

double fa_want_bound(const fa_want *w, int64_t element);

typedef struct fa_wants {
  fa_want t[FA_T_COUNT]; /* only outputs are filled; kvcache: also FA_T_K and FA_T_V (whole cache after the
                            call) */
} fa_wants;
void fa_wants_free(fa_wants *w);

typedef struct fa_ref_options {
  int n_threads;             /* >= 1; 0 = all processors */
  const fa_profile *profile; /* NULL: values only, quant/accum/noise/scale stay NULL */
  bool generic;              /* false: worst-case (L1) bounds only */
  double lambda;             /* 0 = the default, 4 */
} fa_ref_options;

/* Computes O, LSE, the keep mask of P_DEBUG and DROPOUT_KEEP if the set holds those tensors (value 1 kept, 0
 * dropped, NaN not compared), and the caches after an append. in: pristine inputs. FA_ERR_INPUT: score_mod or
 * mask_mod has no value at a pair that counts (ref/mods/tile.h). */
fa_status fa_ref_forward(const fa_problem *p, const fa_tensors *in, const fa_ref_options *opt, fa_wants *out,
                         fa_error *err);

/* Computes dQ, dK, dV (and dBias and the gradients of captured buffers). given_o / given_lse: the subject's
 * own outputs, which its backward used: delta and P are computed from them (the conditional form). Both NULL:
 * end to end, from the reference's own forward in `forward`; the forward's error (its bounds) is then
 * propagated into the gradients' bounds. */
fa_status fa_ref_backward(const fa_problem *p, const fa_tensors *in, const fa_tensor *given_o,
                          const fa_tensor *given_lse, const fa_wants *forward, const fa_ref_options *opt,
                          fa_wants *out, fa_error *err);

/* The rule of the keep mask for one element: true = kept. i, j local to the sequence, b the sequence, h the
 * query head; lengths as the scheme counts them (memeff: launch maxima in the head term, this sequence's keys
 * in the row term). */
bool fa_ref_dropout_keep(const fa_problem *p, int64_t b, int64_t h, int64_t i, int64_t j);

#endif
