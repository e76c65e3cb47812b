/* The appending kernels compiled for the host executor, and their names on the device. */
#ifndef FA_GPU_KERNELS_REGISTRY_CACHE_APPEND_H
#define FA_GPU_KERNELS_REGISTRY_CACHE_APPEND_H

#include "gpu/kernels/registry/flash_backward.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For f16 or, if bf16 is not 0, bf16; params are fa_cache_append_params, blocks have FA_CACHE_APPEND_THREADS and no
 * shared memory. */
const fa_kernel_entry *fa_cache_append_find(int bf16);

/* Names of both; NULL past the last. */
const char *fa_cache_append_name(int i);

#ifdef __cplusplus
}
#endif

#endif
