/* Calls over a KV cache that the kernels for sm_90a with V in K do: gpu/plan/ only. */
#ifndef FA_GPU_PLAN_LATENT_H
#define FA_GPU_PLAN_LATENT_H

#include "gpu/kernels/params/latent.h"
#include "gpu/plan/parts.h"

enum { FA_LATENT_BLOCK_NS = 1400 }; /* of a tile of 64 keys on an H100, about */

/* Whether head dims, keys and pages are such that these kernels can do the call, if its rows are aligned. kv: NULL, for
 * ordinary keys. */
bool fa_latent_is_possible(const fa_attention *a, const fa_inference *kv);

/* The kernel for a call that is possible. NULL: there is none for this device, or for what else the call wants. */
const fa_kernel *fa_latent_find(const fa_attention *a, fa_kernel_ability wanted,
                                const fa_kernel_device *device);

static inline bool fa_latent_is(const fa_kernel *k) {
  return k->params == FA_PARAMS_HOPPER_LATENT;
}

/* Fills all but the parameters that kernels over a cache have in common, to which it returns a pointer. */
fa_cache_params *fa_latent_fill(const fa_attention *a, const fa_inference *kv, fa_hopper_latent_params *p);

#endif
