/* Random cases. Case `index` of (profile, seed) is a pure function of the three: shards and shrinking rely on
 * it. */
#ifndef FA_FUZZ_GENERATE_DRAW_H
#define FA_FUZZ_GENERATE_DRAW_H

#include "cases/recipe/case.h"

typedef struct fa_generate_profile {
  const char *name; /* "causal", "varlen", ... */
  const char *what; /* one line for `list profiles` */
} fa_generate_profile;

/* Ends with a NULL name. */
extern const fa_generate_profile fa_generate_profiles[];

/* Has the type fa_generate_fn. An unknown profile is FA_ERR_INPUT, listing what there is. The case is valid.
 */
fa_status fa_generate(const char *profile, uint64_t seed, int64_t index, fa_case *out, fa_error *err);

/* A flash case becomes one of family flex or kvcache: what the family does not have falls away, and what it
 * has beyond flash is drawn by the seed: expressions and block lists, or pages, new keys, rotation and
 * lengths. */
fa_status fa_generate_family(fa_case *c, fa_family family, uint64_t seed, fa_error *err);

/* Replaces the fills under which the case would have no answer worth judging: infinities by right, logits
 * that float32 cannot tell apart. For whoever makes cases in another way; fa_generate's are settled. */
void fa_generate_settle_fills(fa_case *c);

#endif
