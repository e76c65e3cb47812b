/* The backward kernels compiled for the host executor, and their names on the device: from
 * flash_backward_list.h. */
#ifndef FA_GPU_KERNELS_FLASH_BACKWARD_HOST_H
#define FA_GPU_KERNELS_FLASH_BACKWARD_HOST_H

#include "gpu/kernels/flash_forward_host.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One launch's kernel; name is that of the device entry point. */
typedef struct fa_flash_entry {
  const char *name;
  void (*entry)(const void *params); /* fa_flash_backward_params; NULL: not compiled for the host */
  fa_flash_recipe recipe;
} fa_flash_entry;

/* The kernels of one call, launched as flash_backward_plan.h says. prepare_only: prepare, but it leaves the
 * accumulators as they are. */
typedef struct fa_flash_backward_kernels {
  fa_flash_entry prepare, prepare_only, main, convert;
  int block_n;         /* keys of a tile of main */
  size_t shared_bytes; /* dynamic, of main; the others use none */
} fa_flash_backward_kernels;

/* Fills *out with the most special kernels that can do this (p_debug does not count); 0: there are none. */
int fa_flash_backward_find(fa_flash_ability wanted, const fa_flash_device *device,
                           fa_flash_backward_kernels *out);

#ifdef __cplusplus
}
#endif

#endif
