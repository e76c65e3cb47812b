/* Random cases. Case `index` of (profile, seed) is a pure function of the three, which shards and shrinking
 * rely on. */
#ifndef FA_FUZZ_GENERATE_DRAW_H
#define FA_FUZZ_GENERATE_DRAW_H

#include "cases/base/rng.h"
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

/* A random case of which single draws are given: what a fuzzer's input is. It can say whatever the generator can, and
 * changing one draw leaves the others as they are. */
typedef struct fa_generate_given {
  unsigned profile; /* its place in the table; beyond it: "everything" */
  bool wide;        /* whatever the profile, every family and feature has some chance, in every combination */
  uint64_t key;     /* what is not given is drawn from it */
  uint64_t data;    /* another number, other data of the same case */
  fa_rng_edits draws;
} fa_generate_given;

/* The case is small (a few million multiplications), and valid. Errors: FA_ERR_MEMORY. */
fa_status fa_generate_given_case(const fa_generate_given *given, fa_case *out, fa_error *err);

/* Replaces fills under which the case has no answer worth judging: legitimate infinities, logits that float32
 * cannot distinguish. For code that makes cases in another way; fa_generate's need no such call. */
void fa_generate_settle_fills(fa_case *c);

#endif
