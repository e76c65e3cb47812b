/* The forward kernels compiled for the host executor: one entry per line of gpu/kernels/flash/forward_list.h. */
#ifndef FA_GPU_KERNELS_REGISTRY_FLASH_FORWARD_H
#define FA_GPU_KERNELS_REGISTRY_FLASH_FORWARD_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a call wants, or the most that a kernel can do: flags are 0 or 1. */
typedef struct fa_kernel_ability {
  int bf16;     /* not f16; exactly */
  int head_dim; /* the larger of q's and v's, a multiple of 8; of a kernel: the largest that it takes */
  int narrow;   /* the smaller; of a kernel: the least that it takes */
  int least;    /* of a kernel: the least of the larger */
  int unaligned, alibi, softcap, dropout, p_debug;
  int bias, linear_dropout;
} fa_kernel_ability;

/* Whether a kernel with ability k can do what is wanted. */
static inline int fa_kernel_is_able(const fa_kernel_ability *k, const fa_kernel_ability *wanted) {
  return k->bf16 == wanted->bf16 && wanted->head_dim <= k->head_dim && wanted->head_dim >= k->least &&
         wanted->narrow >= k->narrow && k->unaligned >= wanted->unaligned && k->alibi >= wanted->alibi &&
         k->softcap >= wanted->softcap && k->dropout >= wanted->dropout && k->p_debug >= wanted->p_debug &&
         k->bias >= wanted->bias && k->linear_dropout >= wanted->linear_dropout;
}

/* What kernels are chosen for. NULL, wherever a pointer to one is taken: any amount of shared memory, and no
 * compiler. */
typedef struct fa_kernel_device {
  size_t max_shared_bytes; /* that a block may ask for */
  int compiles;            /* kernels that were not compiled ahead of time may be chosen too */
  int hopper;              /* multiprocessors for kernels for sm_90a to fill; 0: no such kernels */
} fa_kernel_device;

/* What a compiler needs to make a kernel: the file, and the line of its list that it is to see alone. */
typedef struct fa_kernel_recipe {
  const char *source;   /* "flash/forward": gpu/kernels/flash/forward.cu */
  const char *only;     /* "FA_ENTRY(flash_forward_f16_64,f16,64,plain)" */
  int is_ahead_of_time; /* the build compiles it */
} fa_kernel_recipe;

typedef struct fa_kernel {
  const char *name;
  void (*entry)(const void *params); /* fa_attention_params; NULL: not compiled for the host */
  fa_kernel_recipe recipe;
  fa_kernel_ability ability;
  int block_m, block_n, block_cols, n_threads; /* rows, keys, columns of O of a block (0: all) */
  size_t shared_bytes;
} fa_kernel;

/* The most special kernel that can do this, or NULL. */
const fa_kernel *fa_flash_forward_find(fa_kernel_ability wanted, const fa_kernel_device *device);

/* Names of all kernels that are compiled ahead of time, in no particular order; NULL past the last. */
const char *fa_flash_forward_name(int i);

#ifdef __cplusplus
}
#endif

#endif
