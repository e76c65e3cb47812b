/* Small groups inside a larger one. Where nearly every case that a group's predicate describes fails, a failure there is
 * no news, whatever would explain it: on some shapes a mistake looks like another one. */
#include "report/causes/group.h"

static const double sure = 0.9; /* of the cases that the predicate holds for, this share fails */
enum { TIMES_LARGER = 3, STRONG = 10 };

static bool tells_for_sure(const fa_cause_groups *g, const fa_cause_group *group) {
  const fa_predicate *p = &group->predicate;
  const double failing = (double)(p->failing + p->other_failures);
  return group->n >= STRONG && fa_cause_separates(p) && failing >= sure * (failing + (double)p->others) &&
         fa_cause_share_of_cases(g, p) <= FA_MOST_CASES;
}

/* The largest group that a failure of this one may belong to; NULL: none. */
static fa_cause_group *surrounding(fa_cause_groups *g, const fa_cause_group *inner, int64_t size,
                                   int64_t failure) {
  fa_cause_group *best = NULL;
  for (int i = 0; i < g->n; ++i) {
    fa_cause_group *to = &g->v[i];
    if (to == inner || to->n < TIMES_LARGER * size || !tells_for_sure(g, to)) continue;
    if (!fa_predicate_holds(&to->predicate, failure) ||
        !fa_cause_may_belong(g, fa_cause_first_of(to), failure))
      continue;
    if (!best || to->n > best->n) best = to;
  }
  return best;
}

/* Where those that it was named by have gone, the name goes too. */
static void keep_name_if_true(const fa_cause_groups *g, fa_cause_group *group) {
  for (int64_t i = 0; i < fa_cause_rows_failing(g->rows); ++i)
    if (fa_bit(group->member, i) && fa_cause_is_explained_by(&g->failure[i], group->hypothesis)) return;
  group->hypothesis[0] = 0;
}

static void absorb(fa_cause_groups *g, fa_cause_group *inner) {
  const int64_t size = inner->n;
  for (int64_t i = 0; i < fa_cause_rows_failing(g->rows); ++i) {
    if (!fa_bit(inner->member, i)) continue;
    fa_cause_group *to = surrounding(g, inner, size, i);
    if (to) fa_cause_put(g, to, i);
  }
  if (inner->n == size) return;
  keep_name_if_true(g, inner);
  fa_cause_fit_group(g, inner);
}

void fa_cause_absorb(fa_cause_groups *g) {
  fa_cause_sort(g);
  for (int i = g->n - 1; i > 0 && !g->failed; --i) absorb(g, &g->v[i]);
  fa_cause_remove_empty(g);
}
