/* The judge's own attention, and of family merge the merging of partial states (ref/merge): float64 values and per-element error bounds, by blocked GEMMs on OpenBLAS.
 *
 * Formulas: docs/reference/semantics.md (values), docs/reference/bounds.md (bounds). Memory is O(S * d): scores exist one tile at
 * a time, and tiles without a visible pair are skipped. Work is split by (sequence, head, block) over
 * n_threads threads, with OpenBLAS single-threaded inside; the result does not depend on n_threads. */
#ifndef FA_REF_REFERENCE_H
#define FA_REF_REFERENCE_H

#include "cases/vocabulary/problem.h"
#include "ref/engine/options.h"
#include "ref/engine/want.h"

/* Computes O, LSE, the keep mask of P_DEBUG and DROPOUT_KEEP if the set holds those tensors (value 1 kept, 0
 * dropped, NaN not compared), and the caches after an append. in: pristine inputs. FA_ERR_INPUT: score_mod or
 * mask_mod has no value at a pair that counts (ref/mods/tile.h). */
fa_status fa_ref_forward(const fa_problem *p, const fa_tensors *in, const fa_ref_options *opt, fa_wants *out,
                         fa_error *err);

/* Computes dQ, dK, dV (and dBias and the gradients of captured buffers). given_o / given_lse: the subject's
 * own outputs, which its backward used: delta and P are computed from them (the conditional form). Either may be
 * NULL: the reference's own in `forward` then stands for it, and the forward's error (its bounds) is propagated
 * into the gradients' bounds; both NULL is end to end. One that the profile says plays no part in the gradients
 * (P kept; delta not from the stored O) is not looked at. forward is always needed: an LSE of 2^24 or more has
 * lost what P depends on when it was rounded to one float. */
fa_status fa_ref_backward(const fa_problem *p, const fa_tensors *in, const fa_tensor *given_o,
                          const fa_tensor *given_lse, const fa_wants *forward, const fa_ref_options *opt,
                          fa_wants *out, fa_error *err);

/* amax_o from the O that a subject returned, in place of the reference's: errors of O are charged to O alone. What remains is O's
 * last rounding, before or after which the amax was taken. Nothing where O is not finite, or another shape, or stored in 8 bits
 * and saturated. */
void fa_ref_amax_of_given(const fa_problem *p, const fa_tensors *in, const fa_tensor *o, fa_wants *forward);

#endif
