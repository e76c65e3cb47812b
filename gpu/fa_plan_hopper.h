/* From checked arguments to a launch of a kernel for sm_90a, where there is one that can do the call; what it
 * cannot do falls to the kernels of fa_plan.h. */
#ifndef FA_GPU_FA_PLAN_HOPPER_H
#define FA_GPU_FA_PLAN_HOPPER_H

#include "gpu/fa.h"
#include "gpu/kernels/hopper_forward_host.h"

typedef struct fa_hopper_plan {
  const fa_flash_kernel *kernel;
  fa_tensor_box box[4];    /* of q, k, v, o: what params' maps are to be made from */
  fa_hopper_params params; /* but for the maps; no counter */
  unsigned n_blocks;
} fa_hopper_plan;

/* For arguments that passed fa_forward_check and are not empty. False: no such kernel can do it; varlen, an
 * unaligned row, two of softcap, ALiBi and dropout, bias, scale <= 0 and strides <= 0 are beyond them. */
bool fa_hopper_plan_make(const fa_attention *a, const fa_flash_device *device, fa_hopper_plan *out);

/* The map of box[i]. */
fa_tensor_map *fa_hopper_map(fa_hopper_plan *plan, int i);

/* "flash_forward<...>" becomes "hopper_forward<...>", for reports. */
void fa_hopper_rename(char *kernel, size_t size);

#endif
