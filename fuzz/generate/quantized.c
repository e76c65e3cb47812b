/* Operands of 8 bits. From a random stream of their own. */
#include "fuzz/generate/parts.h"

#define COUNT(a) ((int64_t)(sizeof(a) / sizeof *(a)))
#define PICK(r, a) ((a)[fa_rng_below(r, COUNT(a))])

/* What they are not together with, and dropout beside queries: 1 / (1 - p) leaves P no room in its range. */
static void make_room(fa_problem *p, bool queries) {
  p->backward = p->grad_lse = p->return_softmax = p->sinks.grad = false;
  p->kvcache.rotary_dim = 0;
  p->kvcache.rotary_interleaved = false;
  if (queries) p->dropout = (fa_dropout){0};
  if (queries && p->dtype == FA_F32) p->dtype = FA_BF16;
}

void fa_gen_quantized(fa_gen *g) {
  static const fa_dtype of_queries[] = {FA_E4M3, FA_E4M3, FA_E4M3, FA_E5M2},
                        of_keys[] = {FA_E4M3, FA_E4M3, FA_E5M2, FA_I8};
  static const fa_descale_per of_calls[] = {FA_PER_TENSOR, FA_PER_HEAD, FA_PER_HEAD, FA_PER_TOKEN};
  fa_rng r = fa_gen_rng(g, FA_GEN_QUANTIZED);
  fa_problem *p = &g->c->problem;
  fa_quantized *q = &p->quantized;
  const bool able = (p->family == FA_FLASH || p->family == FA_KVCACHE) && !p->kvcache.v_in_k;
  if (!able || !fa_rng_chance(&r, g->rules->quantized)) return;
  *q = (fa_quantized){.present = true, .queries = fa_rng_chance(&r, p->family == FA_FLASH ? 0.9 : 0.2)};
  q->dtype = q->queries ? PICK(&r, of_queries) : PICK(&r, of_keys);
  q->per = PICK(&r, of_calls);
  if (p->kvcache.page_size > 0 && fa_rng_chance(&r, 0.6)) q->per = FA_PER_PAGE;
  if (p->kvcache.n_new > 0 && q->per > FA_PER_HEAD) q->per = FA_PER_HEAD;
  if (fa_rng_chance(&r, 0.25)) q->values = fa_rng_chance(&r, 0.8) ? FA_DESCALES_POWERS : FA_DESCALES_ONE;
  make_room(p, q->queries);
  q->quantizes_new = p->kvcache.n_new > 0 && fa_rng_chance(&r, 0.5);
}

void fa_gen_quantized_fills(fa_gen *g) {
  fa_rng r = fa_gen_rng(g, FA_GEN_QUANTIZED_FILLS);
  fa_case *c = g->c;
  if (!c->problem.quantized.present || !fa_rng_chance(&r, g->rules->fills / 4)) return;
  if (fa_rng_chance(&r, 0.7)) c->fill[FA_T_Q] = c->fill[FA_T_K] = FA_FILL_EDGES;
  if (fa_rng_chance(&r, 0.7)) c->fill[FA_T_V] = FA_FILL_EDGES;
}
