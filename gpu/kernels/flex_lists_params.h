/* Arguments of the kernels that work block lists out, as the host fills them and the device reads them. */
#ifndef FA_GPU_KERNELS_FLEX_LISTS_PARAMS_H
#define FA_GPU_KERNELS_FLEX_LISTS_PARAMS_H

#include "gpu/kernels/flash_params.h"

/* A warp does one row of blocks, one row of tiles, or (mask) one block. Grids: x over those, by as many as a
 * block has warps; y over heads, z over entries. */
#define FA_FLEX_LISTS_THREADS 128
#define FA_FLEX_LISTS_WARPS (FA_FLEX_LISTS_THREADS / 32)

enum { FA_FLEX_CLEARED = FA_FLEX_BUFFERS + 1 };

/* One struct for all of them: each looks at its part. */
typedef struct fa_flex_lists_params {
  /* The call: lengths, and of flex the buffers, the functions and how the map is laid out. */
  fa_flash_params call;
  int map_batch, map_heads; /* entries and heads that have a map of their own */
  uint8_t *map;             /* call.flex.map, written by the first two */

  /* The blocks' lists, dense: [..][n_q_blocks], [..][n_q_blocks][n_kv_blocks]. */
  struct {
    const int32_t *count, *index;
  } from[2]; /* to the map: partial, full; NULL: none */
  struct {
    int32_t *count, *index;
  } to[2]; /* from the map */

  /* The tile lists: of rows if by_rows (row tiles to each key tile), else of keys. */
  int by_rows, tile_m, tile_n; /* rows and keys of a tile */
  int32_t *tile_count, *tile_entry;
  int n_tiles, capacity; /* along the lists' axis, and across it */

  /* Memory to be cleared; grid x: any number of blocks, y: parts. */
  uint32_t *clear[FA_FLEX_CLEARED];
  int64_t words[FA_FLEX_CLEARED];
} fa_flex_lists_params;

#endif
