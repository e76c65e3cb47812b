/* What expressions ask for beyond those of the protocol's second version. */
#ifndef FA_GPU_CONTRACT_MODS_H
#define FA_GPU_CONTRACT_MODS_H

#include "cases/vocabulary/problem.h"

/* An operator or a function that came with where, pow and & ^ |. */
bool fa_contract_mods_operators(const fa_problem *p);
/* Lists of blocks that several entries or heads share, and not all. */
bool fa_contract_blocks_shared(const fa_problem *p);

#endif
