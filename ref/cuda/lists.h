/* A call's heads and query blocks, divided into turns and waves by what memory has room for. */
#ifndef FA_REF_CUDA_LISTS_H
#define FA_REF_CUDA_LISTS_H

#include "cases/base/status.h"
#include "ref/cuda/job.h"

/* Some consecutive heads, whose keys are in memory together. */
typedef struct fa_judge_turn {
  int64_t first_head, n_heads, keys, key_strips;
  int64_t first_wave, n_waves;
} fa_judge_turn;

/* Some consecutive blocks of a turn, whose pairs are in memory together. */
typedef struct fa_judge_wave {
  int64_t first_block, n_blocks, rows, strips, tiles, keys, pairs;
} fa_judge_wave;

typedef struct fa_judge_lists {
  fa_judge_head *head;
  fa_judge_block *block;
  fa_judge_turn *turn;
  fa_judge_wave *wave;
  int64_t n_heads, n_blocks, n_turns, n_waves;
  fa_judge_turn most_of_turn; /* the most keys of any turn */
  fa_judge_wave most;         /* of every count, the most of any wave */
} fa_judge_lists;

/* What a key of a turn takes, and a row and a pair of a wave, and how much there is of each. */
typedef struct fa_judge_room {
  size_t key_bytes, row_bytes, pair_bytes, turn_bytes, wave_bytes;
  bool apart; /* query heads of a group have sums of their own: fa_bound_heads_apart */
} fa_judge_room;

/* FA_ERR_MEMORY: there is not even room for one head or one block. */
fa_status fa_judge_lists_make(const fa_ref_call *c, const fa_judge_room *room, fa_judge_lists *out,
                              fa_error *err);
void fa_judge_lists_free(fa_judge_lists *l);

#endif
