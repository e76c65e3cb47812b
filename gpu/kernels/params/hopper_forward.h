/* Arguments of the sm_90a kernels, as the host fills them and the device reads them. */
#ifndef FA_GPU_KERNELS_PARAMS_HOPPER_FORWARD_H
#define FA_GPU_KERNELS_PARAMS_HOPPER_FORWARD_H

#include "gpu/kernels/params/attention.h"
#include "gpu/kernels/params/tensor_map.h"

/* Numbers in device memory that blocks of one launch share; 0 between launches. */
enum { FA_HOPPER_COUNTERS = 1 << 16 };

/* Which row block of which head a block works on next: all row blocks of `section` heads come before the next
 * section's, so that their keys and values stay in the L2 cache; within a section the heads' first row blocks
 * come first, then their second ones. */
typedef struct fa_tile_scheduler_params {
  int n, row_blocks, heads; /* n = row_blocks * heads; heads: of all batch entries */
  int section;              /* heads, >= 1 */
  int last_first;           /* row blocks from the last one down: those with most keys */
  int counter; /* the number of a counter that no launch under way uses: blocks take tiles as they come to
                  them; -1: each block has its own from the start */
} fa_tile_scheduler_params;

/* Maps have axes head_dim, row, head, batch. */
typedef struct fa_hopper_params {
  fa_tensor_map q, k, v, o;
  fa_attention_params f;
  fa_tile_scheduler_params tiles;
} fa_hopper_params;

#endif
