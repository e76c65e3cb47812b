/* Arguments of the kernels for sm_90a, filled in by the host and read by the device. */
#ifndef FA_GPU_KERNELS_PARAMS_HOPPER_H
#define FA_GPU_KERNELS_PARAMS_HOPPER_H

#include "gpu/kernels/params/flash_backward.h"
#include "gpu/kernels/params/tensor_map.h"

/* Counters in device memory that the blocks of one launch share; 0 between launches. */
enum { FA_HOPPER_COUNTERS = 1 << 16 };

/* The tile scheduler: the order in which blocks work on the row blocks of all heads. All row blocks of
 * `section` heads come before those of the next section, so that their K and V stay in the L2 cache. Within a
 * section the first row blocks of all heads come first, then the second ones. */
typedef struct fa_tile_scheduler_params {
  int n, row_blocks, heads; /* n = row_blocks * heads; heads: over the whole batch, or if `sequences` of one sequence */
  int section;              /* heads, >= 1 */
  int last_first;           /* row blocks in descending order: of a sequence those with the most keys first */
  int sequences;            /* so many packed ones, whose row blocks follow one another (forward_work_tile.cuh); 0: every
                               sequence has as many as the longest */
  int counter; /* index of a counter that no other launch in flight uses: blocks fetch their next work tile
                  from it; -1: the assignment is static */
} fa_tile_scheduler_params;

/* The maps have axes head_dim, row, head, batch. */
typedef struct fa_hopper_params {
  fa_tensor_map q, k, v, o;
  fa_attention_params f;
  fa_tile_scheduler_params tiles;
  fa_kernel_amax amax; /* only the kernels that have AMAX read it */
} fa_hopper_params;

/* Of those with a bias: its map, with axes key, row, head, batch; one that is broadcast has one element. */
typedef struct fa_hopper_biased_params {
  fa_tensor_map bias;
  fa_hopper_params call;
} fa_hopper_biased_params;

/* Of the main backward kernels: those of the call's other kernels, and tensor maps. The maps have axes head_dim, row, head, batch. */
typedef struct fa_hopper_backward_params {
  fa_tensor_map q, k, v, d_o, dk, dv;
  fa_backward_params b;
  int row_dim; /* columns of a row of the workspace; a tile of whole panels may have more */
} fa_hopper_backward_params;

/* Of those with a bias: its map, as forward, and its gradient's, which has all elements of every axis; without a gradient
 * that is not read. */
typedef struct fa_hopper_biased_backward_params {
  fa_tensor_map bias, dbias;
  fa_hopper_backward_params call;
} fa_hopper_biased_backward_params;

#endif
