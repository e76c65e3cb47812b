/* The backward kernels compiled for the host executor, and their names on the device: from
 * flash_backward_list.h. */
#ifndef FA_GPU_KERNELS_FLASH_BACKWARD_HOST_H
#define FA_GPU_KERNELS_FLASH_BACKWARD_HOST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One launch's kernel; name is that of the device entry point. */
typedef struct fa_flash_entry {
  const char *name;
  void (*entry)(const void *params); /* fa_flash_backward_params */
} fa_flash_entry;

/* The kernels of one call, launched as flash_backward_plan.h says. */
typedef struct fa_flash_backward_kernels {
  fa_flash_entry prepare, main, convert;
} fa_flash_backward_kernels;

/* Fills *out with the kernels for these properties; false: there are none. Unaligned kernels take aligned
 * data as well. */
int fa_flash_backward_find(int bf16, int head_dim, int aligned, int score_mod,
                           fa_flash_backward_kernels *out);

#ifdef __cplusplus
}
#endif

#endif
