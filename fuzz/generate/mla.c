/* Multi-head latent attention: decoding over a latent cache, and the prefill beside it. From a random stream of its own,
 * so that cases without it stay what they were. */
#include "fuzz/generate/parts.h"

#include <math.h>

#define COUNT(a) ((int64_t)(sizeof(a) / sizeof *(a)))
#define PICK(r, a) ((a)[fa_rng_below(r, COUNT(a))])

typedef struct dims {
  int64_t lora, rope, nope;
} dims;

/* Rank, rotary columns, and the columns that are scored without rotary embedding before absorption. */
static void draw_latent(fa_problem *p, fa_rng *r) {
  static const dims usual[] = {{512, 64, 128}, {512, 64, 128}, {512, 0, 128}, {256, 32, 64}};
  static const dims small[] = {{64, 16, 16}, {32, 8, 16}, {16, 0, 16}, {40, 24, 8}, {5, 3, 2}, {1, 1, 1}};
  static const int64_t heads[] = {1, 2, 4, 8, 16, 16, 32}, many[] = {16, 64, 128};
  const bool large = fa_rng_chance(r, 0.45);
  const dims d = large ? PICK(r, usual) : PICK(r, small);
  p->kvcache.v_in_k = true;
  p->head_dim = d.lora + d.rope;
  p->head_dim_v = d.lora;
  p->heads_kv = fa_rng_chance(r, 0.95) ? 1 : 2;
  p->heads_q = p->heads_kv * (fa_rng_chance(r, 0.15) ? PICK(r, many) : PICK(r, heads));
  p->scale = 1 / sqrt((double)(d.nope + d.rope));
  if (fa_rng_chance(r, 0.1)) p->scale *= 1.3; /* the square of YaRN's factor */
}

/* Keys and values made from the latent ones, a head at a time. */
static void draw_prefill(fa_problem *p, fa_rng *r) {
  static const dims of[] = {{128, 64, 128}, {128, 64, 128}, {32, 16, 32}};
  const dims d = PICK(r, of);
  p->head_dim = d.nope + d.rope;
  p->head_dim_v = d.lora;
  p->scale = 1 / sqrt((double)p->head_dim);
}

void fa_gen_mla_shape(fa_gen *g) {
  fa_rng r = fa_gen_rng(g, FA_GEN_MLA);
  fa_problem *p = &g->c->problem;
  if (!fa_rng_chance(&r, g->rules->mla)) return;
  if (p->family == FA_KVCACHE) draw_latent(p, &r);
  if (p->family == FA_FLASH) draw_prefill(p, &r);
}

void fa_gen_mla_pages(fa_gen *g) {
  fa_rng r = fa_gen_rng(g, FA_GEN_MLA);
  fa_problem *p = &g->c->problem;
  r.next += 1000; /* behind the shape's draws */
  if (!p->kvcache.v_in_k || !fa_rng_chance(&r, 0.6)) return;
  p->kvcache.page_size = 64;
  p->seqlen_k = (p->seqlen_k + 63) / 64 * 64;
}
