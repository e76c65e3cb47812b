/* Calls over a KV cache with kernels for sm_90a, where there is one that can do the call and is to do it. */
#ifndef FA_GPU_PLAN_HOPPER_CACHE_H
#define FA_GPU_PLAN_HOPPER_CACHE_H

#include "gpu/plan/parts.h"

/* Those that the kernel reads: the call's, or a copy that is rotated. NULL while there is no workspace. */
typedef struct fa_hopper_cache_queries {
  const void *data;
  fa_strides stride;
} fa_hopper_cache_queries;

/* Adds the launch, for arguments that passed all checks. portable: what would do the call otherwise. False, and nothing
 * is added: that one is to do it. */
bool fa_hopper_add_cache(const fa_call *call, const fa_cache_kernel *portable, fa_hopper_cache_queries q,
                         const fa_kernel_device *device, fa_plan *out);

#endif
