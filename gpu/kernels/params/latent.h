/* Arguments of the kernels for sm_90a over a KV cache whose values are the first columns of its keys, filled in by the
 * host and read by the device. */
#ifndef FA_GPU_KERNELS_PARAMS_LATENT_H
#define FA_GPU_KERNELS_PARAMS_LATENT_H

#include "gpu/kernels/params/cache.h"
#include "gpu/kernels/params/tensor_map.h"

/* The map's axes are head_dim, slot, KV head, and page or row of the cache. */
typedef struct fa_hopper_latent_params {
  fa_tensor_map k;
  fa_cache_params c;
  fa_cache_divisor heads; /* fa_cache_divisor_of(c.heads_per_kv) */
} fa_hopper_latent_params;

#endif
