/* Problems for the cache kernels: their memory, their launches on the host executor, and a float64 loop that
 * judges the results. Slots without keys hold NaN, unused table entries garbage, and scratch memory must be
 * written before it is read. */
#ifndef FA_TESTS_KERNELS_KV_PROBLEM_H
#define FA_TESTS_KERNELS_KV_PROBLEM_H

#include "gpu/kernels/params/cache.h"
#include "gpu/kernels/registry/select.h"

#include <stdbool.h>

enum { KV_MAX_BATCH = 4 };

typedef struct cache_setting {
  int bf16, head_dim, batch, heads_kv, group, rows, keys[KV_MAX_BATCH], splits;
  int page_size;                             /* 0: not paged */
  int n_new, pad[KV_MAX_BATCH], left, right; /* left, right: of the window, plus 1; 0: none */
  double scale;                              /* 0: 1 / sqrt(head_dim); NaN: 0 */
  double softcap;
  int alibi, unaligned, moved; /* moved: sequences use rows of the cache other than their own */
  int far;                     /* rows of the cache, or pages, are 2^30 elements apart */
} cache_setting;

typedef struct cache_problem {
  cache_setting s;
  fa_cache_params p;
  uint16_t *q, *k, *v, *o;
  float *lse, *slopes, *partial_o, *partial_lse;
  uint8_t *o_written, *lse_written;
  int32_t *seqlens, *rows, *pads, *table;
  int64_t n_q, n_cache, n_partial, n_rows, pages, table_stride;
  double scale;
  int capacity, wrong;
} cache_problem;

/* Parses words: f16 or bf16, d= heads= group= rows= keys=A,B.. splits= page= new= pad=A,B.. left= right=
 * scale= cap=, alibi, unaligned, moved, far. Ends the program at an unknown word. */
cache_setting cache_setting_parse(const char *words);

void cache_problem_make(const cache_setting *s, cache_problem *x);
void cache_problem_free(cache_problem *x);

/* Run the whole call, or one kernel of it. text receives the executor's message. */
bool cache_problem_run(cache_problem *x, uint64_t seed, char text[512]);
bool cache_problem_launch(cache_problem *x, const fa_cache_kernel *k, int64_t grid_x, int grid_y, int grid_z,
                          uint64_t seed, char text[512]);

/* Counts, in x->wrong, the elements of o and lse whose error exceeds what roundings of P and O can cause. */
void cache_problem_judge(cache_problem *x);

#endif
