/* Coverage of the kvcache family: what is where in a cache, and how it got there. */
#include "fuzz/coverage/table.h"

/* What the sequences of one call have in common. */
typedef struct entries {
  bool empty, full, from_empty, fills, crosses, several, hidden, hides_new, hides_pages, page_edge;
} entries;

static entries sequences_of(const fa_problem *p) {
  const fa_kvcache *c = &p->kvcache;
  entries e = {false};
  for (int64_t b = 0; b < c->len.n; ++b) {
    const int64_t len = c->len.v[b], n = len + c->n_new, pad = p->leftpad_k.n ? p->leftpad_k.v[b] : 0;
    const int64_t page = c->page_size;
    e.empty |= n == 0;
    e.full |= n == p->seqlen_k;
    e.from_empty |= len == 0 && c->n_new > 0;
    e.fills |= n == p->seqlen_k && c->n_new > 0;
    e.hidden |= n > 0 && pad == n;
    e.hides_new |= pad > len;
    if (page == 0) continue;
    e.crosses |= c->n_new > 0 && len / page != (n - 1) / page;
    e.several |= c->n_new > 0 && (n - 1) / page - len / page >= 3;
    e.hides_pages |= pad >= page;
    e.page_edge |= n > 0 && n % page == 0;
  }
  return e;
}

static bool shares_rows(const fa_int32_array *idx) {
  for (int64_t b = 0; b < idx->n; ++b)
    for (int64_t other = 0; other < b; ++other)
      if (idx->v[b] == idx->v[other]) return true;
  return false;
}

/* How sequences share pages: plainly, with new keys after them, and where padding hides the first keys of one
 * page from only one sequence. */
typedef struct sharing {
  bool any, new_keys, padded;
} sharing;

static sharing sharing_of(const fa_problem *p) {
  const fa_kvcache *c = &p->kvcache;
  sharing s = {false};
  for (int64_t b = 0; b < c->len.n; ++b)
    for (int64_t m = 0; m < c->shared_pages; ++m) {
      const int64_t owner = fa_problem_page_owner(p, b, m), first = m * c->page_size;
      if (owner == b) continue;
      s.any = true;
      if (!p->leftpad_k.n) continue;
      const int64_t mine = p->leftpad_k.v[b] - first, theirs = p->leftpad_k.v[owner] - first;
      s.padded |= (mine > 0 && mine > theirs) || (theirs > 0 && theirs > mine);
    }
  s.new_keys = s.any && c->n_new > 0;
  return s;
}

static void cover_sharing(fa_coverage *v, const fa_problem *p) {
  const sharing s = sharing_of(p);
  fa_coverage_see(v, FA_COVER_CACHE, 60, "cache: entries share pages", s.any);
  fa_coverage_see(v, FA_COVER_CACHE, 20, "cache: entries share pages, no new keys", s.any && !s.new_keys);
  fa_coverage_see(v, FA_COVER_CACHE, 30, "cache: new keys behind shared pages", s.new_keys);
  fa_coverage_see(v, FA_COVER_CACHE, 4, "cache: padding hides part of a shared page", s.padded);
}

static void cover_sequences(fa_coverage *v, const fa_problem *p) {
  const fa_kvcache *c = &p->kvcache;
  const entries e = sequences_of(p);
  fa_coverage_see(v, FA_COVER_CACHE, 100, "cache: an entry without keys", e.empty);
  fa_coverage_see(v, FA_COVER_CACHE, 300, "cache: an entry that is full", e.full);
  fa_coverage_see(v, FA_COVER_CACHE, 150, "cache: append to an empty entry", e.from_empty);
  fa_coverage_see(v, FA_COVER_CACHE, 150, "cache: append fills an entry", e.fills);
  fa_coverage_see(v, FA_COVER_CACHE, 60, "cache: append over a page's edge", e.crosses);
  fa_coverage_see(v, FA_COVER_CACHE, 40, "cache: append over four pages", e.several);
  fa_coverage_see(v, FA_COVER_CACHE, 100, "cache: keys end with a page", e.page_edge);
  fa_coverage_see(v, FA_COVER_CACHE, 30, "cache: padding hides all keys", e.hidden);
  fa_coverage_see(v, FA_COVER_CACHE, 20, "cache: padding hides new keys", e.hides_new);
  fa_coverage_see(v, FA_COVER_CACHE, 30, "cache: padding hides a page", e.hides_pages);
  fa_coverage_see(v, FA_COVER_CACHE, 15, "cache: entries share a row", shares_rows(&c->batch_idx));
  fa_coverage_see(v, FA_COVER_CACHE, 5, "cache: no queries, new keys",
                  c->present && p->seqlen_q == 0 && c->n_new > 0);
  fa_coverage_see(v, FA_COVER_CACHE, 80, "cache: more queries than new keys",
                  c->n_new > 0 && p->seqlen_q > c->n_new);
  fa_coverage_see(v, FA_COVER_CACHE, 150, "cache: more new keys than queries",
                  c->n_new > p->seqlen_q && p->seqlen_q > 0);
}

void fa_coverage_cache(fa_coverage *v, const fa_problem *p) {
  static const int64_t pages[] = {1, 2, 3, 7, 16, 64, 128, 256};
  const fa_kvcache *c = &p->kvcache;
  const bool moves = c->rotary_dim > 0 && p->mask.type != FA_MASK_NONE;
  cover_sequences(v, p);
  cover_sharing(v, p);
  for (size_t k = 0; k < sizeof pages / sizeof *pages; ++k)
    fa_coverage_see_number(v, FA_COVER_CACHE, 20, "cache: slots of a page ", pages[k],
                           c->page_size == pages[k]);
  fa_coverage_see(v, FA_COVER_CACHE, 25, "cache: rotary of one pair", c->rotary_dim == 2);
  fa_coverage_see(v, FA_COVER_CACHE, 60, "cache: rotary, rows at one position",
                  c->rotary_dim > 0 && !moves && p->seqlen_q > 1);
  fa_coverage_see(v, FA_COVER_CACHE, 100, "cache: rotary, rows move", moves && p->seqlen_q > 1);
  fa_coverage_see(v, FA_COVER_CACHE, 20, "cache: rotary without new keys",
                  c->rotary_dim > 0 && c->n_new == 0);
  fa_coverage_see(v, FA_COVER_CACHE, 100, "cache: rotary and pages", c->rotary_dim > 0 && c->page_size > 0);
  fa_coverage_see(v, FA_COVER_CACHE, 50, "cache: ALiBi", c->present && p->alibi.present);
  fa_coverage_see(v, FA_COVER_CACHE, 40, "cache: softcap", c->present && p->softcap > 0);
  fa_coverage_see(v, FA_COVER_CACHE, 100, "cache: window", c->present && fa_mask_has_edges(&p->mask));
  fa_coverage_see(v, FA_COVER_CACHE, 8, "cache: 16 heads to a KV head",
                  c->present && p->heads_q == 16 * p->heads_kv);
  fa_coverage_see(v, FA_COVER_SPLITS, 15, "cache: 128 splits", c->present && p->splits == 128);
  fa_coverage_see(v, FA_COVER_SPLITS, 200, "cache: splits and pages", c->page_size > 0 && p->splits > 1);
}
