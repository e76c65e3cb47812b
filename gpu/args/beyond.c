/* What the kernels have no words for. */
#include "cases/vocabulary/combination.h"
#include "gpu/args/problem.h"

bool fa_args_is_flex(const fa_problem *p) {
  return p->family == FA_FLEX || fa_problem_has_mods(p);
}

const char *fa_args_beyond(const fa_problem *p) {
  enum {
    HAVE = 1 << FA_COMBINE_MODS_ANYWHERE | 1 << FA_COMBINE_BIAS_FLASH | 1 << FA_COMBINE_HEAD_DIM_V_FLASH |
           1 << FA_COMBINE_TOP_LEFT_FLASH
  };
  const fa_combination beyond = fa_combination_beyond(p, HAVE);
  return beyond == FA_N_COMBINATIONS ? NULL : fa_combination_describe(beyond)->what;
}
