/* Chunked attention, and custom masks of bits. They have a random stream of their own, so that profiles without them
 * draw what they always drew. */
#include "fuzz/generate/parts.h"

#define COUNT(a) ((int64_t)(sizeof(a) / sizeof *(a)))
#define PICK(r, a) ((a)[fa_rng_below(r, COUNT(a))])

/* One key, pages, tiles, lengths that end inside a tile, and more than all keys. */
static void draw_chunk(fa_gen *g, fa_rng *r) {
  static const int64_t sizes[] = {1,  2,  3,  5,  7,   16,  17,  31,  32,  48, 63,
                                  64, 64, 65, 96, 100, 100, 127, 128, 129, 192};
  fa_problem *p = &g->c->problem;
  const int64_t page = p->kvcache.page_size, window_left = p->mask.type == FA_MASK_WINDOW ? p->mask.left : -1;
  const int64_t kind = fa_rng_below(r, 10);
  p->mask.type = FA_MASK_CHUNK;
  p->mask.left = window_left;
  p->mask.right = -1;
  p->mask.size = PICK(r, sizes);
  if (kind == 0) p->mask.size = p->seqlen_k + fa_rng_range(r, 1, 70);
  if (kind == 1 && p->seqlen_k > 1) p->mask.size = fa_rng_range(r, p->seqlen_k / 2, p->seqlen_k);
  if (kind <= 4 && page > 0) p->mask.size = page;
}

/* What the bits decide is no longer the diagonal's: of masks only a window stays. */
static void draw_bits(fa_gen *g, fa_rng *r) {
  static const double densities[] = {0, 0.02, 0.1, 0.3, 0.5, 0.5, 0.9, 0.99, 1},
                      empty[] = {0.02, 0.1, 0.5, 1};
  fa_problem *p = &g->c->problem;
  fa_mask_bits *m = &p->mask_bits;
  if (p->mask.type != FA_MASK_WINDOW) p->mask = (fa_mask){.type = FA_MASK_NONE, .left = -1, .right = -1};
  m->present = true;
  m->source =
      fa_rng_chance(r, 0.5) ? FA_BITS_DENSITY : (fa_bits_source)fa_rng_range(r, 1, FA_N_BITS_SOURCES - 1);
  if (m->source == FA_BITS_DENSITY) m->density = PICK(r, densities);
  if (fa_rng_chance(r, 0.25)) m->empty_rows = PICK(r, empty);
  m->hide_diagonal = fa_rng_chance(r, 0.2);
  m->seed = fa_rng_next(r);
}

void fa_gen_masks(fa_gen *g) {
  fa_rng r = fa_gen_rng(g, FA_GEN_MASKS);
  const fa_family family = g->c->problem.family;
  const bool can_have_bits = family == FA_FLASH || family == FA_KVCACHE;
  if (fa_rng_chance(&r, g->rules->chunk))
    draw_chunk(g, &r);
  else if (can_have_bits && fa_rng_chance(&r, g->rules->mask_bits))
    draw_bits(g, &r);
}
