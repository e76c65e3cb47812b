/* Calls over a cache with what the kernels over one do not have: part of gpu/plan/cache.c. */
#ifndef FA_GPU_PLAN_CACHE_GATHER_H
#define FA_GPU_PLAN_CACHE_GATHER_H

#include "gpu/plan/parts.h"

/* A bias, dropout, expressions or block lists; f32, and head dims that the kernels over a cache do not take. */
bool fa_cache_is_gathered(const fa_attention *a);

/* Whether there are kernels for such a call, if its rows are aligned. */
fa_status fa_cache_gathered_supported(const fa_attention *a, const fa_inference *kv,
                                      const fa_kernel_device *device, fa_error *err);

/* For a call that passed all checks of a cache, behind its appends. q: where the queries are now, with q_stride; NULL: in a
 * workspace that is not there yet. */
fa_status fa_cache_add_gathered(const fa_call *call, const void *q, fa_strides q_stride,
                                const fa_kernel_device *device, fa_plan *out, fa_error *err);

#endif
