/* How many splits of its keys a call over a KV cache is given, where the caller does not say. */
#ifndef FA_GPU_PLAN_SPLITS_H
#define FA_GPU_PLAN_SPLITS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { FA_CACHE_MOST_SPLITS = 128 }; /* that are ever chosen; callers may ask for more */

typedef struct fa_cache_work {
  int64_t tiles;       /* (blocks of packed rows) * KV heads * entries: blocks of the grid with one split */
  int64_t key_blocks;  /* of the longest entry, as far as the host knows */
  int64_t block_bytes; /* of the keys and values of one key block */
  int n_processors, blocks_per_processor; /* as many as an H100 holds; with less shared memory it may be fewer, which costs time alone */
  int filling;        /* blocks that it takes for a processor to be as fast as memory; 0: one */
  int64_t sharing;    /* tiles side by side that read the same keys, which memory gives once; 0: 1 */
  int64_t block_ns;   /* that a processor works on a key block; 0: as long as it takes to come */
  int64_t part_bytes; /* of all rows' results of one split, which the combine reads; 0: few */
} fa_cache_work;

/* Splits that are a cluster, powers of two up to `most`, of a kernel that needs no combine for them; 0: better so many as
 * fa_cache_splits_choose says, with one. */
int fa_cache_cluster_choose(const fa_cache_work *load, int most);

/* Whether the device has room for all clusters of n blocks at once. */
bool fa_cache_clusters_fit(const fa_cache_work *load, int n);

/* From 1 to FA_CACHE_MOST_SPLITS, and no more than key_blocks (1 where there are none). */
int fa_cache_splits_choose(const fa_cache_work *load);

#ifdef __cplusplus
}
#endif

#endif
