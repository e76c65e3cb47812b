/* Sums of products that are kept in few bits. Which errors that makes depends on what is added at once, and on the order
 * of tiles: there is a variant for each of the usual ones. */
#include "fuzz/explain/hypothesis.h"

static const struct format {
  fa_ref_rounding to;
  fa_accumulator kept_in;
  double u;
  const char *name;
} of_f16 = {{11, -14, 65504, false}, FA_ACCUMULATOR_F16, 0x1p-11, "f16"},
  of_bf16 = {{8, -126, 0x1.fep127, false}, FA_ACCUMULATOR_BF16, 0x1p-8, "bf16"};

/* Scores, dP: rounded once, when all their products are added. */
static const struct once {
  bool scores, dp;
  const char *what;
} once[] = {{true, false, "scores"}, {false, true, "dP"}, {true, true, "scores and dP"}};
enum { N_ONCE = sizeof once / sizeof *once };

/* The other sums: what is rounded, and after how many products; 0: of a tile. */
static const struct way {
  bool sum, part;
  int within;
} ways[] = {{true, false, 0}, {true, false, 16}, {false, true, 0}, {true, false, 8}, {true, true, 16}};
static const int tiles[] = {64, 128, 32, 16};
enum { N_WAYS = sizeof ways / sizeof *ways, N_TILES = sizeof tiles / sizeof *tiles };
enum { N_VARIANTS = N_ONCE + 2 * N_WAYS * N_TILES };

static void keep_products(fa_mistake *m, const struct format *f, fa_product first, fa_product last) {
  for (int i = (int)first; i <= (int)last; ++i) m->profile.accumulator[i] = f->kept_in;
}

static bool round_once(const struct format *f, const struct once *o, fa_mistake *m) {
  m->twist.coarse.scores = o->scores;
  m->twist.coarse.dp = o->dp;
  if (o->scores) keep_products(m, f, FA_PRODUCT_QK, FA_PRODUCT_QK);
  if (o->dp) keep_products(m, f, FA_PRODUCT_DP, FA_PRODUCT_DP);
  fa_mistake_say(m, "%s kept in %s, which has %d bits", o->what, f->name, f->to.bits);
  return true;
}

static bool sums_in(const struct format *f, int v, fa_mistake *m) {
  fa_ref_coarse *c = &m->twist.coarse;
  c->to = f->to;
  m->of_precision = true;
  if (v < N_ONCE) return round_once(f, &once[v], m);
  const struct way *way = &ways[(v - N_ONCE) % N_WAYS];
  const int tile = (v - N_ONCE) / N_WAYS;
  c->sum = way->sum;
  c->part = way->part;
  c->within = way->within;
  c->scores = c->dp = way->within > 0;
  c->tile = tiles[tile % N_TILES];
  c->backwards = tile >= N_TILES;
  keep_products(m, f, FA_PRODUCT_QK, FA_PRODUCT_DK);
  if (way->within > 0)
    fa_mistake_say(m, "sums kept in %s (%d bits), rounded after every %d products", f->name, f->to.bits,
                   way->within);
  else
    fa_mistake_say(m, "%s %s (%d bits), in tiles of %d",
                   way->part ? "parts of sums rounded to" : "sums kept in", f->name, f->to.bits, c->tile);
  return way->within < c->tile;
}

static bool accumulate_f16(const fa_failure *x, int v, fa_mistake *m) {
  (void)x;
  return sums_in(&of_f16, v, m);
}

static bool accumulate_bf16(const fa_failure *x, int v, fa_mistake *m) {
  (void)x;
  return sums_in(&of_bf16, v, m);
}

const fa_hypothesis fa_hypotheses_of_sums[] = {
    {"accumulate_f16", "sums of products are kept in f16", FA_OF_ALL, N_VARIANTS, accumulate_f16},
    {"accumulate_bf16", "sums of products are kept in bf16", FA_OF_ALL, N_VARIANTS, accumulate_bf16},
    {.name = NULL}};
