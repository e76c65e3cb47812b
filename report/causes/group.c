#include "report/causes/group.h"

#include <stdlib.h>
#include <string.h>

/* One failure in fifty may have another cause. */
static const double share_of_group = 0.98, precise = 0.5;

fa_fit fa_cause_fit(const fa_cause_groups *g, const fa_cause_group *group) {
  return (fa_fit){g->rows, group->member, group->n, share_of_group, 0};
}

bool fa_cause_separates(const fa_predicate *p) {
  return p->n > 0 && fa_predicate_precision(p) >= precise;
}

fa_cause_group *fa_cause_add_group(fa_cause_groups *g, const char *hypothesis) {
  if (g->n == g->capacity) {
    const int capacity = g->capacity ? 2 * g->capacity : 32;
    fa_cause_group *more = realloc(g->v, (size_t)capacity * sizeof *more);
    g->failed |= !more;
    if (!more) return NULL;
    g->v = more;
    g->capacity = capacity;
  }
  fa_cause_group *group = &g->v[g->n];
  *group = (fa_cause_group){0};
  group->member = calloc((size_t)FA_WORDS_OF(fa_cause_rows_failing(g->rows)) + 1, sizeof(uint64_t));
  g->failed |= !group->member;
  if (!group->member) return NULL;
  strncpy(group->hypothesis, hypothesis, sizeof group->hypothesis - 1);
  ++g->n;
  return group;
}

void fa_cause_put(fa_cause_groups *g, fa_cause_group *group, int64_t failure) {
  for (int i = 0; i < g->n; ++i) {
    if (!fa_bit(g->v[i].member, failure)) continue;
    g->v[i].member[failure / 64] &= ~(UINT64_C(1) << failure % 64);
    --g->v[i].n;
  }
  fa_set_bit(group->member, failure);
  ++group->n;
}

void fa_cause_remove_empty(fa_cause_groups *g) {
  int kept = 0;
  for (int i = 0; i < g->n; ++i) {
    if (g->v[i].n == 0)
      free(g->v[i].member);
    else
      g->v[kept++] = g->v[i];
  }
  g->n = kept;
}

void fa_cause_fit_group(fa_cause_groups *g, fa_cause_group *group) {
  const fa_fit fit = fa_cause_fit(g, group);
  g->failed |= group->n > 0 && !fa_fit_best(&fit, &group->predicate);
}

static int larger_first(const void *a, const void *b) {
  const fa_cause_group *x = a, *y = b;
  if (x->n != y->n) return x->n > y->n ? -1 : 1;
  for (int64_t w = 0;; ++w) /* groups have no failure in common: the earlier failure first */
    if (x->member[w] != y->member[w])
      return (x->member[w] & -x->member[w]) - 1 < (y->member[w] & -y->member[w]) - 1 ? -1 : 1;
}

void fa_cause_sort(fa_cause_groups *g) {
  if (g->n > 0) qsort(g->v, (size_t)g->n, sizeof *g->v, larger_first);
}

/* ---- by explanation ---- */

bool fa_cause_is_explained_by(const fa_cause_failure *f, const char *hypothesis) {
  for (int i = 0; i < f->n_explanations; ++i)
    if (strcmp(f->hypothesis[i], hypothesis) == 0) return true;
  return false;
}

static int64_t count_explained(const fa_cause_groups *g, const bool *taken, const char *hypothesis) {
  int64_t n = 0;
  for (int64_t i = 0; i < fa_cause_rows_failing(g->rows); ++i)
    n += !taken[i] && fa_cause_is_explained_by(&g->failure[i], hypothesis);
  return n;
}

/* The hypothesis that explains most of what is left; NULL: none explains any. Only names that differ from the last
 * one seen are counted, and a campaign has few. */
static const char *most_frequent(const fa_cause_groups *g, const bool *taken) {
  enum { NAMES = 128 };
  const char *name[NAMES], *best = NULL;
  int n_names = 0;
  int64_t most = 0;
  for (int64_t i = 0; i < fa_cause_rows_failing(g->rows); ++i)
    for (int e = 0; !taken[i] && e < g->failure[i].n_explanations; ++e) {
      int k = 0;
      while (k < n_names && strcmp(name[k], g->failure[i].hypothesis[e]) != 0) ++k;
      if (k < n_names || n_names == NAMES) continue;
      name[n_names++] = g->failure[i].hypothesis[e];
      const int64_t n = count_explained(g, taken, g->failure[i].hypothesis[e]);
      if (n > most) best = g->failure[i].hypothesis[e];
      if (n > most) most = n;
    }
  return best;
}

static void group_explained(fa_cause_groups *g, bool *taken) {
  const char *hypothesis;
  while (!g->failed && (hypothesis = most_frequent(g, taken))) {
    fa_cause_group *group = fa_cause_add_group(g, hypothesis);
    for (int64_t i = 0; group && i < fa_cause_rows_failing(g->rows); ++i) {
      if (taken[i] || !fa_cause_is_explained_by(&g->failure[i], hypothesis)) continue;
      fa_cause_put(g, group, i);
      taken[i] = true;
    }
  }
}

/* ---- by class ---- */

static fa_cause_group *group_of_class(fa_cause_groups *g, int first, const fa_failure_class *class) {
  for (int k = first; k < g->n; ++k) {
    int64_t i = 0;
    while (!fa_bit(g->v[k].member, i)) ++i;
    if (fa_failure_class_equal(&g->failure[i].class, class)) return &g->v[k];
  }
  return fa_cause_add_group(g, "");
}

static void group_classes(fa_cause_groups *g, const bool *taken) {
  const int first = g->n;
  for (int64_t i = 0; i < fa_cause_rows_failing(g->rows) && !g->failed; ++i) {
    if (taken[i]) continue;
    fa_cause_group *group = group_of_class(g, first, &g->failure[i].class);
    if (group) fa_cause_put(g, group, i);
  }
}

/* ---- all ---- */

static void fit_all(fa_cause_groups *g) {
  for (int i = 0; i < g->n && !g->failed; ++i) fa_cause_fit_group(g, &g->v[i]);
}

static void make(fa_cause_groups *g, bool *taken) {
  group_explained(g, taken);
  group_classes(g, taken);
  fit_all(g);
  fa_cause_adopt(g);
  fa_cause_split(g);
  fa_cause_join(g);
  fa_cause_adopt(g);
  fa_cause_absorb(g);
  fa_cause_sweep(g);
  fa_cause_sort(g);
}

fa_status fa_cause_groups_make(fa_cause_groups *g, const fa_cause_rows *rows,
                               const fa_cause_failure *failure) {
  bool *taken = calloc((size_t)fa_cause_rows_failing(rows) + 1, sizeof *taken);
  *g = (fa_cause_groups){.rows = rows, .failure = failure, .failed = !taken};
  if (taken) make(g, taken);
  free(taken);
  return g->failed ? FA_ERR_MEMORY : FA_OK;
}

void fa_cause_groups_free(fa_cause_groups *g) {
  for (int i = 0; i < g->n; ++i) free(g->v[i].member);
  free(g->v);
  *g = (fa_cause_groups){0};
}
