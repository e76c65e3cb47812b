/* Lists of keys, as sparse attention has them. From a random stream of their own, so that cases without them stay what
 * they were. */
#include "fuzz/generate/parts.h"

#include <stdlib.h>

#define COUNT(a) ((int64_t)(sizeof(a) / sizeof *(a)))
#define PICK(r, a) ((a)[fa_rng_below(r, COUNT(a))])

static void drop_array(fa_int32_array *a) {
  free(a->v);
  *a = (fa_int32_array){0};
}

/* What lists are not together with. */
static void make_room(fa_problem *p) {
  p->mask = (fa_mask){.type = FA_MASK_NONE, .left = -1, .right = -1};
  p->mask_bits = (fa_mask_bits){0};
  p->dropout = (fa_dropout){0};
  p->kvcache.shared_pages = p->kvcache.rotary_dim = 0;
  p->kvcache.rotary_interleaved = false;
  drop_array(&p->leftpad_k);
  drop_array(&p->kvcache.batch_idx);
}

/* Ends before, on and behind the edges of tiles of entries. */
static fa_status draw_lengths(fa_problem *p, fa_rng *r) {
  static const int64_t edges[] = {0, 1, 63, 64, 65, 128};
  fa_status status = fa_int32_array_set(&p->topk.len, NULL, p->batch);
  for (int64_t b = 0; status == FA_OK && b < p->batch; ++b) {
    const int64_t n = fa_rng_chance(r, 0.6) ? PICK(r, edges) : fa_rng_range(r, 0, p->topk.k);
    p->topk.len.v[b] = (int32_t)(n < p->topk.k ? n : p->topk.k);
  }
  return status;
}

fa_status fa_gen_topk(fa_gen *g) {
  static const int64_t sizes[] = {1, 2, 16, 17, 63, 64, 64, 65, 128, 128, 256, 512};
  static const double shares[] = {0.1, 0.25, 0.5, 0.5, 0.9, 1}, few[] = {0.05, 0.3, 1};
  fa_rng r = fa_gen_rng(g, FA_GEN_TOPK);
  fa_problem *p = &g->c->problem;
  if (p->family != FA_KVCACHE || !fa_rng_chance(&r, g->rules->topk)) return FA_OK;
  make_room(p);
  fa_topk *t = &p->topk;
  *t = (fa_topk){.present = true, .k = PICK(&r, sizes), .seed = fa_rng_next(&r)};
  if (fa_rng_chance(&r, 0.6)) t->none = PICK(&r, shares);
  t->none_at = (fa_topk_place)fa_rng_below(&r, FA_TOPK_N_PLACES);
  if (fa_rng_chance(&r, 0.3)) t->repeated = PICK(&r, few);
  if (fa_rng_chance(&r, 0.2)) t->empty_rows = PICK(&r, few);
  t->beyond = p->kvcache.page_size == 0 && fa_rng_chance(&r, 0.5);
  return fa_rng_chance(&r, 0.3) ? draw_lengths(p, &r) : FA_OK;
}
