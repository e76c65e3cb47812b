/* Groups that are several: one class of failures may have several causes. */
#include "report/causes/group.h"

#include <string.h>

static const double part = 0.1, part_precision = 0.65; /* of a group that is split */
enum { MOST_PARTS = 4, LEAST_PART = 3 };

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
  for (int k = first; k < g->n; ++k) cost += g->v[k].predicate.cost + FA_GROUP_BITS;
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
