/* The inference kernels compiled for the host executor: what they are launched with, there and on the device.
 */
#ifndef FA_GPU_KERNELS_REGISTRY_CACHE_H
#define FA_GPU_KERNELS_REGISTRY_CACHE_H

#include "gpu/kernels/registry/flash_forward.h"
#include "gpu/kernels/params/cache.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a call wants, or the most that a kernel can do: flags are 0 or 1. */
typedef struct fa_cache_ability {
  int bf16;        /* not f16; exactly */
  int head_dim;    /* a multiple of 8; of a kernel: the largest that it takes */
  int packed_rows; /* seqlen_q * heads_per_kv; of a kernel: up to which it is the right one, 0: for any */
  int unaligned, alibi, softcap;
} fa_cache_ability;

/* Grid: x over (blocks of block_m packed rows) * n_splits, splits fastest; y over KV heads, z over entries.
 * Threads n_threads, dynamic shared memory shared_bytes. Splits are of whole blocks of block_n keys. */
typedef struct fa_cache_kernel {
  const char *name;
  void (*entry)(const void *params); /* fa_cache_params; NULL: not compiled for the host */
  fa_kernel_recipe recipe;
  fa_cache_ability ability;
  int block_m, block_n, n_threads;
  int blocks_per_processor; /* that an H100 holds at a time */
  size_t shared_bytes;
} fa_cache_kernel;

/* The most special kernel that can do this, or NULL. */
const fa_cache_kernel *fa_cache_forward_find(fa_cache_ability wanted, const fa_kernel_device *device);

/* The combine of a type. Grid: x over batch * heads_q * seqlen_q rows. block_m = 1, block_n = 0. */
const fa_cache_kernel *fa_cache_combine_find(int bf16);

/* Names of all kernels that are compiled ahead of time, in no particular order; NULL past the last. */
const char *fa_cache_name(int i);

#ifdef __cplusplus
}
#endif

#endif
