/* What flex kernels (score_mod, mask_mod, block lists) have beyond the others: as the host fills it and the
 * device reads it. All zero for the other families. */
#ifndef FA_GPU_KERNELS_PARAMS_FLEX_H
#define FA_GPU_KERNELS_PARAMS_FLEX_H

#include <stdint.h>

enum { FA_FLEX_CAPTURED = 8 }; /* FA_MAX_CAPTURES */

/* What the block lists say of a block, and of a tile that lies in one block or in several of a kind. */
enum fa_flex_kind {
  FA_FLEX_FULLY_MASKED, /* of blocks alone: nobody sees anything */
  FA_FLEX_PARTIAL,  /* mask_mod is asked */
  FA_FLEX_FULL,     /* it is not */
  FA_FLEX_MIXED     /* of tiles alone: the map says of every pair */
};

/* Which tiles a kernel visits, for each of its tiles along one axis: made for its own tile sizes, from the
 * map.
 * count: [batch|1][heads|1][n], NULL: no lists, every tile is visited. entry: [...][n][capacity], ascending:
 * tile * 4 + kind. Strides in tiles of that axis; 0: the same for all. */
typedef struct fa_flex_lists {
  const int32_t *count, *entry;
  int n, capacity;
  int64_t batch_stride, head_stride;
} fa_flex_lists;

/* Calls back into an interpreter of the expressions, on the host alone. */
typedef struct fa_flex_functions fa_flex_functions;

typedef struct fa_flex_args {
  const void *buffer[FA_FLEX_CAPTURED]; /* captured, f32 or i32, contiguous, in the problem's order */
  /* fa_flex_kind of each block, [batch|1][heads|1][n_q_blocks][n_kv_blocks], NULL: there are no lists */
  const uint8_t *map;
  int q_block, kv_block, n_q_blocks, n_kv_blocks;
  int64_t map_batch_stride, map_head_stride; /* in bytes; 0: the same for all */
  fa_flex_lists keys;                        /* of each row tile: the key tiles that it sees */
  fa_flex_lists rows; /* backward, of each key tile: the row tiles that see it; by query head */
  /* Gradients of buffers, NULL where not wanted: cleared before, added to. exact: instead of it, the
   * accumulators of sums that do not depend on their order (gpu/kernels/mods/exact.cuh). */
  float *dbuffer[FA_FLEX_CAPTURED];
  uint64_t *exact[FA_FLEX_CAPTURED];
  const fa_flex_functions *functions; /* NULL on a device */
} fa_flex_args;

#endif
