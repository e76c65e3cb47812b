/* The portable flex kernels (score_mod, mask_mod, block lists) compiled for the host executor, where
 * fa_flex_args.functions stand for the expressions; and what they are launched with, there and on a device,
 * for which every call's expressions are compiled into them (flex_mods.cuh). */
#ifndef FA_GPU_KERNELS_FLEX_HOST_H
#define FA_GPU_KERNELS_FLEX_HOST_H

#include "cases/dtype.h"
#include "gpu/kernels/flash_forward_host.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For any head dims: the one with the narrowest blocks that hold head_dim_v columns of O, or the widest; and
 * whose shared memory the device has (NULL: any). params are fa_flash_params. Its grid is that of
 * fa_wide_forward_find's kernels: x over blocks of block_m rows, and within each over those of block_cols
 * columns of O; y over query heads, z over entries. Lists (fa_flex_args.keys) are for tiles of block_m rows
 * and block_n keys. Its ability says nothing; none is compiled ahead of time for a device. */
const fa_flash_kernel *fa_flex_forward_find(fa_dtype dtype, int64_t head_dim, int64_t head_dim_v,
                                            const fa_flash_device *device);

/* Names of all forward kernels, in no particular order; NULL past the last. */
const char *fa_flex_forward_name(int i);

#ifdef __cplusplus
}
#endif

#endif
