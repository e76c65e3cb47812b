/* Tame cases, for subjects that take few of a profile's: rare features are rarer, lengths are whole tiles. What the
 * profile is about (a chance of 1) stays. */
#include "fuzz/generate/parts.h"

static double rarer(double chance) {
  return chance < 1 ? chance / 8 : chance;
}

fa_gen_rules fa_gen_tame_rules(const fa_gen_rules *rules) {
  fa_gen_rules r = *rules;
  double *const rare[] = {&r.dropout,     &r.bias,    &r.alibi,  &r.softcap, &r.scale,
                          &r.seqused,     &r.leftpad, &r.splits, &r.group,   &r.odd_dim,
                          &r.empty,       &r.crowd,   &r.layout, &r.huge,    &r.blocks,
                          &r.expressions, &r.sinks,   &r.mla,    &r.topk,    &r.quantized};
  for (size_t k = 0; k < sizeof rare / sizeof *rare; ++k) *rare[k] = rarer(*rare[k]);
  return r;
}

static int64_t round_up(int64_t n, int64_t tile) {
  return n > 0 ? (n + tile - 1) / tile * tile : tile;
}

void fa_gen_tame_lengths(fa_gen *g) {
  static const int64_t tiles[] = {16, 64, 128, 128};
  fa_problem *p = &g->c->problem;
  if (g->tame < FA_GEN_TAME_LENGTHS || p->family == FA_KVCACHE || fa_problem_is_varlen(p)) return;
  fa_rng r = fa_gen_rng(g, FA_GEN_TAME);
  const int64_t tile = tiles[fa_rng_below(&r, 4)];
  p->seqlen_q = round_up(p->seqlen_q, tile);
  p->seqlen_k = g->tame == FA_GEN_TAME_SQUARE ? p->seqlen_q : round_up(p->seqlen_k, tile);
  for (int64_t b = 0; b < p->seqused_k.n; ++b)
    if (p->seqused_k.v[b] > p->seqlen_k) p->seqused_k.v[b] = (int32_t)p->seqlen_k;
  for (int64_t b = 0; b < p->leftpad_k.n; ++b) {
    const int64_t keys = p->seqused_k.n ? p->seqused_k.v[b] : p->seqlen_k;
    if (p->leftpad_k.v[b] > keys) p->leftpad_k.v[b] = (int32_t)keys;
  }
}

void fa_gen_tame_outputs(fa_gen *g) {
  fa_problem *p = &g->c->problem;
  if (!g->tame) return;
  p->deterministic = p->grad_lse = p->return_softmax = p->lse_padded = false;
  p->empty_lse = fa_family_default_empty_lse(p->family);
}
