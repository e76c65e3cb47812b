/* The portable flex kernels (score_mod, mask_mod, block lists) compiled for the host executor, where
 * fa_flex_args.functions stand for the expressions; and what they are launched with, there and on a device,
 * for which every call's expressions are compiled into them (gpu/kernels/mods/call.cuh). */
#ifndef FA_GPU_KERNELS_REGISTRY_FLEX_H
#define FA_GPU_KERNELS_REGISTRY_FLEX_H

#include "cases/base/dtype.h"
#include "gpu/kernels/registry/flash_forward.h"
#include "gpu/kernels/registry/memeff.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For any head dims: the one with the narrowest blocks that hold head_dim_v columns of O, or the widest; and
 * whose shared memory the device has (NULL: any). params are fa_attention_params. Its grid is that of
 * fa_memeff_forward_find's kernels: x over blocks of block_m rows, and within each over those of block_cols
 * columns of O; y over query heads, z over entries. Lists (fa_flex_args.keys) are for tiles of block_m rows
 * and block_n keys. Its ability says nothing; none is compiled ahead of time for a device. */
const fa_kernel *fa_flex_forward_find(fa_dtype dtype, int64_t head_dim, int64_t head_dim_v,
                                            const fa_kernel_device *device);

/* Names of all forward kernels, in no particular order; NULL past the last. */
const char *fa_flex_forward_name(int i);

/* Backward, in stream order:
 *   clear     zeros for the gradients of buffers; params fa_flex_exact_params, only where some are wanted
 *   prepare   delta, as the memeff kernels' (it is theirs)
 *   keys      dK and dV; walks over fa_flex_args.rows, for tiles of block_m keys and block_n rows
 *   queries   dQ, the gradient of the bias unless it is summed, the gradients of buffers; walks over
 *             fa_flex_args.keys, for tiles of block_m rows and block_n keys
 *   dbias     sums of the gradient of the bias; looks into fa_flex_args.keys, of the same tiles
 *   round     exact sums of gradients of buffers to floats; params as clear's, only where there are some
 * keys, queries and dbias take fa_memeff_backward_params, whose forward has the fa_flex_args, and grids as in
 * gpu/kernels/params/memeff_backward.h; they are compiled for a call. clear, prepare and round know no expressions: they
 * are compiled ahead of time. grids of clear and round: gpu/kernels/params/flex_exact.h. */
typedef struct fa_flex_backward_kernels {
  fa_memeff_kernel clear, prepare, keys, queries, dbias, round;
  int block_m, block_n; /* of keys, queries and dbias */
} fa_flex_backward_kernels;

/* For any head dims. Shared memory is at most 99 KiB: every device has it. short: smaller tiles, for calls
 * whose rows and keys are FA_FLEX_SHORT at most and whose kernels take longer to compile than to run. */
#define FA_FLEX_SHORT 512
const fa_flex_backward_kernels *fa_flex_backward_find(fa_dtype dtype);
const fa_flex_backward_kernels *fa_flex_backward_find_short(fa_dtype dtype);
const char *fa_flex_backward_name(int i); /* as for forward */

#ifdef __cplusplus
}
#endif

#endif
