#include "fuzz/explain/scope.h"

enum { ROWS = 16, KEYS = 16 };

void fa_scope_whole(fa_scope *s) {
  *s = (fa_scope){.whole = true};
}

static bool add(fa_ref_part *parts, int *n, fa_ref_part part) {
  for (int i = 0; i < *n; ++i)
    if (parts[i].b == part.b && parts[i].h == part.h &&
        parts[i].first / FA_BLOCK_M == part.first / FA_BLOCK_M)
      return false;
  if (*n == FA_SCOPE_PARTS) return false;
  parts[(*n)++] = part;
  return true;
}

/* The rows around an element. */
static void add_around(const fa_failure *x, const fa_failed *t, int64_t e, fa_scope *s) {
  const bool keys = fa_tensor_is_of_keys(t->id);
  fa_place at;
  if (!fa_place_of(x, t, e, &at)) return;
  const int64_t tile = keys ? KEYS : ROWS, first = at.i / tile * tile,
                left = fa_places_long(x, t, at.b) - first;
  const fa_ref_part part = {at.b, at.h, first, left < tile ? left : tile};
  if (keys)
    add(s->keys, &s->n_keys, part);
  else
    add(s->rows, &s->n_rows, part);
}

/* The wrong element after which a share of all of them still come; of the first, 0, of the last, nearly 1. */
static int64_t wrong_at(const fa_failed *t, double share) {
  int64_t left = (int64_t)(share * (double)t->wrong);
  for (int64_t e = 0; e < t->n; ++e)
    if (t->state[e] == FA_ELEMENT_WRONG && left-- == 0) return e;
  return 0;
}

static void add_of(const fa_failure *x, const fa_failed *t, fa_scope *s) {
  static const double among_wrong[] = {0, 0.38, 0.999, 0.73, 0.17}, among_all[] = {0.57, 0.05};
  for (int i = 0; i < 5; ++i) add_around(x, t, wrong_at(t, among_wrong[i]), s);
  for (int i = 0; i < 2; ++i) add_around(x, t, (int64_t)(among_all[i] * (double)t->n), s);
}

void fa_scope_sample(const fa_failure *x, fa_scope *s) {
  *s = (fa_scope){0};
  const fa_tensor_id rows[] = {FA_T_O, FA_T_DQ, FA_T_LSE}, keys[] = {FA_T_DV, FA_T_DK};
  const fa_failed *t = NULL;
  for (int i = 0; i < 3 && !t; ++i) t = fa_failure_find(x, rows[i]);
  if (t) add_of(x, t, s);
  t = NULL;
  for (int i = 0; i < 2 && !t; ++i) t = fa_failure_find(x, keys[i]);
  if (t) add_of(x, t, s);
}

void fa_scope_glance(const fa_scope *sample, fa_scope *s) {
  *s = *sample;
  if (s->n_rows > 2) s->n_rows = 2;
  if (s->n_keys > 1) s->n_keys = 1;
}

static void each_row(const fa_failure *x, const fa_failed *t, const fa_ref_part *part, fa_scope_visit *visit,
                     void *context) {
  for (int64_t i = part->first; i < part->first + part->n; ++i) {
    const fa_place at = {part->b, part->h, i, 0};
    const int64_t e = fa_element_at(x, t, &at);
    if (e >= 0) visit(context, e, t->width);
  }
}

bool fa_scope_each(const fa_failure *x, const fa_scope *s, const fa_failed *t, fa_scope_visit *visit,
                   void *context) {
  if (s->whole) {
    visit(context, 0, t->n);
    return true;
  }
  if (!fa_tensor_has_places(t->id)) return false;
  const bool keys = fa_tensor_is_of_keys(t->id);
  const fa_ref_part *parts = keys ? s->keys : s->rows;
  for (int i = 0; i < (keys ? s->n_keys : s->n_rows); ++i) each_row(x, t, &parts[i], visit, context);
  return true;
}
