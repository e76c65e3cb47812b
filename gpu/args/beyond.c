/* What makes sense and the kernels have no words for. */
#include "gpu/args/problem.h"

static bool has_expressions(const fa_problem *p) {
  return p->score_mod || p->mask_mod;
}

bool fa_args_is_flex(const fa_problem *p) {
  return p->family == FA_FLEX || has_expressions(p) || p->block_sparse.present;
}

/* The kernels take queries, keys and values of e4m3 with descales per tensor or head, and beside queries of 16 bits caches
 * of any type and descales. */
static const char *beyond_eight(const fa_quantized *q, fa_family family) {
  if (fa_quantizes_o(q)) return "an O of 8 bits (quantized.o)";
  if (family == FA_KVCACHE) return q->queries ? "queries of 8 bits over a cache (quantized.queries)" : NULL;
  if (q->dtype == FA_E5M2) return "operands in e5m2 (quantized)";
  if (!q->queries) return "keys and values of 8 bits beside queries of 16 (quantized)";
  return q->per > FA_PER_HEAD ? "a descale for each token (quantized)" : NULL;
}

const char *fa_args_beyond(const fa_problem *p) {
  if (p->quantized.present) return beyond_eight(&p->quantized, p->family);
  return p->topk.present && p->alibi.present ? "ALiBi slopes beside lists of keys (topk)" : NULL;
}
