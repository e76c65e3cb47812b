/* The backward kernels compiled for the host executor, and their names on the device: from
 * gpu/kernels/flash/backward_list.h. */
#ifndef FA_GPU_KERNELS_REGISTRY_FLASH_BACKWARD_H
#define FA_GPU_KERNELS_REGISTRY_FLASH_BACKWARD_H

#include "gpu/kernels/registry/flash_forward.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One launch's kernel; name is that of the device entry point. */
typedef struct fa_kernel_entry {
  const char *name;
  void (*entry)(const void *params); /* fa_backward_params; NULL: not compiled for the host */
  fa_kernel_recipe recipe;
} fa_kernel_entry;

/* A main kernel; the others use FA_BACKWARD_THREADS and no dynamic shared memory. */
typedef struct fa_kernel_main {
  fa_kernel_entry kernel; /* name NULL: there is none */
  int block_m, block_n;  /* rows and keys of a tile */
  int n_threads;
  size_t shared_bytes; /* dynamic */
  int subtracts_first; /* the LSE, before anything is scaled to base 2 */
} fa_kernel_main;

/* The kernels of one call, launched as gpu/kernels/params/flash_backward_grids.h says. */
typedef struct fa_flash_backward_kernels {
  fa_kernel_entry prepare, prepare_only, clear, convert, convert_keys;
  fa_kernel_main by_keys, by_queries;
  fa_kernel_entry dbias_clear, dbias_convert;
  int head_dim; /* of the tiles, and so of the workspace */
} fa_flash_backward_kernels;

/* Fills *out with the most special kernels that can do this (p_debug does not count); 0: there are none, or
 * none by keys. */
int fa_flash_backward_find(fa_kernel_ability wanted, const fa_kernel_device *device,
                           fa_flash_backward_kernels *out);

/* Names of all kernels that are compiled ahead of time, in no particular order; NULL past the last. */
const char *fa_flash_backward_name(int i);

#ifdef __cplusplus
}
#endif

#endif
