/* Coverage of operands of 8 bits. */
#include "fuzz/coverage/table.h"

void fa_coverage_quantized(fa_coverage *v, const fa_problem *p) {
  const fa_quantized *q = &p->quantized;
  const bool has = q->present, keys = has && !q->queries, cache = has && p->kvcache.present;
  fa_coverage_see(v, FA_COVER_HEADS, 300, "8 bits: queries", q->queries);
  fa_coverage_see(v, FA_COVER_HEADS, 60, "8 bits: queries in e5m2", q->queries && q->dtype == FA_E5M2);
  fa_coverage_see(v, FA_COVER_HEADS, 60, "8 bits: one descale a tensor", has && q->per == FA_PER_TENSOR);
  fa_coverage_see(v, FA_COVER_HEADS, 100, "8 bits: descales of heads", has && q->per == FA_PER_HEAD);
  fa_coverage_see(v, FA_COVER_HEADS, 60, "8 bits: descales of tokens", has && q->per == FA_PER_TOKEN);
  fa_coverage_see(v, FA_COVER_HEADS, 30, "8 bits: descales all 1", has && q->values == FA_DESCALES_ONE);
  fa_coverage_see(v, FA_COVER_HEADS, 60, "8 bits: packed sequences", has && fa_problem_is_varlen(p));
  fa_coverage_see(v, FA_COVER_HEADS, 30, "8 bits: the largest P and O", q->amax);
  fa_coverage_see(v, FA_COVER_HEADS, 30, "8 bits: O too", fa_quantizes_o(q));
  fa_coverage_see(v, FA_COVER_CACHE, 200, "8 bits: a cache", cache);
  fa_coverage_see(v, FA_COVER_CACHE, 40, "8 bits: a cache in e4m3",
                  keys && cache && q->dtype == FA_E4M3 && q->per != FA_PER_TILE);
  fa_coverage_see(v, FA_COVER_CACHE, 40, "8 bits: a cache in e5m2", keys && cache && q->dtype == FA_E5M2);
  fa_coverage_see(v, FA_COVER_CACHE, 40, "8 bits: a cache in int8", keys && cache && q->dtype == FA_I8);
  fa_coverage_see(v, FA_COVER_CACHE, 20, "8 bits: a cache in e2m1", q->dtype == FA_E2M1);
  fa_coverage_see(v, FA_COVER_CACHE, 20, "8 bits: descales of pages", has && q->per == FA_PER_PAGE);
  fa_coverage_see(v, FA_COVER_CACHE, 5, "8 bits: rows of a latent cache that mix types",
                  q->per == FA_PER_TILE);
  fa_coverage_see(v, FA_COVER_CACHE, 40, "8 bits: new keys", cache && p->kvcache.n_new > 0);
  fa_coverage_see(v, FA_COVER_CACHE, 20, "8 bits: new keys that are quantised", q->quantizes_new);
}
