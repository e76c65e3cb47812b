/* The forward kernels compiled for the host executor: one entry per line of flash_forward_list.h. */
#ifndef FA_GPU_KERNELS_FLASH_FORWARD_HOST_H
#define FA_GPU_KERNELS_FLASH_FORWARD_HOST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fa_flash_kernel {
  const char *name;
  void (*entry)(const void *params); /* fa_flash_params */
  int bf16, head_dim, aligned, score_mod;
  int block_m, block_n, n_threads;
  size_t shared_bytes;
} fa_flash_kernel;

/* The kernel for these properties, or NULL. Unaligned kernels take aligned data as well. */
const fa_flash_kernel *fa_flash_forward_find(int bf16, int head_dim, int aligned, int score_mod);

#ifdef __cplusplus
}
#endif

#endif
