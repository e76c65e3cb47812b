/* Arguments of the kernels that compute block lists, filled in by the host and read by the device. */
#ifndef FA_GPU_KERNELS_PARAMS_FLEX_LISTS_H
#define FA_GPU_KERNELS_PARAMS_FLEX_LISTS_H

#include "gpu/kernels/params/attention.h"

#define FA_FLEX_LISTS_THREADS 128
#define FA_FLEX_LISTS_WARPS (FA_FLEX_LISTS_THREADS / 32)

/* A list of blocks, dense: count [list_batch][list_heads][n_q_blocks], index
 * [list_batch][list_heads][n_q_blocks][n_kv_blocks]. */
typedef struct fa_flex_block_list {
  int32_t *count, *index; /* NULL: no such list; read or written */
} fa_flex_block_list;

/* One struct for all of these kernels; each reads its part. A warp works on one row of blocks or tiles, or
 * (mask) on one block. Grid: x over those, FA_FLEX_LISTS_WARPS to a block; y over heads and z over sequences
 * that have a map of their own. */
typedef struct fa_flex_lists_params {
  /* The call: lengths, and in flex the buffers, the functions and the layout of the map. */
  fa_attention_params call;
  uint8_t *map;                     /* written from lists or by mask_mod, read by the others */
  fa_flex_block_list partial, full; /* converted to the map, or made from it */
  int list_batch, list_heads; /* converted: sequence b, head h have lists b % list_batch, h % list_heads */
  int by_rows;                /* tile lists for fa_flex_args.rows; else for its keys */
  int tile_m, tile_n;         /* rows and keys of a tile */
  int32_t *tile_count, *tile_entry; /* dense, layout as in fa_flex_lists */
  int n_tiles, capacity;            /* along the axis of the lists, and across it */
} fa_flex_lists_params;

#endif
