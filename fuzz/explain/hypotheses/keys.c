/* Keys and rows at the ends: lost ones, and ones too many. */
#include "fuzz/explain/hypothesis.h"

#include <math.h>

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static const int tiles[] = {64, 128, 32, 16, 256, 8};
enum { N_TILES = sizeof tiles / sizeof *tiles };
static const int row_tiles[] = {64, 128, 32, 16};
enum { N_ROW_TILES = sizeof row_tiles / sizeof *row_tiles, N_LOST = N_TILES * (1 + N_ROW_TILES) };

static void nothing_seen(const fa_ref_twist *t, const fa_ref_call *c, const fa_ref_sequence *e, int64_t i,
                         int64_t *lo, int64_t *hi) {
  (void)t, (void)c, (void)e, (void)i;
  *lo = *hi = 0;
}

/* As where all exponentials underflow because the running maximum starts at 0. */
static bool no_key_seen(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  m->twist.range = nothing_seen;
  fa_mistake_say(m, "rows come out as if they saw no key");
  return x->place.max_sk > 0;
}

/* number: keys lost at the sequence's end */
static void end_lost(const fa_ref_twist *t, const fa_ref_call *c, const fa_ref_sequence *e, int64_t i,
                     int64_t *lo, int64_t *hi) {
  (void)c, (void)i, (void)lo;
  *hi = least(*hi, e->sk - t->number[0]);
}

static bool last_key_lost(const fa_failure *x, int v, fa_mistake *m) {
  (void)x, (void)v;
  m->twist.range = end_lost;
  m->twist.number[0] = 1;
  fa_mistake_say(m, "last key lost");
  return true;
}

/* number: keys of a tile; rows of a tile, or 0: the end is the sequence's; whether only a tile is lost of which some keys
 * are not seen, as where a division rounds the wrong way */
static void last_tile_lost(const fa_ref_twist *t, const fa_ref_call *c, const fa_ref_sequence *e, int64_t i,
                           int64_t *lo, int64_t *hi) {
  const int64_t keys = t->number[0], rows = t->number[1];
  int64_t end = e->sk;
  if (rows > 0) {
    const fa_window w = fa_mask_window(&c->p->mask);
    const int64_t last = least(i / rows * rows + rows, e->sq) - 1;
    if (w.right >= 0) end = least(end, last + e->shift + w.right + 1);
  }
  (void)lo;
  if (end > 0) *hi = least(*hi, (end - !t->number[2]) / keys * keys);
}

static void first_tile_lost(const fa_ref_twist *t, const fa_ref_call *c, const fa_ref_sequence *e, int64_t i,
                            int64_t *lo, int64_t *hi) {
  const int64_t keys = t->number[0], rows = t->number[1];
  int64_t first = 0;
  if (rows > 0) {
    const fa_window w = fa_mask_window(&c->p->mask);
    if (w.left >= 0 && i / rows * rows + e->shift - w.left > 0) first = i / rows * rows + e->shift - w.left;
  }
  (void)hi;
  first = t->number[2] ? (first + keys - 1) / keys * keys : (first / keys + 1) * keys;
  if (*lo < first) *lo = first;
}

/* The variants without row tiles, then those with them, which a mask needs; then again for tiles seen in part. */
static bool tile_lost(const fa_failure *x, const char *which, int v, bool edge, fa_mistake *m) {
  const bool in_part = v >= N_LOST;
  const int keys = tiles[v % N_TILES], rows = v % N_LOST / N_TILES;
  m->twist.number[0] = keys;
  if (rows > 0) m->twist.number[1] = row_tiles[rows - 1];
  m->twist.number[2] = in_part;
  fa_mistake_say(m, in_part ? "%s tile of %d keys lost where it is seen in part" : "%s tile of %d keys lost",
                 which, keys);
  if (x->p->seqlen_k <= keys) return false; /* nothing would be left, whatever the call */
  return rows == 0 || (x->p->mask.type != FA_MASK_NONE && edge);
}

static bool last_key_tile_lost(const fa_failure *x, int v, fa_mistake *m) {
  m->twist.range = last_tile_lost;
  return tile_lost(x, "last", v, fa_mask_window(&x->p->mask).right >= 0, m);
}

/* One that is seen in part begins with a window. */
static bool first_key_tile_lost(const fa_failure *x, int v, fa_mistake *m) {
  m->twist.range = first_tile_lost;
  return tile_lost(x, "first", v, fa_mask_window(&x->p->mask).left >= 0, m) &&
         (v < N_LOST || m->twist.number[1] > 0);
}

/* How many keys past the end row i sees where sequences are padded to whole tiles. */
static int64_t keys_past_end(const fa_failure *x, const fa_ref_sequence *e, int64_t i, int64_t tile) {
  const fa_window w = fa_mask_window(&x->p->mask);
  int64_t end = (e->sk + tile - 1) / tile * tile;
  if (w.right >= 0) end = least(end, i + e->shift + w.right + 1);
  return end > e->sk ? end - e->sk : 0;
}

/* n keys of score 0 and value 0 more: the sum of exponentials grows by n. */
static void add_zero_keys_to(const fa_mistake *m, const fa_failure *x, const fa_forward_row *row,
                             fa_wants *w) {
  double *lse = &w->t[FA_T_LSE].value[row->lse];
  const int64_t n = keys_past_end(x, row->e, row->i, m->number[0]);
  if (n == 0 || *lse == 0 || !isfinite(*lse)) return;
  const double log_n = log((double)n), old = *lse, top = fmax(old, log_n);
  *lse = top + log(exp(old - top) + exp(log_n - top));
  fa_want_multiply(&w->t[FA_T_O], row->o, x->place.dv, exp(old - *lse));
}

static void add_zero_keys(const fa_mistake *m, const fa_failure *x, fa_wants *w) {
  fa_each_forward_row(m, x, w, add_zero_keys_to);
}

static bool keys_past_end_as_zeros(const fa_failure *x, int v, fa_mistake *m) {
  const fa_problem *p = x->p;
  bool any = false;
  for (int64_t b = 0; b < p->batch; ++b)
    any |= x->place.entry[b].sq > 0 &&
           keys_past_end(x, &x->place.entry[b], x->place.entry[b].sq - 1, tiles[v]) > 0;
  if (!any || p->alibi.present || p->bias.present || p->score_mod || p->mask_mod) return false;
  m->number[0] = tiles[v];
  m->after = add_zero_keys;
  fa_mistake_say(m, "keys past the end, up to whole tiles of %d, seen as zeros", tiles[v]);
  return true;
}

/* number: rows of a tile */
static void rows_lost(const fa_ref_twist *t, const fa_ref_call *c, const fa_ref_sequence *e, int64_t i,
                      int64_t *lo, int64_t *hi) {
  (void)c;
  if (i >= (e->sq - 1) / t->number[0] * t->number[0]) *lo = *hi = 0;
}

/* The LSE of a row that nobody computed is 0, as O is. */
static void empty_to_zero(const fa_mistake *m, const fa_failure *x, fa_wants *w) {
  fa_want *lse = &w->t[FA_T_LSE];
  (void)m, (void)x;
  for (int64_t e = 0; e < lse->n; ++e)
    if (isinf(lse->value[e])) lse->value[e] = 0;
}

static bool last_rows_lost(const fa_failure *x, int v, fa_mistake *m) {
  static const int rows[] = {1, 16, 32, 64, 128, 8};
  m->twist.range = rows_lost;
  m->after = empty_to_zero;
  m->twist.number[0] = rows[v];
  if (rows[v] == 1)
    fa_mistake_say(m, "last row lost");
  else
    fa_mistake_say(m, "last tile of %d rows lost", rows[v]);
  return x->p->seqlen_q > rows[v]; /* else all are: the output is zero */
}

const fa_hypothesis fa_hypotheses_of_keys[] = {
    {"no_key_seen", "rows come out as if they saw no key", FA_OF_ALL, 1, no_key_seen},
    {"last_key_lost", "a sequence's last key is not seen", FA_OF_ALL, 1, last_key_lost},
    {"last_key_tile_lost", "the last tile of keys is not visited", FA_OF_ALL, 2 * N_LOST, last_key_tile_lost},
    {"first_key_tile_lost", "the first tile of keys is not visited", FA_OF_ALL, 2 * N_LOST,
     first_key_tile_lost},
    {"keys_past_end_as_zeros", "keys past a sequence's end count as zeros", FA_OF_FORWARD, N_TILES,
     keys_past_end_as_zeros},
    {"last_rows_lost", "a sequence's last row or tile of rows sees nothing", FA_OF_ALL, 6, last_rows_lost},
    {.name = NULL}};
