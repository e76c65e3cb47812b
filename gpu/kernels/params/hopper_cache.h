/* Arguments of the forward kernels for sm_90a over a KV cache, filled in by the host and read by the device. */
#ifndef FA_GPU_KERNELS_PARAMS_HOPPER_CACHE_H
#define FA_GPU_KERNELS_PARAMS_HOPPER_CACHE_H

#include "gpu/kernels/params/hopper.h"

/* Slots, pages and sequences are those of fa_cache_params; there are no masked keys before a sequence's first one in
 * pages. 2^pack query heads of a KV head share work tiles: row r of such a tile is row r >> pack of the sequence, of
 * the head r % 2^pack of them. So the maps of q and o have axes head_dim, head, row, batch. Those of k and v have
 * head_dim, slot, head, and row of the cache or page. */
typedef struct fa_hopper_cache_params {
  fa_tensor_map q, k, v, o;
  fa_attention_params f; /* all but its keys' tensors and lengths */
  /* row_blocks: of the longest sequence; heads: groups of heads that share tiles, in one sequence, and sections are of
   * those; n = 0: how many work tiles there are is up to the lengths */
  fa_tile_scheduler_params tiles;
  int batch, pack;
  int both_ends; /* work tiles are taken from the first and from the last sequence on in turn: a batch that decodes and
                    prefills has those that wait for memory beside those that compute */
  int n_new;
  const int32_t *cache_seqlens, *cache_batch_idx; /* or NULL */
  const int32_t *block_table;                     /* NULL: not paged */
  int64_t table_stride;
  int page_size; /* not read without pages */
  int piece;     /* keys of a box, of which key blocks and pages are multiples */
} fa_hopper_cache_params;

#endif
