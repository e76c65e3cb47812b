/* Combinations of features that a problem may have and that few kernels have: what makes sense is a problem,
 * and a subject that lacks it skips the case. Features alone are not here (fa_problem has a field for each).
 *
 * A subject that says what it supports one feature at a time has said nothing about these, so whoever asks it
 * has to ask for each by name. */
#ifndef FA_CASES_VOCABULARY_COMBINATION_H
#define FA_CASES_VOCABULARY_COMBINATION_H

#include "cases/vocabulary/problem.h"

typedef enum fa_combination {
  FA_COMBINE_CU_SEQLENS_CACHE,
  FA_COMBINE_BIAS_CACHE,
  FA_COMBINE_MODS_CACHE,
  FA_COMBINE_BLOCKS_CACHE,
  FA_COMBINE_DROPOUT_CACHE,
  FA_COMBINE_HEAD_DIM_V_CACHE,
  FA_COMBINE_TOP_LEFT_CACHE,
  FA_COMBINE_BIAS_VARLEN,
  FA_COMBINE_BLOCKS_VARLEN,
  FA_COMBINE_DROPOUT_FLEX,
  FA_COMBINE_MODS_ANYWHERE,
  FA_COMBINE_BIAS_FLASH,
  FA_COMBINE_HEAD_DIM_V_FLASH,
  FA_COMBINE_TOP_LEFT_FLASH,
  FA_N_COMBINATIONS
} fa_combination;

typedef struct fa_combination_info {
  const char *name; /* a word for declarations: "bias_cache" */
  const char *what; /* a clause for reasons: "a bias over a KV cache" */
  bool (*is_in)(const fa_problem *p);
} fa_combination_info;

const fa_combination_info *fa_combination_describe(fa_combination k); /* asserts k < FA_N_COMBINATIONS */

/* A bit (1 << k) for every combination that the problem has. */
unsigned fa_combinations_in(const fa_problem *p);
/* The first combination of the problem that is not in `allowed`; FA_N_COMBINATIONS: none. */
fa_combination fa_combination_beyond(const fa_problem *p, unsigned allowed);

/* The problem has score_mod, mask_mod or block lists, whatever its family. */
bool fa_problem_has_mods(const fa_problem *p);

#endif
