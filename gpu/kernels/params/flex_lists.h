/* Arguments of the kernels that work block lists out, as the host fills them and the device reads them. */
#ifndef FA_GPU_KERNELS_PARAMS_FLEX_LISTS_H
#define FA_GPU_KERNELS_PARAMS_FLEX_LISTS_H

#include "gpu/kernels/params/attention.h"

#define FA_FLEX_LISTS_THREADS 128
#define FA_FLEX_LISTS_WARPS (FA_FLEX_LISTS_THREADS / 32)

/* A list of blocks, dense: count [entries][heads][n_q_blocks], index [..][n_q_blocks][n_kv_blocks]. */
typedef struct fa_flex_block_list {
  int32_t *count, *index; /* NULL: none; read or written */
} fa_flex_block_list;

/* One struct for all of them: each looks at its part. A warp does one row of blocks or of tiles, or (mask)
 * one block. Grid: x over those, FA_FLEX_LISTS_WARPS to a block; y over heads and z over entries that have a
 * map of their own. */
typedef struct fa_flex_lists_params {
  /* The call: lengths, and of flex the buffers, the functions and how the map is laid out. */
  fa_attention_params call;
  uint8_t *map;                     /* written from lists or mask_mod, read by the others */
  fa_flex_block_list partial, full; /* to the map, or from it */
  int by_rows;                      /* tiles: of fa_flex_args.rows, else of its keys */
  int tile_m, tile_n;               /* rows and keys of a tile */
  int32_t *tile_count, *tile_entry; /* dense, as fa_flex_lists says */
  int n_tiles, capacity;            /* along the lists' axis, and across it */
} fa_flex_lists_params;

#endif
