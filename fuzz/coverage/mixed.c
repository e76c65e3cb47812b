/* Coverage of features that few kernels combine: anything over a cache, of packed sequences, in any family. */
#include "fuzz/coverage/table.h"

static bool has_expressions(const fa_problem *p) {
  return p->score_mod || p->mask_mod;
}

/* An entry of packed queries with this many rows, beside one with more. */
static bool has_entry(const fa_problem *p, int64_t rows) {
  bool has = false;
  for (int64_t b = 0; b + 1 < p->cu_seqlens_q.n; ++b)
    has |= p->cu_seqlens_q.v[b + 1] - p->cu_seqlens_q.v[b] == rows;
  return has && p->seqlen_q > rows;
}

static void cover_cached(fa_coverage *v, const fa_problem *p) {
  const bool cache = p->kvcache.present, packed = cache && fa_problem_is_varlen(p);
  const bool top_left = p->mask.type != FA_MASK_NONE && p->mask.align == FA_ALIGN_TOP_LEFT;
  fa_coverage_see(v, FA_COVER_CACHE, 60, "cache: packed queries", packed);
  fa_coverage_see(v, FA_COVER_CACHE, 20, "cache: packed, an entry without queries",
                  packed && has_entry(p, 0));
  fa_coverage_see(v, FA_COVER_CACHE, 20, "cache: packed, one query beside many", packed && has_entry(p, 1));
  fa_coverage_see(v, FA_COVER_CACHE, 20, "cache: packed queries and pages",
                  packed && p->kvcache.page_size > 0);
  fa_coverage_see(v, FA_COVER_CACHE, 20, "cache: packed queries, rotary",
                  packed && p->kvcache.rotary_dim > 0);
  fa_coverage_see(v, FA_COVER_SPLITS, 20, "cache: packed queries and splits", packed && p->splits > 1);
  fa_coverage_see(v, FA_COVER_CACHE, 50, "cache: bias", cache && p->bias.present);
  fa_coverage_see(v, FA_COVER_CACHE, 50, "cache: expressions", cache && has_expressions(p));
  fa_coverage_see(v, FA_COVER_CACHE, 50, "cache: block lists", cache && p->block_sparse.present);
  fa_coverage_see(v, FA_COVER_CACHE, 30, "cache: dropout", cache && p->dropout.p > 0);
  fa_coverage_see(v, FA_COVER_CACHE, 50, "cache: head_dim_v other than head_dim",
                  cache && p->head_dim_v != p->head_dim);
  fa_coverage_see(v, FA_COVER_CACHE, 6, "cache: head_dim > 256", cache && p->head_dim > 256);
  fa_coverage_see(v, FA_COVER_CACHE, 40, "cache: top-left mask", cache && top_left);
}

void fa_coverage_mixed(fa_coverage *v, const fa_problem *p) {
  const bool packed = fa_problem_has_packed_keys(p), plain = p->family == FA_FLASH || p->family == FA_MEMEFF;
  cover_cached(v, p);
  fa_coverage_see(v, FA_COVER_SPLITS, 50, "splits of packed keys, flash",
                  packed && p->family == FA_FLASH && p->splits > 1);
  fa_coverage_see(v, FA_COVER_VARLEN, 50, "variable length, bias", packed && p->bias.present);
  fa_coverage_see(v, FA_COVER_VARLEN, 20, "variable length, one bias for all",
                  packed && p->bias.present && !p->bias.per_batch && p->batch > 1);
  fa_coverage_see(v, FA_COVER_VARLEN, 50, "variable length, block lists", packed && p->block_sparse.present);
  fa_coverage_see(v, FA_COVER_DROPOUT, 40, "dropout, flex", p->family == FA_FLEX && p->dropout.p > 0);
  fa_coverage_see(v, FA_COVER_DROPOUT, 40, "dropout and expressions", has_expressions(p) && p->dropout.p > 0);
  fa_coverage_see(v, FA_COVER_SCORES, 80, "expressions outside flex", plain && has_expressions(p));
  fa_coverage_see(v, FA_COVER_SCORES, 50, "block lists outside flex", plain && p->block_sparse.present);
  fa_coverage_see(v, FA_COVER_SCORES, 50, "bias, flash", p->family == FA_FLASH && p->bias.present);
  fa_coverage_see(v, FA_COVER_SCORES, 50, "softcap and a bias", plain && p->softcap > 0 && p->bias.present);
  fa_coverage_see(v, FA_COVER_SCORES, 50, "slopes and a bias", plain && p->alibi.present && p->bias.present);
  fa_coverage_see(v, FA_COVER_SCORES, 150, "softcap or slopes, f32 or a large head_dim",
                  plain && (p->softcap > 0 || p->alibi.present) && (p->dtype == FA_F32 || p->head_dim > 256));
  fa_coverage_see(v, FA_COVER_DROPOUT, 8, "dropout of flash and a bias",
                  p->family == FA_FLASH && p->dropout.p > 0 && p->bias.present);
  fa_coverage_see(v, FA_COVER_HEADS, 50, "head_dim_v other than head_dim, flash",
                  p->family == FA_FLASH && p->head_dim_v != p->head_dim);
}
