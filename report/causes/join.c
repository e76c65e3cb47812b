/* Groups that are one: one cause may show as several classes of failures. */
#include "report/causes/group.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 3, MANY = 5 };

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
      g->failure[fa_cause_first_of(a)].class.state == g->failure[fa_cause_first_of(b)].class.state
          ? FA_MOST_CASES
          : FA_SELECTIVE;
  if (p->n == 0 || !covers(a, p, n) || !covers(b, p, n)) return false;
  fa_fit_evaluate(both, p);
  return fa_cause_separates(p) && fa_cause_share_of_cases(g, p) <= limit &&
         p->cost <= a->predicate.cost + b->predicate.cost + FA_GROUP_BITS;
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

/* True if the hypothesis explains every failure of the group, whichever the group is named by: on some cases two
 * mistakes cannot be told apart. */
static bool explains(const fa_cause_groups *g, const char *hypothesis, const fa_cause_group *group) {
  for (int64_t i = 0; i < fa_cause_rows_failing(g->rows); ++i)
    if (fa_bit(group->member, i) && !fa_cause_is_explained_by(&g->failure[i], hypothesis)) return false;
  return true;
}

static bool may_join(const fa_cause_groups *g, const fa_cause_group *a, const fa_cause_group *b) {
  const bool both = a->hypothesis[0] && b->hypothesis[0] && strcmp(a->hypothesis, b->hypothesis) != 0;
  if (both && !explains(g, a->hypothesis, b) && !explains(g, b->hypothesis, a)) return false;
  return fa_cause_may_belong(g, fa_cause_first_of(a), fa_cause_first_of(b)) && have_one_predicate(g, a, b);
}

static void take_in(fa_cause_groups *g, fa_cause_group *to, fa_cause_group *from) {
  for (int64_t w = 0; w < FA_WORDS_OF(fa_cause_rows_failing(g->rows)); ++w) to->member[w] |= from->member[w];
  to->n += from->n;
  from->n = 0;
}

static void swallow(fa_cause_groups *g, fa_cause_group *to, fa_cause_group *from) {
  if (from->hypothesis[0] && (!to->hypothesis[0] || !explains(g, to->hypothesis, from)))
    memcpy(to->hypothesis, from->hypothesis, sizeof to->hypothesis);
  take_in(g, to, from);
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

/* ---- sweeping ---- */

/* Nothing is known of its failures together. An explanation of very few among many may be chance. */
static bool is_loose(const fa_cause_groups *g, const fa_cause_group *group) {
  if (fa_cause_separates(&group->predicate)) return false;
  if (g->failure[fa_cause_first_of(group)].class.state == FA_VACUOUS) return false;
  return !group->hypothesis[0] || (group->n <= FEW && MANY * group->n <= fa_cause_rows_failing(g->rows));
}

/* Many small groups of which nothing is known are no better than one. */
void fa_cause_sweep(fa_cause_groups *g) {
  fa_cause_group *to = NULL;
  int n = 0;
  for (int i = 0; i < g->n; ++i) n += is_loose(g, &g->v[i]);
  if (n <= FEW || fa_cause_rows_passing(g->rows) == 0) return;
  fa_cause_sort(g);
  for (int i = 0; i < g->n && !g->failed; ++i) {
    fa_cause_group *from = &g->v[i];
    if (!is_loose(g, from)) continue;
    from->hypothesis[0] = 0; /* each has its own */
    if (to)
      take_in(g, to, from);
    else
      to = from;
  }
  if (to && !g->failed) fa_cause_fit_group(g, to);
  fa_cause_remove_empty(g);
}
