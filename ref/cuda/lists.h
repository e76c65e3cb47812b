/* A call's heads and query blocks, divided into turns and waves by what memory has room for. */
#ifndef FA_REF_CUDA_LISTS_H
#define FA_REF_CUDA_LISTS_H

#include "cases/base/status.h"
#include "ref/cuda/job.h"

/* Some consecutive heads, whose keys are in memory together. */
typedef struct fa_judge_turn {
  int64_t first_head, n_heads, keys, key_strips, most_sk;
  int64_t queries;                     /* rows of its query heads */
  int64_t keys_before, queries_before; /* of the turns before it */
  int64_t first_wave, n_waves;
} fa_judge_turn;

/* Some consecutive blocks of a turn, whose pairs are in memory together. */
typedef struct fa_judge_wave {
  int64_t first_block, n_blocks, n_heads, rows, strips, tiles, keys, pairs;
  int64_t width,
      parts; /* keys of the widest block; rows times the parts that their sums are taken in, 0: one */
} fa_judge_wave;

typedef struct fa_judge_lists {
  fa_judge_head *head;
  fa_judge_block *block;
  fa_judge_turn *turn;
  fa_judge_wave *wave;
  int64_t n_heads, n_blocks, n_turns, n_waves;
  fa_judge_turn most_of_turn; /* the most keys and queries of any turn */
  fa_judge_wave most;         /* of every count, the most of any wave */
} fa_judge_lists;

/* What a query and a key of a turn take, a row and a pair of a wave, and a row of sums in parts, and how much there is of a
 * turn and of a wave. */
typedef struct fa_judge_room {
  bool by_turn; /* inputs lie as the heads of a turn have them, one behind the other */
  bool apart;   /* query heads of a group have sums of their own: fa_bound_heads_apart */
  size_t query_bytes, key_bytes, row_bytes, pair_bytes, part_bytes, turn_bytes, wave_bytes;
} fa_judge_room;

/* FA_ERR_MEMORY: there is not even room for one head or one block. */
fa_status fa_judge_lists_make(const fa_ref_call *c, const fa_judge_room *room, fa_judge_lists *out,
                              fa_error *err);
void fa_judge_lists_free(fa_judge_lists *l);

#endif
