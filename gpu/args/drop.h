/* Dropout's seed and offset in memory instead of in the call, as captured graphs need them: for backends that try a
 * case that way too. The pairs that are dropped are the same. */
#ifndef FA_GPU_ARGS_DROP_H
#define FA_GPU_ARGS_DROP_H

#include "cases/vocabulary/problem.h"
#include "gpu/fa.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What lies in memory, of the device or not. */
typedef struct fa_args_drop {
  uint64_t seed, offset; /* for the forward pass, which adds an offset of the call's own to this one */
  uint64_t used[2];      /* written by it, for the backward pass */
} fa_args_drop;

/* What there must be when kernels of this problem run. used has what no case asks for. */
fa_args_drop fa_args_drop_of(const fa_problem *p);
/* What there may be as long as none runs: a call that looks then draws other numbers. */
fa_args_drop fa_args_drop_decoy(const fa_problem *p);

/* Makes the call's forward pass read `at` and write at->used; with nothing of the seed left in the call. */
void fa_args_drop_from(fa_args_drop *at, fa_attention *a);
/* And its backward pass, after such a forward pass, read at->used. */
void fa_args_drop_as_used(fa_args_drop *at, fa_attention *a);

#ifdef __cplusplus
}
#endif

#endif
