#include "ref/engine/sample.h"

#include <stddef.h>

int fa_ref_place_order(const void *a, const void *b) {
  const fa_ref_place *x = a, *y = b;
  if (x->b != y->b) return x->b < y->b ? -1 : 1;
  if (x->h != y->h) return x->h < y->h ? -1 : 1;
  return x->i < y->i ? -1 : x->i > y->i;
}

/* The first strip that is not before this place. */
static int64_t find(const fa_ref_sample *s, fa_ref_place at) {
  int64_t low = 0, high = s->n_strips;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (fa_ref_place_order(&s->strip[middle], &at) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

const fa_ref_place *fa_ref_strips_of(const fa_ref_sample *s, int64_t b, int64_t hk, int64_t *n) {
  const int64_t first = find(s, (fa_ref_place){b, hk, 0});
  *n = find(s, (fa_ref_place){b, hk + 1, 0}) - first;
  return s->n_strips ? s->strip + first : NULL;
}

bool fa_ref_strips_meet(const fa_ref_sample *s, int64_t b, int64_t hk, int64_t j0, int64_t n) {
  const int64_t first = find(s, (fa_ref_place){b, hk, j0 - FA_STRIP_KEYS + 1});
  if (first == s->n_strips) return false;
  const fa_ref_place *at = &s->strip[first];
  return at->b == b && at->h == hk && at->i < j0 + n;
}
