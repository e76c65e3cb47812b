/* The LSE in a foreign kernel's conventions, and its conversion to the case's own tensor. */
#ifndef FA_GPU_CONTRACT_LSE_H
#define FA_GPU_CONTRACT_LSE_H

#include "cases/tensors/set.h"
#include "cases/vocabulary/contract.h"
#include "cases/vocabulary/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* True if the case's own tensor can be handed over as it is. */
bool fa_contract_lse_is_ours(const fa_contract *c);
/* Makes them our conventions and keeps the outputs: the tensor that is handed over is converted by somebody else. */
void fa_contract_own_lse(fa_contract *c);
/* Type and shape of the tensor that such a kernel writes, row-major; data is NULL. */
void fa_contract_lse_describe(const fa_problem *p, const fa_contract *c, fa_tensor *theirs);
/* Converts what the kernel wrote (of any strides) into ours, the case's LSE. in: the call's tensors, for ALiBi's
 * slopes. What still holds the poison of a NaN stays that poison, so that it counts as unwritten; infinities and
 * NaN stay what they are; rows that see no key are only moved. FA_ERR_INPUT: theirs has another type or shape than
 * fa_contract_lse_describe says, and the message tells both. */
fa_status fa_contract_take_lse(const fa_problem *p, const fa_contract *c, const fa_tensors *in,
                               const fa_tensor *theirs, fa_tensor *ours, fa_error *err);
/* Relative error that the conventions add to an LSE in f32: of the narrower type, the base and the scale. */
double fa_contract_lse_roundoff(const fa_contract *c);

#ifdef __cplusplus
}
#endif

#endif
