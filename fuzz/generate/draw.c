/* Random cases: the table of profiles, and the order in which the parts of a case are drawn. */
#include "fuzz/generate/draw.h"
#include "fuzz/generate/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  P_CAUSAL,
  P_VARLEN,
  P_WINDOW,
  P_DROPOUT,
  P_GQA,
  P_BIAS,
  P_MEMEFF,
  P_FLEX,
  P_KVCACHE,
  P_EDGE,
  P_LAYOUT,
  P_FILLS,
  P_LONG,
  P_EVERYTHING,
  P_ADVERSARIAL, /* this and what follows was added later: "everything" does not draw from them, so that its cases
                    stay the same */
  P_RATE_GPU,
  P_RATE_HOST,
  P_MIXED,
  P_MASKS,
  P_MERGE,
  P_SINKS,
  P_MLA,
  P_QUANTIZED,
  N_PROFILES
};

const fa_generate_profile fa_generate_profiles[] = {
    [P_CAUSAL] = {"causal", "causal masks, Sq and Sk apart in both directions"},
    [P_VARLEN] = {"varlen", "packed sequences, empty ones first, in the middle, last, everywhere"},
    [P_WINDOW] = {"window", "one- and two-sided sliding windows, edges at 0, S-1, S and beyond"},
    [P_DROPOUT] = {"dropout", "both dropout schemes, seeds and offsets beyond 2^32, p from tiny to nearly 1"},
    [P_GQA] = {"gqa", "grouped and single KV heads, groups of 1, 2, 3, 8 and odd sizes"},
    [P_BIAS] = {"bias", "additive bias, every broadcast, with its gradient, rows and prefixes of -inf"},
    [P_MEMEFF] = {"memeff", "the memory-efficient family: D != Dv, f32, odd head dims, both alignments"},
    [P_FLEX] = {"flex", "score and mask expressions, block-sparse lists, D != Dv"},
    [P_KVCACHE] = {"kvcache", "decoding: append, pages, cache rows, left padding, rotary, split keys"},
    [P_EDGE] = {"edge", "lengths 0 and 1, odd head dims, scale 0 and negative, everything on its edge"},
    [P_LAYOUT] = {"layout", "strides: layouts, gaps, odd bases, expanded axes, packed qkv and kv"},
    [P_FILLS] = {"fills", "adversarial data: staircases, one-hot rows, ties, subnormals, cancellation"},
    [P_LONG] = {"long", "a few thousand rows or keys, still under a second each"},
    [P_EVERYTHING] = {"everything", "all features at once, and every other profile's cases"},
    [P_ADVERSARIAL] = {"adversarial",
                       "odd data in odd memory: special fills, empty entries, gaps, poison, all together"},
    [P_RATE_GPU] = {"rate-gpu",
                    "flash, B <= 2, H <= 4, S <= 1024, D 64 or 128: what rates on a GPU are measured with"},
    [P_RATE_HOST] =
        {"rate-host",
         "flash, B <= 2, H <= 2, S <= 128, D 64: what rates of the host kernels are measured with"},
    [P_MIXED] =
        {"mixed",
         "every family with every feature: packed queries over a cache, bias and expressions anywhere"},
    [P_MASKS] = {"masks",
                 "chunked attention in every family, and custom masks of packed bits: random, trees"},
    [P_MERGE] = {"merge",
                 "partial states: 1 to 33 parts, both bases, empty ones, LSE far apart, types of their own"},
    [P_SINKS] = {"sinks",
                 "a logit a head in the denominator, in every family, with every mask, split and page"},
    [P_MLA] = {"mla", "latent attention: decoding with V in K's columns, lists of keys, 192/128 prefill"},
    [P_QUANTIZED] = {"quantized",
                     "operands of 8 bits: queries, keys and values, or caches, with descales of every kind"},
    [N_PROFILES] = {NULL, NULL}};

#define M 1000000 /* million */

/* clang-format off */
static const fa_gen_rules rules[N_PROFILES] = {
  [P_CAUSAL] = {.family = {80, 10, 10, 0}, .varlen = .1, .causal = 1, .dropout = .05, .alibi = .1,
    .softcap = .05, .scale = .15, .group = .4, .odd_dim = .25, .empty = .01, .layout = .2, .fills = .35,
    .pairs_dim = 8 * M, .longest = 520},
  [P_VARLEN] = {.family = {75, 20, 5, 0}, .varlen = 1, .causal = .45, .window = .2, .dropout = .15,
    .alibi = .1, .softcap = .05, .scale = .1, .seqused = .2, .leftpad = .06, .group = .4, .odd_dim = .25,
    .empty = .2, .layout = .3, .fills = .35, .lse_padded = .05, .pairs_dim = 8 * M, .longest = 390},
  [P_WINDOW] = {.family = {75, 15, 10, 0}, .varlen = .2, .window = 1, .dropout = .05, .alibi = .1,
    .softcap = .1, .scale = .1, .seqused = .05, .group = .35, .odd_dim = .2, .empty = .02, .layout = .2,
    .fills = .35, .pairs_dim = 8 * M, .longest = 520},
  [P_DROPOUT] = {.family = {60, 40, 0, 0}, .varlen = .2, .causal = .4, .window = .1, .dropout = 1,
    .bias = .2, .alibi = .05, .softcap = .05, .scale = .1, .seqused = .05, .group = .4, .odd_dim = .25,
    .empty = .03, .layout = .2, .fills = .25, .pairs_dim = 6 * M, .longest = 400},
  [P_GQA] = {.family = {70, 20, 10, 0}, .varlen = .2, .causal = .5, .window = .1, .dropout = .15,
    .bias = .2, .alibi = .2, .softcap = .05, .scale = .1, .splits = .05, .group = 1, .odd_dim = .25,
    .empty = .02, .layout = .3, .fills = .3, .pairs_dim = 8 * M, .longest = 300},
  [P_BIAS] = {.family = {0, 85, 15, 0}, .causal = .3, .window = .1, .dropout = .15, .bias = 1,
    .alibi = .05, .softcap = .05, .scale = .1, .seqused = .05, .group = .35, .odd_dim = .5, .empty = .02,
    .layout = .35, .fills = .3, .pairs_dim = 6 * M, .longest = 400},
  [P_MEMEFF] = {.family = {0, 100, 0, 0}, .varlen = .25, .causal = .5, .window = .15, .dropout = .2,
    .bias = .35, .alibi = .05, .softcap = .05, .scale = .15, .seqused = .15, .group = .3, .odd_dim = .6,
    .empty = .04, .layout = .3, .fills = .3, .pairs_dim = 8 * M, .longest = 520},
  [P_FLEX] = {.family = {0, 0, 100, 0}, .varlen = .08, .causal = .3, .window = .1, .bias = .1,
    .blocks = .85, .expressions = .75, .seqused = .05, .leftpad = .05, .alibi = .15, .softcap = .2, .scale = .1, .group = .4, .odd_dim = .4, .empty = .02,
    .layout = .25, .huge = .08, .fills = .3, .pairs_dim = 8 * M, .longest = 520},
  [P_KVCACHE] = {.family = {0, 0, 0, 100}, .causal = .5, .window = .2, .alibi = .15, .softcap = .1,
    .scale = .1, .leftpad = .25, .splits = .5, .group = .6, .odd_dim = .25, .empty = .03, .layout = .2,
    .fills = .3, .quantized = .3, .pairs_dim = 12 * M, .longest = 1100},
  [P_EDGE] = {.family = {45, 25, 20, 10}, .varlen = .3, .causal = .35, .window = .3, .dropout = .15,
    .bias = .3, .blocks = .3, .alibi = .2, .softcap = .2, .scale = .5, .seqused = .25, .leftpad = .2,
    .splits = .3, .group = .5, .odd_dim = .8, .empty = .25, .crowd = .01, .layout = .4, .huge = .05, .fills = .5, .pairs_dim = 2 * M,
    .longest = 140},
  [P_LAYOUT] = {.family = {55, 20, 10, 15}, .varlen = .3, .causal = .35, .window = .1, .dropout = .1,
    .bias = .35, .blocks = .2, .alibi = .05, .seqused = .1, .group = .35, .odd_dim = .3, .empty = .03,
    .layout = 1, .huge = .1, .fills = .25, .pairs_dim = 5 * M, .longest = 300},
  [P_FILLS] = {.family = {60, 20, 15, 5}, .varlen = .15, .causal = .45, .window = .15, .dropout = .1,
    .bias = .3, .blocks = .2, .alibi = .03, .softcap = .05, .scale = .05, .group = .3, .odd_dim = .25,
    .empty = .01, .layout = .15, .fills = 1, .pairs_dim = 8 * M, .longest = 400},
  [P_LONG] = {.family = {60, 15, 10, 15}, .varlen = .2, .causal = .5, .window = .2, .dropout = .1,
    .bias = .15, .blocks = .3, .alibi = .1, .softcap = .05, .splits = .3, .group = .2, .odd_dim = .1,
    .layout = .1, .fills = .3, .pairs_dim = 150 * M, .longest = 20000},
  [P_EVERYTHING] = {.family = {45, 25, 15, 15}, .varlen = .25, .causal = .35, .window = .25, .dropout = .2,
    .bias = .35, .blocks = .5, .alibi = .15, .softcap = .12, .scale = .2, .seqused = .12, .leftpad = .08,
    .splits = .2, .group = .5, .odd_dim = .35, .empty = .08, .crowd = .004, .layout = .35, .huge = .02, .fills = .4, .mla = .05, .topk = .05, .lse_padded = .05, .quantized = .1,
    .pairs_dim = 8 * M, .longest = 520},
  [P_ADVERSARIAL] = {.family = {50, 20, 15, 15}, .varlen = .3, .causal = .4, .window = .3, .dropout = .1,
    .bias = .5, .blocks = .4, .alibi = .1, .softcap = .05, .scale = .1, .seqused = .2, .leftpad = .15,
    .splits = .3, .group = .5, .odd_dim = .5, .empty = .15, .crowd = .005, .layout = .5, .huge = .05, .fills = 1,
    .pairs_dim = 3 * M, .longest = 260},
  [P_RATE_GPU] = {.family = {100, 0, 0, 0}, .causal = .5, .window = .2, .dropout = .15, .alibi = .1,
    .softcap = .05, .even_heads = 4, .dims = 2, .longest = 1024},
  [P_RATE_HOST] = {.family = {100, 0, 0, 0}, .causal = .5, .window = .2, .dropout = .15, .alibi = .1,
    .softcap = .05, .even_heads = 2, .dims = 1, .longest = 128},
  [P_MIXED] = {.family = {25, 20, 25, 30}, .varlen = .5, .causal = .35, .window = .25, .dropout = .25,
    .bias = .35, .blocks = .3, .expressions = .45, .alibi = .15, .softcap = .12, .scale = .1, .seqused = .15, .leftpad = .2,
    .splits = .3, .group = .25, .odd_dim = .35, .empty = .06, .layout = .3, .fills = .25, .mixed = true,
    .sinks = .12, .mla = .05, .topk = .05, .lse_padded = .05, .quantized = .15, .pairs_dim = 8 * M, .longest = 300},
  [P_MASKS] = {.family = {45, 10, 10, 35}, .varlen = .35, .causal = .1, .window = .35, .dropout = .1,
    .bias = .1, .alibi = .1, .softcap = .1, .scale = .05, .seqused = .15, .leftpad = .15, .splits = .3,
    .group = .5, .odd_dim = .2, .empty = .05, .layout = .2, .fills = .3, .chunk = .5, .mask_bits = .8,
    .pairs_dim = 8 * M, .longest = 400},
  [P_MERGE] = {.family = {0, 0, 0, 0, 100}, .varlen = .35, .odd_dim = .5, .empty = .06, .layout = .45,
    .huge = .2, .fills = .4, .pairs_dim = 2 * M, .longest = 520},
  [P_SINKS] = {.family = {55, 10, 10, 25}, .varlen = .25, .causal = .4, .window = .4, .dropout = .1,
    .bias = .15, .blocks = .2, .alibi = .1, .softcap = .2, .scale = .2, .seqused = .1, .leftpad = .1, .splits = .3,
    .group = .5, .odd_dim = .25, .empty = .06, .layout = .2, .fills = .3, .sinks = 1, .pairs_dim = 6 * M, .longest = 400},
  [P_MLA] = {.family = {20, 0, 0, 80}, .varlen = .6, .causal = .6, .window = .1, .softcap = .05, .scale = .1,
    .leftpad = .05, .splits = .5, .group = .5, .empty = .08, .layout = .25, .huge = .03, .fills = .3, .sinks = .1, .mla = 1, .topk = .4, .quantized = .05,
    .pairs_dim = 8 * M, .longest = 700},
  [P_QUANTIZED] = {.family = {60, 0, 0, 40}, .varlen = .3, .causal = .4, .window = .15, .alibi = .05, .softcap = .1, .scale = .1,
    .bias = .05, .seqused = .1, .leftpad = .08, .splits = .1, .group = .5, .odd_dim = .2, .empty = .05, .layout = .25, .fills = .35,
    .sinks = .05, .quantized = 1, .mla = .1, .pairs_dim = 6 * M, .longest = 600},
};
/* clang-format on */

/* FNV-1a of the name: adding a profile to the table does not change what the others draw. */
static uint64_t name_key(const char *name) {
  uint64_t h = 0xcbf29ce484222325u;
  for (; *name; ++name) h = (h ^ (unsigned char)*name) * 0x100000001b3u;
  return h;
}

int fa_generate_profile_find(const char *name) {
  for (int k = 0; k < N_PROFILES; ++k)
    if (strcmp(fa_generate_profiles[k].name, name) == 0) return k;
  return -1;
}

static fa_status unknown_profile(const char *name, fa_error *err) {
  char list[512] = "";
  for (int k = 0; k < N_PROFILES; ++k) {
    size_t n = strlen(list);
    snprintf(list + n, sizeof list - n, "%s%s", k ? ", " : "", fa_generate_profiles[k].name);
  }
  return fa_fail(err, FA_ERR_INPUT, "profile \"%s\": there is none; there are: %s", name, list);
}

/* Half of the time "everything" uses the rules of another profile, so that their special cases stay likely.
 * The long profile is left out: one of its cases costs as much as a hundred others. */
static const fa_gen_rules *effective_rules(int profile, uint64_t key) {
  fa_rng r = fa_rng_make(key, 0);
  if (profile != P_EVERYTHING || fa_rng_chance(&r, 0.5)) return &rules[profile];
  int64_t k = fa_rng_below(&r, P_ADVERSARIAL);
  return &rules[k == P_LONG ? P_EVERYTHING : k];
}

static fa_status gen_problem(fa_gen *g) {
  if (g->rules->family[FA_MERGE]) return fa_gen_merge(g);
  fa_status status = fa_gen_shape(g);
  fa_gen_tame_lengths(g);
  if (status == FA_OK) status = fa_gen_features(g);
  fa_gen_tame_outputs(g);
  if (status == FA_OK) status = fa_problem_complete(&g->c->problem);
  return status == FA_OK ? fa_gen_expressions(g) : status;
}

/* The first draw's key is the case's own, so that seeds keep their meaning where the first draw will do. */
static uint64_t draw_key(const char *profile, uint64_t seed, int64_t index, int64_t draw) {
  const uint64_t key = fa_rng_u64(seed, name_key(profile), (uint64_t)index);
  return draw == 0 ? key : fa_rng_u64(key, name_key("draw"), (uint64_t)draw);
}

/* Everything but the name. A case that failed is freed. */
static fa_status draw_case(fa_gen *g, uint64_t data) {
  fa_case *c = g->c;
  const fa_status status = gen_problem(g);
  if (status != FA_OK) {
    fa_case_free(c);
    return status;
  }
  fa_gen_fills(g);
  fa_gen_layout(g);
  fa_gen_memory(g);
  c->data_seed = fa_rng_u64(g->key, 0, 1) ^ data;
  fa_error why;
  const fa_status valid = fa_case_validate(c, &why);
  if (valid == FA_ERR_MEMORY) {
    fa_case_free(c);
  } else if (valid != FA_OK) { /* the generator broke the rules: a bug of the harness */
    fprintf(stderr, "%s: %s\n", c->name, why.text);
    FA_ASSERT(!"the generated case is valid");
  }
  return valid;
}

fa_status fa_generate_draw(const char *profile, uint64_t seed, int64_t index, int64_t draw, fa_case *out,
                           fa_error *err) {
  int k = fa_generate_profile_find(profile);
  if (k < 0) return unknown_profile(profile, err);
  if (index < 0 || draw < 0)
    return fa_fail(err, FA_ERR_INPUT, "random case %lld.%lld: the number is negative", (long long)index,
                   (long long)draw);
  fa_status status = fa_case_init(out);
  if (status != FA_OK) return fa_fail(err, status, "out of memory");
  fa_gen g = {.key = draw_key(profile, seed, index, draw), .c = out};
  if (draw >= FA_GEN_WILD_DRAWS) g.tame = (fa_gen_tame)(draw % FA_GEN_N_TAME);
  g.rules = effective_rules(k, g.key);
  const fa_gen_rules tamed = fa_gen_tame_rules(g.rules);
  if (g.tame) g.rules = &tamed;
  char name[128], again[24] = "";
  if (draw > 0) snprintf(again, sizeof again, ".%lld", (long long)draw);
  snprintf(name, sizeof name, "%s-%llu-%lld%s", profile, (unsigned long long)seed, (long long)index, again);
  status = fa_case_set_name(out, name);
  if (status != FA_OK) fa_case_free(out);
  if (status == FA_OK) status = draw_case(&g, 0);
  return status == FA_OK ? status : fa_fail(err, status, "out of memory");
}

fa_status fa_generate(const char *profile, uint64_t seed, int64_t index, fa_case *out, fa_error *err) {
  return fa_generate_draw(profile, seed, index, 0, out, err);
}

/* ---- cases of which draws are given ---- */

/* Profiles for rates and for long calls have sizes that cost too much, and no feature of their own. */
static const fa_gen_rules *rules_of_given(unsigned profile) {
  const fa_gen_rules *r = &rules[profile < N_PROFILES ? profile : P_EVERYTHING];
  return r->even_heads > 0 || r->longest > 5000 ? &rules[P_EVERYTHING] : r;
}

fa_status fa_generate_given_case(const fa_generate_given *given, fa_case *out, fa_error *err) {
  const fa_gen_rules given_rules = fa_gen_given_rules(rules_of_given(given->profile), given->wide);
  fa_status status = fa_case_init(out);
  if (status != FA_OK) return fa_fail(err, status, "out of memory");
  fa_gen g = {.rules = &given_rules, .key = given->key, .edits = &given->draws, .c = out};
  status = draw_case(&g, given->data);
  return status == FA_OK ? status : fa_fail(err, status, "out of memory");
}
