/* The online softmax: what is summed up tile by tile. */
#include "fuzz/explain/hypothesis.h"

#include <math.h>

#define LARGEST_LOG 88 /* of a float32 */
#define LARGEST_LOG_F16 11

static const int tiles[] = {64, 128, 32, 16, 256, 8, 1};
enum {
  N_TILES = sizeof tiles / sizeof *tiles,
  ONCE_TILES = 4,
  ONCE = 3,
  N_WALKS = 2 * N_TILES + ONCE * ONCE_TILES
};

/* Of the later variants: in one tile only. */
static bool walk_once(const char *what, int v, fa_mistake *m) {
  m->twist.walk.tile = tiles[v % ONCE_TILES];
  m->twist.walk.only = v / ONCE_TILES + 1;
  fa_mistake_say(m, "%s not rescaled when the maximum rises in tile %d of %d keys", what, v / ONCE_TILES + 1,
                 tiles[v % ONCE_TILES]);
  return true;
}

static bool walk(const char *what, int v, fa_mistake *m) {
  if (v >= 2 * N_TILES) return walk_once(what, v - 2 * N_TILES, m);
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

/* number: the sum of exponentials from whose log on something overflows, and whether that is the sum itself */
static void overflow_row(const fa_mistake *m, const fa_failure *x, const fa_forward_row *row, fa_wants *w) {
  double *lse = &w->t[FA_T_LSE].value[row->lse];
  const double l = *lse;
  const bool vanishes = l < -LARGEST_LOG && isfinite(l);
  if (!isfinite(l) || (l < m->number[0] && !vanishes)) return;
  if (m->number[1] || vanishes) *lse = vanishes ? -INFINITY : INFINITY;
  for (int64_t d = 0; d < x->place.dv; ++d) w->t[FA_T_O].value[row->o + d] = NAN;
}

static void overflow(const fa_mistake *m, const fa_failure *x, fa_wants *w) {
  fa_each_forward_row(m, x, w, overflow_row);
}

static bool max_not_subtracted(const fa_failure *x, int v, fa_mistake *m) {
  m->after = overflow;
  m->expects_nan = true;
  m->number[0] = v ? LARGEST_LOG_F16 : LARGEST_LOG;
  m->number[1] = !v;
  fa_mistake_say(m, "maximum not subtracted, so that exponentials overflow");
  return v == 0 || x->p->dtype == FA_F16;
}

const fa_hypothesis fa_hypotheses_of_tiles[] = {
    {"o_not_rescaled", "O is not rescaled when the maximum rises", FA_BIT(FA_T_O), N_WALKS, o_not_rescaled},
    {"l_not_rescaled", "the sum is not rescaled when the maximum rises", FA_OF_FORWARD, N_WALKS,
     l_not_rescaled},
    {"o_not_normalised", "O is not divided by the sum", FA_BIT(FA_T_O), 1, o_not_normalised},
    {"max_not_subtracted", "the maximum is not subtracted, and exponentials overflow", FA_OF_FORWARD, 2,
     max_not_subtracted},
    {.name = NULL}};
