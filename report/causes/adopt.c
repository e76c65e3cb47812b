/* Failures without a group worth the name, and groups whose predicate holds for them. */
#include "report/causes/group.h"

#include <stdlib.h>
#include <string.h>

enum { STRONG = 3 };

double fa_cause_share_of_cases(const fa_cause_groups *g, const fa_predicate *p) {
  const int64_t all = fa_cause_rows_failing(g->rows) + fa_cause_rows_passing(g->rows);
  return (double)(p->failing + p->others + p->other_failures) / (double)all;
}

int64_t fa_cause_first_of(const fa_cause_group *group) {
  int64_t i = 0;
  while (!fa_bit(group->member, i)) ++i;
  return i;
}

bool fa_cause_may_belong(const fa_cause_groups *g, int64_t a, int64_t b) {
  return (g->failure[a].class.state == FA_VACUOUS) == (g->failure[b].class.state == FA_VACUOUS);
}

static bool is_weak(const fa_cause_group *group) {
  return group->n > 0 && !group->hypothesis[0] && !fa_cause_separates(&group->predicate);
}

static bool is_strong(const fa_cause_groups *g, const fa_cause_group *group) {
  return group->n >= STRONG && fa_cause_separates(&group->predicate) &&
         fa_cause_share_of_cases(g, &group->predicate) <= FA_SELECTIVE;
}

/* ---- as the predicates are ---- */

static fa_cause_group *adopter_of(fa_cause_groups *g, const fa_cause_group *from, int64_t failure) {
  fa_cause_group *best = NULL;
  for (int i = 0; i < g->n; ++i) {
    fa_cause_group *to = &g->v[i];
    if (to == from || !is_strong(g, to) || !fa_predicate_holds(&to->predicate, failure)) continue;
    if (fa_cause_may_belong(g, fa_cause_first_of(to), failure) && (!best || to->n > best->n)) best = to;
  }
  return best;
}

void fa_cause_adopt(fa_cause_groups *g) {
  for (int k = 0; k < g->n && !g->failed; ++k) {
    fa_cause_group *from = &g->v[k];
    const int64_t before = from->n;
    if (!is_weak(from)) continue;
    for (int64_t i = 0; i < fa_cause_rows_failing(g->rows); ++i) {
      fa_cause_group *to = fa_bit(from->member, i) ? adopter_of(g, from, i) : NULL;
      if (to) fa_cause_put(g, to, i);
    }
    if (from->n != before) fa_cause_fit_group(g, from);
  }
  fa_cause_remove_empty(g);
}

/* ---- with a literal less ---- */

/* What would be if a group took those of another that satisfy a wider predicate than its own. */
typedef struct widening {
  fa_cause_group *to, *from;
  fa_predicate wider;
  uint64_t *taken, *left; /* owned: the members of the one, and of the other */
  int64_t n_gained;
  double saved; /* bits */
} widening;

static double cost_of_naming(const fa_cause_groups *g, const uint64_t *member, int64_t n) {
  const fa_fit fit = {g->rows, member, n, 1, 0};
  fa_predicate none = {0};
  fa_fit_evaluate(&fit, &none);
  return none.cost;
}

static void try_widening(const fa_cause_groups *g, widening *w) {
  const int64_t n = fa_cause_rows_failing(g->rows), words = FA_WORDS_OF(n);
  memcpy(w->taken, w->to->member, (size_t)words * sizeof(uint64_t));
  memcpy(w->left, w->from->member, (size_t)words * sizeof(uint64_t));
  w->n_gained = 0;
  w->saved = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (!fa_bit(w->from->member, i) || !fa_predicate_holds(&w->wider, i)) continue;
    fa_set_bit(w->taken, i);
    w->left[i / 64] &= ~(UINT64_C(1) << i % 64);
    ++w->n_gained;
  }
  const fa_fit fit = {g->rows, w->taken, w->to->n + w->n_gained, 1, 0};
  if (w->n_gained == 0 || !fa_cause_may_belong(g, fa_cause_first_of(w->to), fa_cause_first_of(w->from)))
    return;
  fa_fit_evaluate(&fit, &w->wider);
  if (!fa_cause_separates(&w->wider) || fa_cause_share_of_cases(g, &w->wider) > FA_SELECTIVE) return;
  w->saved = w->to->predicate.cost + cost_of_naming(g, w->from->member, w->from->n) - w->wider.cost -
             cost_of_naming(g, w->left, w->from->n - w->n_gained);
}

/* The predicate of *w->to less each of its literals; true if that saves anything: *w is then the best. */
static bool find_widening(const fa_cause_groups *g, widening *w) {
  fa_predicate best;
  double most = 0;
  for (int i = 0; w->to->predicate.n > 1 && i < w->to->predicate.n; ++i) {
    w->wider = w->to->predicate;
    w->wider.literal[i] = w->wider.literal[--w->wider.n];
    try_widening(g, w);
    if (w->saved > most) best = w->wider;
    if (w->saved > most) most = w->saved;
  }
  if (most <= 0) return false;
  w->wider = best;
  try_widening(g, w);
  return true;
}

static void widen(fa_cause_groups *g, widening *w) {
  for (int64_t i = 0; i < fa_cause_rows_failing(g->rows); ++i)
    if (fa_bit(w->taken, i) && fa_bit(w->from->member, i)) fa_cause_put(g, w->to, i);
  fa_cause_fit_group(g, w->to);
  fa_cause_fit_group(g, w->from);
}

void fa_cause_widen(fa_cause_groups *g) {
  const size_t bytes = (size_t)(FA_WORDS_OF(fa_cause_rows_failing(g->rows)) + 1) * sizeof(uint64_t);
  widening w = {.taken = malloc(bytes), .left = malloc(bytes)};
  g->failed |= !w.taken || !w.left;
  for (int f = 0; f < g->n && !g->failed; ++f)
    for (int t = 0; t < g->n && !g->failed; ++t) {
      w.from = &g->v[f];
      w.to = &g->v[t];
      if (f != t && is_weak(w.from) && is_strong(g, w.to) && find_widening(g, &w)) widen(g, &w);
    }
  free(w.taken);
  free(w.left);
  fa_cause_remove_empty(g);
}
