/* The reference on a machine of its own (ref/cuda/machine.h): the values and bounds of ref/reference.h, element by element
 * the same but for the order of sums. What it cannot do, the caller asks the reference on the CPU for. */
#ifndef FA_REF_CUDA_JUDGE_H
#define FA_REF_CUDA_JUDGE_H

#include "ref/cuda/machine.h"
#include "ref/engine/options.h"
#include "ref/engine/want.h"

/* Why a call is left to the CPU, a few words for a count; NULL: it is not. */
const char *fa_judge_refused(const fa_problem *p, const fa_tensors *in, const fa_ref_options *opt,
                             bool backward);

/* O and LSE, as fa_ref_forward. FA_ERR_UNSUPPORTED: found on the way that it is the CPU's; err says why. */
fa_status fa_judge_forward(fa_judge_machine *m, const fa_problem *p, const fa_tensors *in,
                           const fa_ref_options *opt, fa_wants *out, fa_error *err);
/* dQ, dK and dV, as fa_ref_backward; both given tensors must be there. */
fa_status fa_judge_backward(fa_judge_machine *m, const fa_problem *p, const fa_tensors *in,
                            const fa_tensor *given_o, const fa_tensor *given_lse, const fa_ref_options *opt,
                            fa_wants *out, fa_error *err);

#endif
