/* Coverage of latent attention and of lists of keys. */
#include "fuzz/coverage/table.h"

static void cover_lists(fa_coverage *v, const fa_problem *p) {
  const fa_topk *t = &p->topk;
  const bool has = t->present, packed = fa_problem_is_varlen(p), paged = p->kvcache.page_size > 0;
  const bool ends[] = {t->none > 0 && t->none_at == FA_TOPK_END, t->none > 0 && t->none_at == FA_TOPK_FRONT,
                       t->none > 0 && t->none_at == FA_TOPK_ANYWHERE};
  bool cut = false, none = false;
  for (int64_t b = 0; b < t->len.n; ++b) cut |= t->len.v[b] < t->k, none |= t->len.v[b] == 0;
  fa_coverage_see(v, FA_COVER_MASKS, 150, "lists of keys", has);
  fa_coverage_see(v, FA_COVER_MASKS, 25, "lists: none at the end", ends[0]);
  fa_coverage_see(v, FA_COVER_MASKS, 25, "lists: none in front", ends[1]);
  fa_coverage_see(v, FA_COVER_MASKS, 25, "lists: none anywhere", ends[2]);
  fa_coverage_see(v, FA_COVER_MASKS, 8, "lists: a tile of none before the first key",
                  ends[1] && t->none * (double)t->k >= 64);
  fa_coverage_see(v, FA_COVER_MASKS, 20, "lists: repeated keys", has && t->repeated > 0);
  fa_coverage_see(v, FA_COVER_MASKS, 15, "lists: rows without any key", has && t->empty_rows > 0);
  fa_coverage_see(v, FA_COVER_MASKS, 15, "lists: numbers behind the last key", has && t->beyond);
  fa_coverage_see(v, FA_COVER_MASKS, 20, "lists: entries behind the length", cut);
  fa_coverage_see(v, FA_COVER_MASKS, 5, "lists: a length of 0", none);
  fa_coverage_see(v, FA_COVER_MASKS, 40, "lists: pages", has && paged);
  fa_coverage_see(v, FA_COVER_MASKS, 30, "lists: packed rows", has && packed);
  fa_coverage_see(v, FA_COVER_MASKS, 30, "lists: splits", has && p->splits > 1);
  fa_coverage_see(v, FA_COVER_MASKS, 30, "lists: new keys", has && p->kvcache.n_new > 0);
}

void fa_coverage_latent(fa_coverage *v, const fa_problem *p) {
  const fa_kvcache *c = &p->kvcache;
  const bool has = c->v_in_k;
  fa_coverage_see(v, FA_COVER_CACHE, 400, "latent cache", has);
  fa_coverage_see(v, FA_COVER_CACHE, 80, "latent cache: 576 and 512 columns", has && p->head_dim == 576);
  fa_coverage_see(v, FA_COVER_CACHE, 30, "latent cache: no rotary columns",
                  has && p->head_dim == p->head_dim_v);
  fa_coverage_see(v, FA_COVER_CACHE, 20, "latent cache: 64 heads or more", has && p->heads_q >= 64);
  fa_coverage_see(v, FA_COVER_CACHE, 100, "latent cache: pages of 64", has && c->page_size == 64);
  fa_coverage_see(v, FA_COVER_CACHE, 100, "latent cache: packed rows", has && fa_problem_is_varlen(p));
  fa_coverage_see(v, FA_COVER_CACHE, 100, "latent cache: new keys", has && c->n_new > 0);
  fa_coverage_see(v, FA_COVER_CACHE, 100, "latent cache: splits", has && p->splits > 1);
  fa_coverage_see(v, FA_COVER_CACHE, 100, "latent cache: causal, several rows",
                  has && p->mask.type == FA_MASK_CAUSAL && p->seqlen_q > 1);
  fa_coverage_see(v, FA_COVER_HEADS, 60, "head_dim 192, head_dim_v 128",
                  p->family == FA_FLASH && p->head_dim == 192 && p->head_dim_v == 128);
  cover_lists(v, p);
}
