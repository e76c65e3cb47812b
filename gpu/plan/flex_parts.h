/* What the plans of calls with expressions or block lists have in common: gpu/plan/flex*.c only. */
#ifndef FA_GPU_PLAN_FLEX_PARTS_H
#define FA_GPU_PLAN_FLEX_PARTS_H

#include "gpu/plan/parts.h"

typedef struct fa_flex_builder {
  const fa_call *call;
  fa_plan *out;
  uint8_t *map;
  int64_t map_batch, map_heads; /* entries and heads that have a map of their own */
  fa_attention_params params;   /* of the attention, with its flex but for the tile lists */
} fa_flex_builder;

/* A problem whose kernels take longer to compile than to run: it has those with small tiles. */
bool fa_flex_is_short(const fa_attention *a);

fa_flex_builder fa_flex_builder_make(const fa_call *call, fa_plan *out);

/* Bytes of the workspace, aligned to 256; NULL where there is none yet. */
void *fa_flex_reserve(fa_flex_builder *b, int64_t bytes);

/* The launch that makes the map of blocks, from lists or mask_mod, and its place in the call; nothing where
 * there are no blocks. */
void fa_flex_add_map(fa_flex_builder *b, bool from_mask_mod, int64_t map_batch, int64_t map_heads);

/* The launch that makes lists of tiles of tile_m rows and tile_n keys; all zero where there are no blocks. */
fa_flex_lists fa_flex_add_tiles(fa_flex_builder *b, bool by_rows, int tile_m, int tile_n);

/* Has the expressions compiled into a launch of these parameters, without what the call lacks. dbias: their address of the
 * gradient of the bias, if it is stored by element. */
void fa_flex_compile_in(const fa_flex_builder *b, fa_mods mods, const fa_attention_params *p,
                        const void *dbias, fa_launch *l);

/* FA_ERR_UNSUPPORTED: tile lists of a size that no device has. */
fa_status fa_flex_check_tiles(const fa_attention *a, int tile_m, int tile_n, fa_error *err);

#endif
