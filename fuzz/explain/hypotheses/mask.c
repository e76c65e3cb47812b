/* Masks: which keys a row sees. */
#include "fuzz/explain/hypothesis.h"

/* number: keys more on the left, on the right. Recomputes the row's range with edges moved so. */
static void moved_edges(const fa_ref_twist *t, const fa_ref_call *c, const fa_ref_sequence *e, int64_t i,
                        int64_t *lo, int64_t *hi) {
  const fa_window w = fa_mask_window(&c->p->mask);
  const int64_t diagonal = i + e->shift;
  *lo = 0;
  *hi = e->sk;
  if (w.left >= 0 && diagonal - w.left - t->number[0] > 0) *lo = diagonal - w.left - t->number[0];
  if (w.right >= 0 && diagonal + w.right + t->number[1] + 1 < e->sk)
    *hi = diagonal + w.right + t->number[1] + 1;
}

static bool has_window(const fa_failure *x) {
  return x->p->mask.type == FA_MASK_WINDOW;
}

static bool move_edges(fa_mistake *m, int64_t left, int64_t right) {
  m->twist.range = moved_edges;
  m->twist.number[0] = left;
  m->twist.number[1] = right;
  return true;
}

/* An edge is off by one more often than by two. */
static bool causal_by(const fa_failure *x, int v, int sign, fa_mistake *m) {
  const int by = v + 1;
  if (x->p->mask.type != FA_MASK_CAUSAL) return false;
  fa_mistake_say(m, "causal mask %d key%s too %s", by, by > 1 ? "s" : "", sign > 0 ? "wide" : "narrow");
  return move_edges(m, 0, sign * by);
}

static bool one_key_more(const fa_failure *x, int v, fa_mistake *m) {
  return causal_by(x, v, 1, m);
}

static bool one_key_fewer(const fa_failure *x, int v, fa_mistake *m) {
  return causal_by(x, v, -1, m);
}

static bool left_by(const fa_failure *x, int sign, fa_mistake *m) {
  if (!has_window(x) || x->p->mask.left < 0) return false;
  fa_mistake_say(m, "window left edge one key %s", sign > 0 ? "far" : "short");
  return move_edges(m, sign, 0);
}

static bool right_by(const fa_failure *x, int sign, fa_mistake *m) {
  if (!has_window(x) || x->p->mask.right < 0) return false;
  fa_mistake_say(m, "window right edge one key %s", sign > 0 ? "far" : "short");
  return move_edges(m, 0, sign);
}

static bool left_more(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  return left_by(x, 1, m);
}

static bool left_fewer(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  return left_by(x, -1, m);
}

static bool right_more(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  return right_by(x, 1, m);
}

static bool right_fewer(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  return right_by(x, -1, m);
}

static bool other_corner(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  if (x->p->mask.type == FA_MASK_NONE) return false;
  const bool top = x->p->mask.align == FA_ALIGN_TOP_LEFT;
  m->p.mask.align = top ? FA_ALIGN_BOTTOM_RIGHT : FA_ALIGN_TOP_LEFT;
  fa_mistake_say(m, "mask aligned at the %s corner", top ? "bottom right" : "top left");
  return true;
}

static bool left_ignored(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  if (!has_window(x) || x->p->mask.left < 0) return false;
  m->p.mask.left = -1;
  fa_mistake_say(m, "window's left edge ignored");
  return true;
}

static bool right_ignored(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  if (!has_window(x) || x->p->mask.right < 0) return false;
  m->p.mask.right = -1;
  fa_mistake_say(m, "window's right edge ignored");
  return true;
}

/* As no mask, or as a causal one. */
static bool window_ignored(const fa_failure *x, int v, fa_mistake *m) {
  if (!has_window(x)) return false;
  m->p.mask = (fa_mask){
      .type = v ? FA_MASK_CAUSAL : FA_MASK_NONE, .align = x->p->mask.align, .left = -1, .right = -1};
  fa_mistake_say(m, v ? "window ignored, causal instead" : "window ignored");
  return true;
}

static bool mask_ignored(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  if (x->p->mask.type != FA_MASK_CAUSAL) return false;
  m->p.mask.type = FA_MASK_NONE;
  fa_mistake_say(m, "causal mask ignored");
  return true;
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* number: rows and keys of a tile. A tile of keys that any row of the tile sees is seen by all of them. */
static void whole_tiles(const fa_ref_twist *t, const fa_ref_call *c, const fa_ref_sequence *e, int64_t i,
                        int64_t *lo, int64_t *hi) {
  const int64_t rows = t->number[0], keys = t->number[1], first = i / rows * rows;
  const fa_ref_twist none = {0};
  int64_t unused;
  moved_edges(&none, c, e, first, lo, &unused);
  moved_edges(&none, c, e, least(first + rows, e->sq) - 1, &unused, hi);
  if (*lo >= *hi) return;
  *lo = *lo / keys * keys;
  *hi = least((*hi + keys - 1) / keys * keys, e->sk);
}

/* True if each row sees all keys: then the mask is ignored, and that has a name of its own. */
static bool all_see_all(const fa_failure *x, const fa_ref_twist *t) {
  for (int64_t b = 0; b < x->p->batch; ++b)
    for (int64_t i = 0; i < x->place.entry[b].sq; ++i) {
      int64_t lo, hi;
      whole_tiles(t, &x->place, &x->place.entry[b], i, &lo, &hi);
      if (lo > 0 || hi < x->place.entry[b].sk) return false;
    }
  return true;
}

static const int tile_rows[] = {1, 16, 32, 64, 128, 256}, tile_keys[] = {16, 32, 64, 128};

static bool mask_whole_tiles(const fa_failure *x, int v, fa_mistake *m) {
  if (x->p->mask.type == FA_MASK_NONE) return false;
  const int rows = tile_rows[v / 4], keys = tile_keys[v % 4];
  m->twist.range = whole_tiles;
  m->twist.number[0] = rows;
  m->twist.number[1] = keys;
  if (rows > 1)
    fa_mistake_say(m, "mask applied to whole tiles of %d rows and %d keys", rows, keys);
  else
    fa_mistake_say(m, "mask applied to whole tiles of %d keys", keys);
  return !all_see_all(x, &m->twist);
}

#define EITHER FA_OF_ALL
const fa_hypothesis fa_hypotheses_of_masks[] = {
    {"mask_one_key_more", "the causal diagonal lies a key or two too far right", EITHER, 2, one_key_more},
    {"mask_one_key_fewer", "the causal diagonal lies a key or two too far left", EITHER, 2, one_key_fewer},
    {"window_left_one_more", "the window reaches one key further left", EITHER, 1, left_more},
    {"window_left_one_fewer", "the window's leftmost key is lost", EITHER, 1, left_fewer},
    {"window_right_one_more", "the window reaches one key further right", EITHER, 1, right_more},
    {"window_right_one_fewer", "the window's rightmost key is lost", EITHER, 1, right_fewer},
    {"mask_other_corner", "masks align at the other corner", EITHER, 1, other_corner},
    {"window_left_ignored", "the window has no left edge", EITHER, 1, left_ignored},
    {"window_right_ignored", "the window has no right edge", EITHER, 1, right_ignored},
    {"window_ignored", "the window is ignored, or taken for a causal mask", EITHER, 2, window_ignored},
    {"mask_ignored", "the causal mask is ignored", EITHER, 1, mask_ignored},
    {"mask_whole_tiles", "the mask decides about tiles, not about keys", EITHER, 24, mask_whole_tiles},
    {.name = NULL}};
