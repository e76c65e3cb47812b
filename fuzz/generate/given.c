/* The rules of cases of which draws are given: small ones, and where that is asked for, of every family with every feature. */
#include "fuzz/generate/parts.h"

#define MOST_PAIRS_DIM 1000000
#define LONGEST 200
#define SOME_CHANCE 0.05
#define SOME_WEIGHT 5

static void widen(fa_gen_rules *r) {
  double *const chances[] = {&r->varlen,    &r->causal,  &r->window,  &r->dropout,    &r->bias,
                             &r->blocks,    &r->alibi,   &r->softcap, &r->scale,      &r->sinks,
                             &r->seqused,   &r->leftpad, &r->splits,  &r->group,      &r->expressions,
                             &r->odd_dim,   &r->empty,   &r->layout,  &r->fills,      &r->chunk,
                             &r->mask_bits, &r->mla,     &r->topk,    &r->lse_padded, &r->quantized};
  for (size_t i = 0; i < sizeof chances / sizeof *chances; ++i)
    if (*chances[i] < SOME_CHANCE) *chances[i] = SOME_CHANCE;
  for (int f = 0; f < FA_MERGE; ++f)
    if (r->family[f] < SOME_WEIGHT) r->family[f] = SOME_WEIGHT;
  r->mixed = true;
}

fa_gen_rules fa_gen_given_rules(const fa_gen_rules *rules, bool wide) {
  fa_gen_rules r = *rules;
  if (wide && !r.family[FA_MERGE]) widen(&r);
  if (r.pairs_dim > MOST_PAIRS_DIM) r.pairs_dim = MOST_PAIRS_DIM;
  if (r.longest > LONGEST) r.longest = LONGEST;
  r.crowd = 0; /* thousands of sequences: seconds each */
  return r;
}
