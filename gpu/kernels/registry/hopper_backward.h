/* The main backward kernels for sm_90a: one entry per line of gpu/kernels/hopper_backward/main_list.h. */
#ifndef FA_GPU_KERNELS_REGISTRY_HOPPER_BACKWARD_H
#define FA_GPU_KERNELS_REGISTRY_HOPPER_BACKWARD_H

#include "gpu/kernels/registry/flash_forward.h"
#include "gpu/kernels/params/hopper_backward.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kernel whose tiles are as wide as the call's head dims, up to a multiple of 32; its entry takes
 * fa_hopper_backward_params. varlen: entries have lengths of their own, by cu_seqlens, seqused_k or
 * leftpad_k. ordered: it takes a deterministic call's accumulators (gpu/kernels/params/flash_backward_grids.h). NULL: there is
 * none for this device, or for this call. */
const fa_kernel *fa_hopper_backward_find(fa_kernel_ability wanted, int varlen, int ordered,
                                               const fa_kernel_device *device);

/* The same for a call with score_mod, mask_mod or block lists, of which wanted says nothing: for the executor
 * with fa_flex_args.functions; for a device compiled with the expressions of the call. It walks lists of
 * fa_flex_args.rows, for tiles of block_n keys and block_m rows, and wants LSE in the workspace as it is
 * (lse_factor 1). */
const fa_kernel *fa_hopper_flex_backward_find(fa_kernel_ability wanted, int ordered,
                                                    const fa_kernel_device *device);

/* Of those for head dims from 129 on, which the first asks where it has none: their tiles have columns up to a
 * multiple of 64. */
const fa_kernel *fa_hopper_backward_pair_find(fa_kernel_ability wanted, int varlen, int ordered,
                                                    const fa_kernel_device *device);
const char *fa_hopper_backward_pair_name(int i);
/* Blocks of a cluster, side by side in x: 2 of those, which are compiled for it, and 1 of others. */
int fa_hopper_backward_cluster(const fa_kernel *kernel);

/* Names of all, in no particular order; NULL past the last. */
const char *fa_hopper_backward_name(int i);
const char *fa_hopper_flex_backward_name(int i);

#ifdef __cplusplus
}
#endif

#endif
