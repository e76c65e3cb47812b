/* Block lists the other way round: which query blocks visit a key block. */
#ifndef FA_GPU_CONTRACT_BLOCKS_H
#define FA_GPU_CONTRACT_BLOCKS_H

#include "cases/base/status.h"
#include "cases/tensors/set.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Turns lists by query block, counts [b, h, nq] and indices [b, h, nq, nk], into lists by key block: counts [b, h, nk]
 * and indices [b, h, nk, nq], ascending; places past a count hold 0. Both are added to the set under the ids that
 * counts and indices have in a call (FA_T_KV_NUM_BLOCKS and FA_T_KV_INDICES, or those of full blocks). */
fa_status fa_contract_turn_lists(const fa_tensors *call, fa_tensor_id counts, fa_tensor_id indices,
                                 fa_tensors *set, fa_error *err);

#ifdef __cplusplus
}
#endif

#endif
