/* The attention half of calls over a cache, shared by calls over ordinary keys whose work is split: gpu/plan/
 * only. */
#ifndef FA_GPU_PLAN_CACHE_FORWARD_H
#define FA_GPU_PLAN_CACHE_FORWARD_H

#include "gpu/kernels/params/cache.h"
#include "gpu/plan/parts.h"

/* The kernel for a call's sizes and features. NULL, with a message: there is none. kv: NULL, for ordinary keys.
 * aligned: all rows begin on 16 bytes. */
const fa_cache_kernel *fa_cache_kernel_of(const fa_attention *a, const fa_inference *kv, bool aligned,
                                          const fa_kernel_device *device, fa_error *err);

/* The same kernel as k, in blocks that fill a processor each, where there is one and so few work tiles that each has one to
 * itself: then less is left to combine. Else k. */
const fa_cache_kernel *fa_cache_filling(const fa_call *call, const fa_cache_kernel *k, bool aligned,
                                        const fa_kernel_device *device);

/* Blocks of block_m packed rows in the whole call, at most. kv: NULL, for ordinary keys. */
int64_t fa_cache_tiles(const fa_attention *a, const fa_inference *kv, int block_m);
/* Of a call over a cache: as it asks for, or chosen for this kernel. */
int fa_cache_splits_of(const fa_call *call, const fa_cache_kernel *k);

/* Everything that the attention says, ordinary keys among it; one split. Cache, pages and `aligned` are for the
 * caller to add. */
void fa_cache_params_fill(const fa_attention *a, fa_cache_params *p);

/* Adds the launches for p->n_splits splits: one, where they are a cluster, or two, with partial results in the workspace
 * between them. params: the kernel's, p or what p is part of. */
fa_status fa_cache_add_forward(const fa_call *call, const fa_cache_kernel *k, void *params,
                               fa_cache_params *p, const fa_kernel_device *device, fa_plan *out,
                               fa_error *err);

#endif
