/* Groups compared with each other: one cause may show as several classes, and one class may have several causes. */
#include "report/causes/group.h"

#include <stdlib.h>
#include <string.h>

/* A predicate that so many cases satisfy says little about any one of them. */
static const double selective = 0.25, most_of_them = 0.5;
static const double part = 0.1, part_precision = 0.85; /* of a group that is split */
enum { MOST_PARTS = 4, LEAST_PART = 3, STRONG = 3, FEW = 3, SPLIT_BITS = 8 };

static double share_of_cases(const fa_cause_groups *g, const fa_predicate *p) {
  const int64_t all = fa_cause_rows_failing(g->rows) + fa_cause_rows_passing(g->rows);
  return (double)(p->failing + p->others + p->other_failures) / (double)all;
}

static int64_t first_of(const fa_cause_group *group) {
  int64_t i = 0;
  while (!fa_bit(group->member, i)) ++i;
  return i;
}

/* Cases whose bounds are no test have nothing to do with wrong results. */
static bool may_belong(const fa_cause_groups *g, int64_t a, int64_t b) {
  return (g->failure[a].class.state == FA_VACUOUS) == (g->failure[b].class.state == FA_VACUOUS);
}

/* ---- adopting ---- */

static bool is_strong(const fa_cause_groups *g, const fa_cause_group *group) {
  return group->n >= STRONG && fa_cause_separates(&group->predicate) &&
         share_of_cases(g, &group->predicate) <= selective;
}

static fa_cause_group *adopter_of(fa_cause_groups *g, const fa_cause_group *from, int64_t failure) {
  fa_cause_group *best = NULL;
  for (int i = 0; i < g->n; ++i) {
    fa_cause_group *to = &g->v[i];
    if (to == from || !is_strong(g, to) || !fa_predicate_holds(&to->predicate, failure)) continue;
    if (may_belong(g, first_of(to), failure) && (!best || to->n > best->n)) best = to;
  }
  return best;
}

void fa_cause_adopt(fa_cause_groups *g) {
  for (int k = 0; k < g->n && !g->failed; ++k) {
    fa_cause_group *from = &g->v[k];
    const int64_t before = from->n;
    if (from->hypothesis[0] || fa_cause_separates(&from->predicate)) continue;
    for (int64_t i = 0; i < fa_cause_rows_failing(g->rows); ++i) {
      fa_cause_group *to = fa_bit(from->member, i) ? adopter_of(g, from, i) : NULL;
      if (to) fa_cause_put(g, to, i);
    }
    if (from->n != before) fa_cause_fit_group(g, from);
  }
  fa_cause_remove_empty(g);
}

/* ---- joining ---- */

/* Both groups in one question; frees nothing of them. */
static bool unite(const fa_cause_groups *g, const fa_cause_group *a, const fa_cause_group *b,
                  fa_cause_group *out) {
  const int64_t words = FA_WORDS_OF(fa_cause_rows_failing(g->rows));
  *out = (fa_cause_group){.n = a->n + b->n, .member = calloc((size_t)words + 1, sizeof(uint64_t))};
  for (int64_t w = 0; out->member && w < words; ++w) out->member[w] = a->member[w] | b->member[w];
  return out->member != NULL;
}

static bool covers(const fa_cause_group *group, const fa_predicate *p, int64_t n_cases) {
  int64_t n = 0;
  for (int64_t i = 0; i < n_cases; ++i) n += fa_bit(group->member, i) && fa_predicate_holds(p, i);
  return (double)n >= 0.98 * (double)group->n;
}

/* True if p describes both, and costs no more than what describes them now. */
static bool describes(const fa_cause_groups *g, const fa_fit *both, const fa_cause_group *a,
                      const fa_cause_group *b, fa_predicate *p) {
  const int64_t n = fa_cause_rows_failing(g->rows);
  const double limit =
      g->failure[first_of(a)].class.state == g->failure[first_of(b)].class.state ? most_of_them : selective;
  if (p->n == 0 || !covers(a, p, n) || !covers(b, p, n)) return false;
  fa_fit_evaluate(both, p);
  return fa_cause_separates(p) && share_of_cases(g, p) <= limit &&
         p->cost <= a->predicate.cost + b->predicate.cost;
}

/* The predicates of both, and those with a literal less. */
static bool have_one_predicate(const fa_cause_groups *g, const fa_cause_group *a, const fa_cause_group *b) {
  fa_cause_group both;
  bool found = false;
  if (!unite(g, a, b, &both)) return false;
  const fa_fit fit = fa_cause_fit(g, &both);
  for (int side = 0; side < 2 && !found; ++side) {
    const fa_predicate *whole = side ? &b->predicate : &a->predicate;
    for (int i = -1; i < whole->n && !found; ++i) {
      fa_predicate p = *whole;
      if (i >= 0) p.literal[i] = p.literal[--p.n];
      found = describes(g, &fit, a, b, &p);
    }
  }
  free(both.member);
  return found;
}

static bool may_join(const fa_cause_groups *g, const fa_cause_group *a, const fa_cause_group *b) {
  if (a->hypothesis[0] && b->hypothesis[0] && strcmp(a->hypothesis, b->hypothesis) != 0) return false;
  return may_belong(g, first_of(a), first_of(b)) && have_one_predicate(g, a, b);
}

static void swallow(fa_cause_groups *g, fa_cause_group *to, fa_cause_group *from) {
  if (!to->hypothesis[0]) memcpy(to->hypothesis, from->hypothesis, sizeof to->hypothesis);
  for (int64_t w = 0; w < FA_WORDS_OF(fa_cause_rows_failing(g->rows)); ++w) to->member[w] |= from->member[w];
  to->n += from->n;
  from->n = 0;
  fa_cause_fit_group(g, to);
}

void fa_cause_join(fa_cause_groups *g) {
  bool changed = true;
  while (changed && !g->failed) {
    changed = false;
    fa_cause_sort(g);
    for (int a = 0; a < g->n && !g->failed; ++a)
      for (int b = a + 1; b < g->n && g->v[a].n > 0; ++b) {
        if (g->v[b].n == 0 || !may_join(g, &g->v[a], &g->v[b])) continue;
        swallow(g, &g->v[a], &g->v[b]);
        changed = true;
      }
    fa_cause_remove_empty(g);
  }
}

/* ---- splitting ---- */

/* Moves the largest part of *rest that a precise predicate describes into a group of its own, which comes last. */
static bool take_part(fa_cause_groups *g, int rest) {
  fa_fit fit = fa_cause_fit(g, &g->v[rest]);
  fa_predicate p;
  fit.share = part;
  fit.precision = part_precision;
  if (g->v[rest].n < 2 * LEAST_PART || !fa_fit_best(&fit, &p) || p.n == 0 || p.failing < LEAST_PART)
    return false;
  if (p.failing == g->v[rest].n) return false;
  char hypothesis[sizeof g->v[0].hypothesis];
  memcpy(hypothesis, g->v[rest].hypothesis, sizeof hypothesis);
  fa_cause_group *to = fa_cause_add_group(g, hypothesis);
  for (int64_t i = 0; to && i < fa_cause_rows_failing(g->rows); ++i)
    if (fa_bit(g->v[rest].member, i) && fa_predicate_holds(&p, i)) fa_cause_put(g, to, i);
  if (to) to->predicate = p;
  return to != NULL;
}

/* Puts the parts from `first` on back into the group. */
static void undo(fa_cause_groups *g, int group, int first) {
  for (int k = first; k < g->n; ++k) {
    for (int64_t w = 0; w < FA_WORDS_OF(fa_cause_rows_failing(g->rows)); ++w)
      g->v[group].member[w] |= g->v[k].member[w];
    g->v[group].n += g->v[k].n;
    g->v[k].n = 0;
  }
  fa_cause_remove_empty(g);
}

static void split_one(fa_cause_groups *g, int group) {
  const int first = g->n;
  const fa_predicate before = g->v[group].predicate;
  double cost = 0;
  for (int parts = 1; parts < MOST_PARTS && !g->failed && take_part(g, group); ++parts) {}
  for (int k = first; k < g->n && !g->failed; ++k) fa_cause_fit_group(g, &g->v[k]);
  if (g->n == first || g->failed) return;
  fa_cause_fit_group(g, &g->v[group]);
  for (int k = first; k < g->n; ++k) cost += g->v[k].predicate.cost + SPLIT_BITS;
  cost += g->v[group].predicate.cost;
  if (cost < before.cost) return;
  undo(g, group, first);
  g->v[group].predicate = before;
}

void fa_cause_split(fa_cause_groups *g) {
  const int n = g->n;
  for (int i = 0; i < n && !g->failed; ++i) {
    const fa_predicate *p = &g->v[i].predicate;
    if (fa_predicate_precision(p) < 0.98 || p->failing < g->v[i].n) split_one(g, i);
  }
}

/* ---- sweeping ---- */

/* Many small groups of which nothing is known are no better than one. */
void fa_cause_sweep(fa_cause_groups *g) {
  fa_cause_group *to = NULL;
  int n = 0;
  for (int i = 0; i < g->n; ++i) n += !g->v[i].hypothesis[0] && !fa_cause_separates(&g->v[i].predicate);
  if (n <= FEW || fa_cause_rows_passing(g->rows) == 0) return;
  fa_cause_sort(g);
  for (int i = 0; i < g->n && !g->failed; ++i) {
    fa_cause_group *from = &g->v[i];
    if (from->hypothesis[0] || fa_cause_separates(&from->predicate)) continue;
    if (g->failure[first_of(from)].class.state == FA_VACUOUS) continue;
    if (to) swallow(g, to, from);
    if (!to) to = from;
  }
  fa_cause_remove_empty(g);
}
