/* The rule by which a tier puts cases in order: new features for the time. */
#include "fuzz/campaign/tier.h"

#include <math.h>
#include <stdlib.h>

void fa_worth_see(fa_worth *w, const fa_case *c, int *n_features) {
  static fa_coverage one; /* too large for a stack of a small thread; there is one thread here */
  one = (fa_coverage){0};
  fa_coverage_add(&one, c);
  for (int k = 0; k < one.n_rows; ++k) w->has[k / 64] |= (uint64_t)(one.row[k].n > 0) << k % 64;
  *n_features = one.n_rows;
}

int fa_worth_count(const uint64_t has[FA_WORTH_WORDS]) {
  int n = 0;
  for (int i = 0; i < FA_WORTH_WORDS; ++i) n += __builtin_popcountll(has[i]);
  return n;
}

static int count_new(const fa_worth *w, const uint64_t seen[FA_WORTH_WORDS]) {
  int n = 0;
  for (int i = 0; i < FA_WORTH_WORDS; ++i) n += __builtin_popcountll(w->has[i] & ~seen[i]);
  return n;
}

/* The place of the one that brings most for its time; -1: none brings anything. */
static int64_t find_best(const fa_worth *v, int64_t n, const uint64_t seen[FA_WORTH_WORDS]) {
  int64_t best = -1;
  double most = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double value = isfinite(v[i].seconds) ? count_new(&v[i], seen) / v[i].seconds : 0;
    if (value > most) best = i, most = value;
  }
  return best;
}

typedef struct priced {
  double seconds;
  int64_t place;
} priced;

static int by_price(const void *x, const void *y) {
  const priced *a = x, *b = y;
  if (a->seconds != b->seconds) return a->seconds < b->seconds ? -1 : 1;
  return (a->place > b->place) - (a->place < b->place);
}

int64_t fa_worth_order(const fa_worth *v, int64_t n, uint64_t seen[FA_WORTH_WORDS], int64_t *order,
                       int64_t *n_order) {
  int64_t n_first = 0, n_rest = 0, best;
  bool *taken = calloc((size_t)n + 1, sizeof *taken);
  priced *rest = malloc(((size_t)n + 1) * sizeof *rest);
  FA_ASSERT(taken && rest);
  while ((best = find_best(v, n, seen)) >= 0) {
    for (int i = 0; i < FA_WORTH_WORDS; ++i) seen[i] |= v[best].has[i];
    taken[best] = true;
    order[n_first++] = best;
  }
  for (int64_t i = 0; i < n; ++i)
    if (!taken[i] && isfinite(v[i].seconds)) rest[n_rest++] = (priced){v[i].seconds, i};
  qsort(rest, (size_t)n_rest, sizeof *rest, by_price);
  for (int64_t i = 0; i < n_rest; ++i) order[n_first + i] = rest[i].place;
  free(taken);
  free(rest);
  *n_order = n_first + n_rest;
  return n_first;
}
