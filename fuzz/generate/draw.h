/* Random cases. Case `index` of (profile, seed) is a pure function of the three, which shards and shrinking
 * rely on. */
#ifndef FA_FUZZ_GENERATE_DRAW_H
#define FA_FUZZ_GENERATE_DRAW_H

#include "cases/recipe/case.h"

typedef struct fa_generate_profile {
  const char *name; /* "causal", "varlen", ... */
  const char *what; /* one line for `list profiles` */
} fa_generate_profile;

/* Ends with a NULL name. */
extern const fa_generate_profile fa_generate_profiles[];

/* Has the type fa_generate_fn. An unknown profile is FA_ERR_INPUT, with a list of the known ones. The case is
 * valid. */
fa_status fa_generate(const char *profile, uint64_t seed, int64_t index, fa_case *out, fa_error *err);

/* The draw-th case of that number: 0 is fa_generate's, the others are as different from it as the cases of other
 * numbers, and are named "causal-7-559.3". Late ones, which only subjects that take little come to, have fewer
 * features, and lengths of whole tiles. */
fa_status fa_generate_draw(const char *profile, uint64_t seed, int64_t index, int64_t draw, fa_case *out,
                           fa_error *err);

/* The place of a profile's name in the table; -1: there is none. */
int fa_generate_profile_find(const char *name);

/* Turns a flash case into one of family flex or kvcache. Features that the family lacks are removed, and
 * those that flash lacks are drawn from the seed: expressions and block lists, or pages, new keys, rotation
 * and lengths. */
fa_status fa_generate_family(fa_case *c, fa_family family, uint64_t seed, fa_error *err);

/* Replaces fills under which the case has no answer worth judging: legitimate infinities, logits that float32
 * cannot distinguish. For code that makes cases in another way; fa_generate's need no such call. */
void fa_generate_settle_fills(fa_case *c);

#endif
