/* Which kernels can do a call: selections over the registry's rows. Where a pointer to a device is taken, NULL is any
 * (fa_kernel_device). What kernels of a kind are launched with is in gpu/kernels/params/. */
#ifndef FA_GPU_KERNELS_REGISTRY_SELECT_H
#define FA_GPU_KERNELS_REGISTRY_SELECT_H

#include "gpu/kernels/registry/kernel.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- forward ---- */

/* The most special kernel that can do this, or NULL. */
const fa_kernel *fa_flash_forward_find(fa_kernel_ability wanted, const fa_kernel_device *device);

/* The one that keeps whole rows, if head dims and device allow that; else that with the narrowest blocks that hold
 * head_dim_v columns, or the widest. */
const fa_kernel *fa_memeff_forward_find(fa_dtype dtype, int64_t head_dim, int64_t head_dim_v,
                                        const fa_kernel_device *device);

/* For any head dims: the one with the narrowest blocks that hold head_dim_v columns of O, or the widest; and whose shared
 * memory the device has. Its grid is that of fa_memeff_forward_find's kernels: x over blocks of block_m rows, and within
 * each over those of block_cols columns of O; y over query heads, z over sequences. Lists (fa_flex_args.keys) are for
 * tiles of block_m rows and block_n keys. The executor's has fa_flex_args.functions for the expressions; a device's is
 * compiled for them (gpu/kernels/mods/call.cuh), as are all flex kernels. */
const fa_kernel *fa_flex_forward_find(fa_dtype dtype, int64_t head_dim, int64_t head_dim_v,
                                      const fa_kernel_device *device);
/* The one for short problems (FA_FLEX_SHORT). */
const fa_kernel *fa_flex_forward_find_short(fa_dtype dtype, const fa_kernel_device *device);

/* Keys that a row sees for which larger key blocks pay. */
#define FA_HOPPER_LONG 4096

/* The first kernel for sm_90a that can do this for rows that see so many keys at most. NULL: there is none for this device, or for this call.
 * They take any two head dims up to their own, aligned rows, masks, and one of ALiBi, softcap and tiled dropout; nothing
 * else. varlen: sequences' keys or rows number less than the tensors have. */
const fa_kernel *fa_hopper_forward_find(fa_kernel_ability wanted, int64_t seen, int varlen,
                                        const fa_kernel_device *device);

/* Of f32: linear dropout, ALiBi, softcap and biases are beyond it, and it takes one head dim of its own size. Its grid is that of
 * fa_memeff_forward_find's. */
const fa_kernel *fa_hopper_tf32_find(fa_kernel_ability wanted, const fa_kernel_device *device);

/* The same for a call over a KV cache. */
const fa_kernel *fa_hopper_cache_find(fa_kernel_ability wanted, const fa_kernel_device *device);

/* The same for a call with score_mod, mask_mod or block lists, of which wanted says nothing. Lists (fa_flex_args.keys) are
 * for tiles of block_m rows and block_n keys. */
const fa_kernel *fa_hopper_flex_forward_find(fa_kernel_ability wanted, int varlen,
                                             const fa_kernel_device *device);

/* A counter of the host's for one launch on the executor. As on a device all are 0 in the beginning, and nobody but the
 * launches sets them back. */
int fa_hopper_host_counter(void);
/* What the launch left there, 0 if it is right; then it is 0, so that one fault is one report. */
unsigned fa_hopper_host_counter_left(int counter);

/* ---- partial states ---- */

/* Merges parts of such elements into O of those, or computes the gradients: one of every pair of types. Grid:
 * gpu/kernels/params/merge.h. */
const fa_kernel *fa_merge_find(fa_dtype dtype, fa_dtype parts_dtype, int backward);

/* ---- over a KV cache ---- */

/* For larger head dims, and whatever is `large`, a kernel of cache/large.cu does the work. */
#define FA_CACHE_LARGE 256

typedef fa_kernel fa_cache_kernel;
/* Of it: bf16, cache_dtype, head_dim, packed_rows, unaligned, alibi, softcap, chunk, mask_bits, sinks, large, v_in_k,
 * pairs. */
typedef fa_kernel_ability fa_cache_ability;

/* The most special kernel that can do this, or NULL; of those for large head dims, on a device without the shared
 * memory for many rows, that of few rows. Grid: x over (blocks of block_m packed rows) * n_splits, splits
 * fastest; y over KV heads, z over sequences. Splits are of whole blocks of block_n keys. */
const fa_cache_kernel *fa_cache_forward_find(fa_cache_ability wanted, const fa_kernel_device *device);
/* Over a cache of 8 or 4 bits, with the fewest rows: one whose blocks fill a processor each. NULL: there is none. */
const fa_cache_kernel *fa_cache_filling_find(fa_cache_ability wanted, const fa_kernel_device *device);

/* The kernel for sm_90a whose splits, 2 to fa_kernel.cluster of them, are a cluster and need no combine. It reads no page
 * table. NULL: there is none for this device, or for this call. */
const fa_cache_kernel *fa_hopper_decode_find(fa_cache_ability wanted, const fa_kernel_device *device);

/* The kernel for sm_90a with V in K, of 576 and 512 columns. NULL: there is none for this device, or for this call.
 * Grid: as those', but blocks of rows fastest. */
const fa_cache_kernel *fa_hopper_latent_find(fa_cache_ability wanted, const fa_kernel_device *device);

/* The combine of a type. Grid: x over batch * heads_q * seqlen_q rows. */
const fa_cache_kernel *fa_cache_combine_find(int bf16);

/* ---- backward ---- */

/* The main kernel for sm_90a whose tiles are as wide as the call's head dims, up to a multiple of 32; from 129 on, of 64.
 * varlen: sequences have lengths of their own, by cu_seqlens, seqused_k or leftpad_k. ordered: it takes a deterministic
 * call's accumulators (gpu/kernels/params/flash_backward_grids.h). NULL: there is none for this device, or for this call. */
const fa_kernel *fa_hopper_backward_find(fa_kernel_ability wanted, int varlen, int ordered,
                                         const fa_kernel_device *device);

/* The same for a call with score_mod, mask_mod or block lists, of which wanted says nothing. It walks lists of
 * fa_flex_args.rows, for tiles of block_n keys, of all blocks of a cluster, and block_m rows, and wants LSE in the workspace as it
 * is (lse_factor 1). */
const fa_kernel *fa_hopper_flex_backward_find(fa_kernel_ability wanted, int varlen, int ordered,
                                              const fa_kernel_device *device);

/* Of f32: as fa_hopper_tf32_find, and not ordered. It is launched as the single kernel of gpu/kernels/params/memeff_backward.h. */
const fa_kernel *fa_hopper_tf32_backward_find(fa_kernel_ability wanted, int ordered,
                                              const fa_kernel_device *device);

/* Blocks of a cluster, side by side in x: 2 of those for head dims above 128, which are compiled for it, and 1 of others. */
int fa_hopper_backward_cluster(const fa_kernel *kernel);

/* ---- in groups, as planners launch them ---- */

/* One launch's kernel. */
typedef struct fa_kernel_entry {
  const char *name;
  void (*entry)(const void *params);
  fa_kernel_recipe recipe;
} fa_kernel_entry;

/* A main kernel; the others use FA_BACKWARD_THREADS and no dynamic shared memory. */
typedef struct fa_kernel_main {
  fa_kernel_entry kernel; /* name NULL: there is none */
  int block_m, block_n;   /* rows and keys of a tile */
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

/* Fills *out with the most special kernels that can do this (p_debug does not count); 0: there are none, or none by keys. */
int fa_flash_backward_find(fa_kernel_ability wanted, const fa_kernel_device *device,
                           fa_flash_backward_kernels *out);

/* One block takes block_m rows and block_cols columns of each result. */
typedef struct fa_memeff_kernel {
  fa_kernel_entry entry;
  int block_m, block_cols, n_threads;
  size_t shared_bytes;
} fa_memeff_kernel;

/* dbias: block_m rows and block_cols keys. */
typedef struct fa_memeff_backward_kernels {
  fa_memeff_kernel prepare, keys, queries, dbias, dsinks;
} fa_memeff_backward_kernels;
const fa_memeff_backward_kernels *fa_memeff_backward_find(fa_dtype dtype);

/* The one that does the work of `keys` and `queries` in one pass, and adds to dQ in any order; block_m keys, and the head
 * dims up to block_cols. widest: the larger head dim. NULL: there is none. */
const fa_memeff_kernel *fa_memeff_single_find(fa_dtype dtype, int64_t widest);

/* In stream order:
 *   clear     zeros for the gradients of buffers; only where some are wanted
 *   prepare   delta, as the memeff kernels' (it is theirs)
 *   keys      dK and dV; walks over fa_flex_args.rows, for tiles of block_m keys and block_n rows
 *   queries   dQ, the gradient of the bias unless it is summed, the gradients of buffers; walks over fa_flex_args.keys, for
 *             tiles of block_m rows and block_n keys
 *   dbias     sums of the gradient of the bias; looks into fa_flex_args.keys, of the same tiles
 *   round     exact sums of gradients of buffers, and sums of those of 16 bits, to their types; only where there are some
 * Grids of keys, queries and dbias: gpu/kernels/params/memeff_backward.h; of clear and round: gpu/kernels/params/flex.h.
 * clear, prepare and round know no expressions: they are compiled ahead of time. */
typedef struct fa_flex_backward_kernels {
  fa_memeff_kernel clear, prepare, keys, queries, dbias, round;
  int block_m, block_n; /* of keys, queries and dbias */
} fa_flex_backward_kernels;

/* For any head dims. Shared memory is at most 99 KiB: every device has it. short: smaller tiles, for calls whose rows and
 * keys are FA_FLEX_SHORT at most and whose kernels take longer to compile than to run. */
#define FA_FLEX_SHORT 512
const fa_flex_backward_kernels *fa_flex_backward_find(fa_dtype dtype);
const fa_flex_backward_kernels *fa_flex_backward_find_short(fa_dtype dtype);

/* Those that append; blocks have FA_CACHE_APPEND_THREADS and no shared memory. By elements: f32, and any head dims. */
const fa_kernel_entry *fa_cache_append_find(fa_dtype dtype, bool by_elements);
/* That of a cache of 8 bits; dtype: of the call, FA_F16 or FA_BF16. NULL: there is none. */
const fa_kernel_entry *fa_cache_append_eight_find(fa_dtype cache_dtype, fa_dtype dtype);
/* The one that makes ordinary keys of a cache, with FA_CACHE_GATHER_THREADS. */
const fa_kernel_entry *fa_cache_gather_find(void);

/* The one that sets the largest P and O to 0, before others raise them: a block of FA_AMAX_THREADS. */
const fa_kernel_entry *fa_amax_clear_find(void);

/* Those that work block lists out; blocks have FA_FLEX_LISTS_THREADS and no shared memory. MASK is compiled for every
 * call's expressions, the others ahead of time. */
typedef enum fa_flex_lists_kernel {
  FA_FLEX_LISTS_MAP,
  FA_FLEX_LISTS_TILES,
  FA_FLEX_LISTS_BLOCKS,
  FA_FLEX_LISTS_MASK
} fa_flex_lists_kernel;
const fa_kernel_entry *fa_flex_lists_find(fa_flex_lists_kernel which);

#ifdef __cplusplus
}
#endif

#endif
