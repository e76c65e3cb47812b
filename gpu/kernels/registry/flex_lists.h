/* The kernels that work block lists out, compiled for the host executor, and their names on the device. */
#ifndef FA_GPU_KERNELS_REGISTRY_FLEX_LISTS_H
#define FA_GPU_KERNELS_REGISTRY_FLEX_LISTS_H

#include "gpu/kernels/registry/flash_backward.h"

#ifdef __cplusplus
extern "C" {
#endif

/* MASK is compiled for every call's expressions (gpu/kernels/mods/call.cuh), the others ahead of time. */
typedef enum fa_flex_lists_kernel {
  FA_FLEX_LISTS_MAP,
  FA_FLEX_LISTS_TILES,
  FA_FLEX_LISTS_BLOCKS,
  FA_FLEX_LISTS_MASK
} fa_flex_lists_kernel;

/* params are fa_flex_lists_params; blocks have FA_FLEX_LISTS_THREADS and no shared memory. */
const fa_kernel_entry *fa_flex_lists_find(fa_flex_lists_kernel which);

/* Names of those that are compiled ahead of time; NULL past the last. */
const char *fa_flex_lists_name(int i);

#ifdef __cplusplus
}
#endif

#endif
