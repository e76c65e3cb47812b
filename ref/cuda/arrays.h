/* Where the arrays of a call lie in a machine's memory. */
#ifndef FA_REF_CUDA_ARRAYS_H
#define FA_REF_CUDA_ARRAYS_H

#include "ref/cuda/lists.h"

/* Consecutive arrays from `base` on. Without a base, it only counts. */
typedef struct fa_judge_arena {
  char *base;
  size_t used;
} fa_judge_arena;

void *fa_judge_take(fa_judge_arena *a, int64_t n, size_t size);

/* The room that the rest of `bytes` gives a call. */
fa_judge_room fa_judge_room_of(const fa_ref_call *c, bool backward, bool by_turn, size_t bytes);

typedef struct fa_judge_part {
  char *first, *end;
} fa_judge_part;
/* From `first` to what is taken next. Without a base it is nowhere. */
fa_judge_part fa_judge_part_from(const fa_judge_arena *a, void *first);

/* Sets the pointers of x to arrays for the largest turn and wave. cleared: sums that must be 0 before a turn begins. */
void fa_judge_lay_out(const fa_ref_call *c, bool backward, const fa_judge_lists *l, fa_judge_arena *a,
                      fa_judge_job *x, fa_judge_part *cleared);

/* Whether the call has outputs of that kind. */
bool fa_judge_has_buffer_gradients(const fa_ref_call *c);

/* The arrays of an output with the shape of `like`. */
fa_judge_want fa_judge_lay_out_want(fa_judge_arena *a, const fa_want *like);

#endif
