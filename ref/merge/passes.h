/* The judge's own merge of partial states (family merge): what fa_ref_forward and fa_ref_backward of ref/reference.h
 * do for it. Formulas: docs/reference/semantics.md, "Family merge"; bounds: docs/reference/bounds.md, "Merging". */
#ifndef FA_REF_MERGE_PASSES_H
#define FA_REF_MERGE_PASSES_H

#include "cases/vocabulary/problem.h"
#include "ref/engine/options.h"
#include "ref/engine/want.h"

/* O and LSE. */
fa_status fa_ref_merge_forward(const fa_problem *p, const fa_tensors *in, const fa_ref_options *opt,
                               fa_wants *out, fa_error *err);

/* The gradients of every part's O and LSE. They are always those of the merge itself: what the subject has stored is
 * not looked at, because a kernel may as well merge again. The bounds of `forward` (of the same options) allow for one
 * that starts from its own O and LSE. */
fa_status fa_ref_merge_backward(const fa_problem *p, const fa_tensors *in, const fa_wants *forward,
                                const fa_ref_options *opt, fa_wants *out, fa_error *err);

#endif
