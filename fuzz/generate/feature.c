/* What is computed: mask, score chain, dropout, bias, block lists, and the outputs that are wanted. */
#include "fuzz/generate/parts.h"

#include <stdlib.h>

#define COUNT(a) ((int64_t)(sizeof(a) / sizeof *(a)))
#define PICK(r, a) ((a)[fa_rng_below(r, COUNT(a))])

/* ---- masks ---- */

/* One side of a window over n positions: unbounded, 0, near the whole length, near a tile, anything. */
static int64_t draw_reach(fa_rng *r, int64_t n) {
  static const int64_t near[] = {0, 0, 1, 2, 15, 16, 31, 32, 63, 64, 65, 127, 128};
  switch (fa_rng_below(r, 8)) {
  case 0:
    return -1;
  case 1:
    return n > 0 ? n - 1 : 0;
  case 2:
    return n;
  case 3:
    return n + fa_rng_range(r, 1, 70);
  case 4:
  case 5:
    return PICK(r, near);
  default:
    return fa_rng_range(r, 0, n > 0 ? n / 2 : 0);
  }
}

static void draw_mask(fa_gen *g) {
  fa_rng r = fa_gen_rng(g, FA_GEN_MASK);
  fa_problem *p = &g->c->problem;
  const bool both_corners = p->family == FA_MEMEFF || p->family == FA_FLEX || g->rules->mixed;
  if (both_corners) p->mask.align = (fa_mask_align)fa_rng_below(&r, 2);
  if (fa_rng_chance(&r, g->rules->causal)) {
    p->mask.type = FA_MASK_CAUSAL;
  } else if (fa_rng_chance(&r, g->rules->window)) {
    const int64_t left = draw_reach(&r, p->seqlen_k),
                  right = fa_rng_chance(&r, 0.4) ? 0 : draw_reach(&r, p->seqlen_q);
    /* The memory-efficient kernels have a window only with a causal mask. */
    fa_mask_set_window(&p->mask, left, p->family == FA_MEMEFF && !g->rules->mixed ? 0 : right);
  } else {
    p->mask.align = FA_ALIGN_BOTTOM_RIGHT; /* the alignment has no effect without a mask */
  }
}

/* ---- score chain ---- */

static fa_status draw_slopes(fa_gen *g, fa_rng *r) {
  static const float slopes[] = {0.5f, 0.25f, 0.125f, 0.0625f, 0.01171875f, 0.00390625f, 0.0f, -0.125f, 1.0f};
  fa_problem *p = &g->c->problem;
  fa_alibi *a = &p->alibi;
  a->present = true;
  a->standard = fa_rng_chance(r, 0.5);
  if (a->standard) return FA_OK; /* fa_problem_complete fills them in */
  a->n = p->heads_q * (fa_rng_chance(r, 0.5) ? p->batch : 1);
  a->slopes = malloc((size_t)a->n * sizeof *a->slopes);
  if (!a->slopes) return FA_ERR_MEMORY;
  for (int64_t k = 0; k < a->n; ++k) a->slopes[k] = PICK(r, slopes);
  return FA_OK;
}

static fa_status draw_score(fa_gen *g) {
  static const double caps[] = {0.5, 1, 5, 15, 30, 50}, factors[] = {-1, -1, 0.25, 0.7, 1.7, 2, 4};
  fa_rng r = fa_gen_rng(g, FA_GEN_SCORE);
  fa_problem *p = &g->c->problem;
  if (fa_rng_chance(&r, g->rules->scale)) {
    int64_t kind = fa_rng_below(&r, 10);
    if (kind < 2)
      p->scale = 0;
    else if (kind < 4)
      p->scale = 0.125; /* right for D = 64, unusual for all others */
    else
      p->scale *= PICK(&r, factors);
  }
  if (fa_rng_chance(&r, g->rules->softcap)) p->softcap = PICK(&r, caps);
  return fa_rng_chance(&r, g->rules->alibi) ? draw_slopes(g, &r) : FA_OK;
}

static void draw_bias(fa_gen *g) {
  fa_rng r = fa_gen_rng(g, FA_GEN_BIAS);
  fa_problem *p = &g->c->problem;
  const bool usual = (p->family == FA_MEMEFF || p->family == FA_FLEX) && !fa_problem_is_varlen(p);
  if (!usual && !g->rules->mixed) return;
  if (!fa_rng_chance(&r, g->rules->bias)) return;
  p->bias.present = true;
  p->bias.per_batch = fa_rng_chance(&r, 0.6);
  p->bias.per_head = fa_rng_chance(&r, 0.6);
  p->bias.per_query = fa_rng_chance(&r, 0.7);
  p->bias.grad = fa_rng_chance(&r, 0.7);
}

/* ---- dropout ---- */

static uint64_t draw_word(fa_rng *r) {
  switch (fa_rng_below(r, 4)) {
  case 0:
    return (uint64_t)fa_rng_below(r, 5000);
  case 1:
    return ((uint64_t)1 << 32) + (uint64_t)fa_rng_range(r, -40, 40); /* carries into the high half */
  case 2:
    return ~(uint64_t)0 - (uint64_t)fa_rng_below(r, 4);
  default:
    return fa_rng_next(r);
  }
}

static void draw_dropout(fa_gen *g) {
  static const double chances[] = {0.1, 0.1, 0.17, 0.5, 0.5, 0.9, 0.001, 1e-5, 0.99, 0.25};
  fa_rng r = fa_gen_rng(g, FA_GEN_DROPOUT);
  fa_problem *p = &g->c->problem;
  const bool usual = p->family == FA_FLASH || p->family == FA_MEMEFF;
  if ((!usual && !g->rules->mixed) || !fa_rng_chance(&r, g->rules->dropout)) return;
  p->dropout.p = PICK(&r, chances);
  p->dropout.seed = draw_word(&r);
  /* The 64-bit counter may carry past 2^32, but a launch never wraps all of it. */
  p->dropout.offset = draw_word(&r) >> 1;
}

/* ---- outputs ---- */

/* Rows of a padded LSE: one long sequence among thousands makes it large. */
#define MOST_PADDED 1000000

static int64_t up_to_128(int64_t n) {
  return (n + 127) / 128 * 128;
}

static void draw_outputs(fa_gen *g) {
  static const int64_t splits[] = {1, 2, 2, 3, 5, 7, 16, 33};
  fa_rng r = fa_gen_rng(g, FA_GEN_OUTPUTS);
  fa_problem *p = &g->c->problem;
  p->deterministic = fa_rng_chance(&r, 0.3);
  /* The host executor takes minutes for a backward pass of thousands of sequences. */
  if (p->backward && fa_rng_chance(&r, p->batch > 4096 ? 0.7 : 0.06)) p->backward = false;
  p->grad_lse = p->backward && fa_rng_chance(&r, 0.15);
  bool dropout = p->dropout.p > 0, wants_p = fa_rng_chance(&r, dropout ? 0.4 : 0.04);
  int64_t n_p = p->batch * p->heads_q * up_to_128(p->seqlen_q) * up_to_128(p->seqlen_k);
  /* With many heads the debug matrix costs more than the attention. */
  p->return_softmax = p->family == FA_FLASH && wants_p && n_p <= 400000;
  /* The original splits keys only in its inference path, which has no dropout. */
  if ((!dropout || g->rules->mixed) && fa_rng_chance(&r, g->rules->splits)) p->splits = PICK(&r, splits);
  if (p->splits == 33 && p->family == FA_KVCACHE && fa_rng_chance(&r, 0.5)) p->splits = 128;
  if ((p->family == FA_MEMEFF || g->rules->mixed) && fa_rng_chance(&r, 0.3))
    p->empty_lse = (fa_empty_lse)fa_rng_below(&r, 3);
}

/* After the outputs: the gradient of an LSE is that of one with the sink in it. */
static void draw_sinks(fa_gen *g) {
  fa_rng r = fa_gen_rng(g, FA_GEN_SINKS);
  fa_problem *p = &g->c->problem;
  if (!fa_rng_chance(&r, g->rules->sinks)) return;
  p->sinks = (fa_sinks){.present = true, .grad = fa_rng_chance(&r, 0.8), .in_lse = fa_rng_chance(&r, 0.8)};
  p->grad_lse &= p->sinks.in_lse;
}

/* Of packed queries. A gradient of it is padded too, and otherwise rare. */
static void draw_lse_layout(fa_gen *g) {
  fa_rng r = fa_gen_rng(g, FA_GEN_LSE_LAYOUT);
  fa_problem *p = &g->c->problem;
  const bool few = p->batch * p->heads_q * p->seqlen_q <= MOST_PADDED;
  p->lse_padded =
      p->family != FA_MERGE && fa_problem_is_varlen(p) && few && fa_rng_chance(&r, g->rules->lse_padded);
  if (p->lse_padded && p->backward && p->sinks.present == p->sinks.in_lse && fa_rng_chance(&r, 0.3))
    p->grad_lse = true;
}

fa_status fa_gen_features(fa_gen *g) {
  draw_mask(g);
  fa_status status = draw_score(g);
  if (status != FA_OK) return status;
  draw_bias(g);
  draw_dropout(g);
  draw_outputs(g);
  fa_gen_masks(g);
  draw_sinks(g);
  draw_lse_layout(g);
  status = fa_gen_topk(g);
  fa_gen_quantized(g);
  return status == FA_OK ? fa_gen_blocks(g) : status;
}
