/* Failures without a group worth the name, and groups whose predicate holds for them. */
#include "report/causes/group.h"

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
