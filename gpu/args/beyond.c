/* What makes sense and the kernels have no words for. */
#include "gpu/args/problem.h"

static bool has_expressions(const fa_problem *p) {
  return p->score_mod || p->mask_mod;
}

bool fa_args_is_flex(const fa_problem *p) {
  return p->family == FA_FLEX || has_expressions(p) || p->block_sparse.present;
}

const char *fa_args_beyond(const fa_problem *p) {
  if (p->quantized.present) return "operands of 8 bits (quantized)";
  return p->topk.present && p->alibi.present ? "ALiBi slopes beside lists of keys (topk)" : NULL;
}
