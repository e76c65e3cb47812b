/* The online softmax: what is summed up tile by tile. */
#include "fuzz/explain/hypothesis.h"

static const int tiles[] = {64, 128, 32, 16, 256, 8, 1};
enum { N_TILES = sizeof tiles / sizeof *tiles };

static bool walk(const char *what, int v, fa_mistake *m) {
  m->twist.walk.tile = tiles[v % N_TILES];
  m->twist.walk.backwards = v >= N_TILES;
  fa_mistake_say(m, "%s not rescaled when the maximum rises, in tiles of %d keys%s", what, tiles[v % N_TILES],
                 v >= N_TILES ? ", the last one first" : "");
  return true;
}

static bool o_not_rescaled(const fa_failure *x, int v, fa_mistake *m) {
  (void)x;
  m->twist.walk.o_stays = true;
  return walk("O", v, m);
}

static bool l_not_rescaled(const fa_failure *x, int v, fa_mistake *m) {
  (void)x;
  m->twist.walk.sum_stays = true;
  return walk("sum", v, m);
}

static bool o_not_normalised(const fa_failure *x, int v, fa_mistake *m) {
  (void)x, (void)v;
  m->twist.o_not_divided = true;
  fa_mistake_say(m, "O not divided by the sum");
  return true;
}

const fa_hypothesis fa_hypotheses_of_tiles[] = {
    {"o_not_rescaled", "O is not rescaled when the maximum rises", FA_BIT(FA_T_O), 2 * N_TILES,
     o_not_rescaled},
    {"l_not_rescaled", "the sum is not rescaled when the maximum rises", FA_OF_FORWARD, 2 * N_TILES,
     l_not_rescaled},
    {"o_not_normalised", "O is not divided by the sum", FA_BIT(FA_T_O), 1, o_not_normalised},
    {.name = NULL}};
