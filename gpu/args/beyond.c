/* What makes sense and the kernels have no words for. */
#include "gpu/args/problem.h"

static bool has_expressions(const fa_problem *p) {
  return p->score_mod || p->mask_mod;
}

bool fa_args_is_flex(const fa_problem *p) {
  return p->family == FA_FLEX || has_expressions(p) || p->block_sparse.present;
}

static bool listed_slopes(const fa_problem *p) {
  return p->topk.present && p->alibi.present;
}

const char *fa_args_beyond(const fa_problem *p) {
  static const struct {
    bool (*is_in)(const fa_problem *p);
    const char *what;
  } all[] = {
      {listed_slopes, "ALiBi slopes beside lists of keys (topk)"},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
    if (all[i].is_in(p)) return all[i].what;
  return NULL;
}
