/* Operands of 8 bits. From a random stream of their own. */
#include "fuzz/generate/parts.h"

#include <math.h>

#define COUNT(a) ((int64_t)(sizeof(a) / sizeof *(a)))
#define PICK(r, a) ((a)[fa_rng_below(r, COUNT(a))])

/* Other profiles have them beside all else, mostly such as the kernels take. */
static bool is_about_them(const fa_gen *g) {
  return g->rules->quantized >= 1;
}

static bool is_able(const fa_gen *g, fa_rng *r) {
  const fa_problem *p = &g->c->problem;
  if ((p->family != FA_FLASH && p->family != FA_KVCACHE) || p->kvcache.v_in_k) return false;
  return fa_rng_chance(r, g->rules->quantized) &&
         (is_about_them(g) || p->head_dim % 16 == 0 || fa_rng_chance(r, 0.1));
}

static bool draw_queries(const fa_gen *g, fa_rng *r) {
  const double over_cache = is_about_them(g) ? 0.2 : 0.05;
  return fa_rng_chance(r, g->c->problem.family == FA_FLASH ? 0.9 : over_cache);
}

/* What they are not together with, and dropout beside queries: 1 / (1 - p) leaves P no room in its range. */
static void make_room(fa_problem *p, bool queries) {
  p->backward = p->grad_lse = p->return_softmax = p->sinks.grad = false;
  p->kvcache.rotary_dim = 0;
  p->kvcache.rotary_interleaved = false;
  if (queries) p->dropout = (fa_dropout){0};
  if (queries && p->dtype == FA_F32) p->dtype = FA_BF16;
}

/* A latent cache whose rows mix types: what new keys are not made of. */
static void draw_tiles(fa_gen *g, fa_rng *r) {
  fa_problem *p = &g->c->problem;
  const bool able = p->head_dim_v % FA_MIXED_TILE == 0 && p->kvcache.n_new == 0 && p->dtype != FA_F32;
  if (!able || g->rules->quantized == 0 || !fa_rng_chance(r, 0.5)) return;
  p->quantized = (fa_quantized){.present = true, .dtype = FA_E4M3, .per = FA_PER_TILE};
  if (fa_rng_chance(r, 0.25)) p->quantized.values = FA_DESCALES_POWERS;
  make_room(p, false);
}

/* An O of 8 bits, with a scale under which most of it saturates, or is below the normal range, among others. */
static void draw_o(fa_quantized *q, fa_rng *r) {
  if (!fa_rng_chance(r, 0.3)) return;
  q->o = fa_rng_chance(r, 0.75) ? FA_E4M3 : FA_E5M2;
  if (fa_rng_chance(r, 0.3)) q->o_scale = (float)exp2(-12 + 26 * fa_rng_next_uniform(r));
}

void fa_gen_quantized(fa_gen *g) {
  static const fa_dtype of_queries[] = {FA_E4M3, FA_E4M3, FA_E4M3, FA_E5M2},
                        of_keys[] = {FA_E4M3, FA_E4M3, FA_E5M2, FA_I8};
  static const fa_descale_per of_calls[] = {FA_PER_TENSOR, FA_PER_HEAD, FA_PER_HEAD, FA_PER_TOKEN};
  fa_rng r = fa_gen_rng(g, FA_GEN_QUANTIZED);
  fa_problem *p = &g->c->problem;
  fa_quantized *q = &p->quantized;
  if (p->kvcache.v_in_k) draw_tiles(g, &r);
  if (!is_able(g, &r)) return;
  *q = (fa_quantized){.present = true, .queries = draw_queries(g, &r)};
  q->dtype = q->queries ? PICK(&r, of_queries) : PICK(&r, of_keys);
  q->per = PICK(&r, of_calls);
  if (p->kvcache.page_size > 0 && fa_rng_chance(&r, 0.6)) q->per = FA_PER_PAGE;
  if (p->kvcache.n_new > 0 && q->per > FA_PER_HEAD) q->per = FA_PER_HEAD;
  if (fa_rng_chance(&r, 0.25)) q->values = fa_rng_chance(&r, 0.8) ? FA_DESCALES_POWERS : FA_DESCALES_ONE;
  make_room(p, q->queries);
  if (!is_about_them(g) && p->dtype == FA_F32 && fa_rng_chance(&r, 0.9)) p->dtype = FA_BF16;
  q->quantizes_new = p->kvcache.n_new > 0 && fa_rng_chance(&r, 0.5);
  const bool blocks = p->head_dim % 16 == 0 && p->head_dim_v % 16 == 0 && p->kvcache.n_new == 0;
  if (p->kvcache.present && !q->queries && q->per <= FA_PER_HEAD && blocks && fa_rng_chance(&r, 0.3))
    q->dtype = FA_E2M1;
  q->amax = !p->topk.present && fa_rng_chance(&r, q->queries ? 0.3 : 0.05);
  if (q->queries && is_about_them(g)) draw_o(q, &r);
}

void fa_gen_quantized_fills(fa_gen *g) {
  fa_rng r = fa_gen_rng(g, FA_GEN_QUANTIZED_FILLS);
  fa_case *c = g->c;
  if (!c->problem.quantized.present || !fa_rng_chance(&r, g->rules->fills / 4)) return;
  if (fa_rng_chance(&r, 0.7)) c->fill[FA_T_Q] = c->fill[FA_T_K] = FA_FILL_EDGES;
  if (fa_rng_chance(&r, 0.7)) c->fill[FA_T_V] = FA_FILL_EDGES;
}
