/* The judge's own attention: float64 values and per-element error bounds, by blocked GEMMs on OpenBLAS.
 *
 * Formulas: docs/reference/semantics.md (values), docs/reference/bounds.md (bounds). Memory is O(S * d):
 * scores exist one tile at a time, tiles that no visible pair touches are skipped. Work is split over (batch
 * entry, head, block) on n_threads threads, with OpenBLAS single-threaded inside; the result does not depend
 * on n_threads. */
#ifndef FA_REF_REFERENCE_H
#define FA_REF_REFERENCE_H

#include "cases/vocabulary/problem.h"
#include "ref/engine/options.h"
#include "ref/engine/want.h"

/* O, LSE, and P_DEBUG's / DROPOUT_KEEP's keep mask where the set holds those tensors (value 1 kept, 0
 * dropped, NaN not compared); the caches after an append. in: pristine inputs. FA_ERR_INPUT: score_mod or
 * mask_mod has no value at a pair where it counts (ref/mods/tile.h). */
fa_status fa_ref_forward(const fa_problem *p, const fa_tensors *in, const fa_ref_options *opt, fa_wants *out,
                         fa_error *err);

/* dQ, dK, dV (and dBias, gradients of buffers). given_o / given_lse: the subject's own outputs, with which
 * its backward worked: the conditional form, delta and P are built from them. Both NULL: end to end, from the
 * reference's own forward in `forward`, with the forward's error (its bounds) carried into the gradients'
 * bounds. */
fa_status fa_ref_backward(const fa_problem *p, const fa_tensors *in, const fa_tensor *given_o,
                          const fa_tensor *given_lse, const fa_wants *forward, const fa_ref_options *opt,
                          fa_wants *out, fa_error *err);

#endif
