#include "report/causes/fit.h"

#include <math.h>

#include <stdlib.h>
#include <string.h>

enum { BEAM = 64 };

/* A conjunction while it is searched for: which cases it holds for. */
typedef struct node {
  int n, bits;
  const fa_literal *literal[FA_PREDICATE_LITERALS];
  int64_t inside, other_failures, others; /* others: of the sample */
  double cost;
  uint64_t *group, *elsewhere, *sample; /* owned */
} node;

/* A node and one more literal, not made yet. */
typedef struct step {
  const node *from;
  const fa_literal *literal;
  int64_t inside, other_failures, others;
  double cost;
} step;

typedef struct search {
  const fa_fit *fit;
  int64_t f_words, s_words, n_failing, n_passing, n_sample, need;
  double weight; /* passing cases that one of the sample stands for */
  const fa_literal **candidate;
  int n_candidates;
  node *beam, *next;
  int n_beam, n_next;
  step best[BEAM];
  int n_best;
  fa_predicate found;
  bool has_found;
} search;

static bool is_precise(const fa_fit *f, int64_t inside, double others) {
  return (double)inside >= f->precision * ((double)inside + others);
}

static void begin(search *s, const fa_fit *f) {
  *s = (search){.fit = f};
  s->n_failing = fa_cause_rows_failing(f->rows);
  s->n_passing = fa_cause_rows_passing(f->rows);
  s->n_sample = fa_cause_rows_sampled(f->rows);
  s->f_words = FA_WORDS_OF(s->n_failing);
  s->s_words = FA_WORDS_OF(s->n_sample);
  s->weight = s->n_sample ? (double)s->n_passing / (double)s->n_sample : 1;
  s->need = (int64_t)ceil(f->share * (double)f->n_group);
  if (s->need < 1) s->need = 1;
}

/* ---- candidates ---- */

static bool same_cases(const search *s, const fa_literal *a, const fa_literal *b) {
  return memcmp(a->sample, b->sample, (size_t)s->s_words * sizeof(uint64_t)) == 0 &&
         memcmp(a->failing, b->failing, (size_t)s->f_words * sizeof(uint64_t)) == 0;
}

/* Literals that hold for enough of the group and not for everything else; of equal ones the first. */
static bool choose_candidates(search *s) {
  const fa_literal *all;
  const int n = fa_cause_rows_literals(s->fit->rows, &all);
  s->candidate = malloc(((size_t)n + 1) * sizeof(fa_literal *));
  if (!s->candidate) return false;
  for (int i = 0; i < n; ++i) {
    const fa_literal *l = &all[i];
    bool twice = false;
    if (fa_count_both(s->fit->group, l->failing, s->f_words) < s->need) continue;
    if (fa_count_bits(l->sample, s->s_words) == s->n_sample &&
        fa_count_bits(l->failing, s->f_words) == s->n_failing)
      continue;
    for (int k = 0; k < s->n_candidates && !twice; ++k)
      twice = s->candidate[k]->bits <= l->bits && same_cases(s, s->candidate[k], l);
    if (!twice) s->candidate[s->n_candidates++] = l;
  }
  return true;
}

/* ---- levels ---- */

static void node_free(node *n) {
  free(n->group);
  free(n->elsewhere);
  free(n->sample);
}

static uint64_t *both(const uint64_t *a, const uint64_t *b, int64_t words) {
  uint64_t *out = malloc(((size_t)words + 1) * sizeof *out);
  for (int64_t w = 0; out && w < words; ++w) out[w] = a[w] & b[w];
  return out;
}

static bool make_root(search *s, node *root) {
  *root = (node){.inside = s->fit->n_group, .others = s->n_sample};
  root->group = malloc(((size_t)s->f_words + 1) * sizeof(uint64_t));
  root->elsewhere = malloc(((size_t)s->f_words + 1) * sizeof(uint64_t));
  root->sample = malloc(((size_t)s->s_words + 1) * sizeof(uint64_t));
  if (!root->group || !root->elsewhere || !root->sample) return false;
  for (int64_t w = 0; w < s->f_words; ++w) {
    root->group[w] = s->fit->group[w];
    root->elsewhere[w] = ~s->fit->group[w];
  }
  for (int64_t w = 0; w < s->s_words; ++w) root->sample[w] = ~UINT64_C(0);
  root->other_failures = s->n_failing - s->fit->n_group;
  return true;
}

static bool has_literal(const node *n, const fa_literal *l) {
  for (int i = 0; i < n->n; ++i)
    if (n->literal[i]->feature == l->feature) return true;
  return false;
}

/* Equal conjunctions come in several orders: they hold for equally many cases. */
static bool is_kept(const search *s, const step *x) {
  for (int i = 0; i < s->n_best; ++i) {
    const step *y = &s->best[i];
    int same = 0;
    if (y->inside != x->inside || y->others != x->others || y->other_failures != x->other_failures) continue;
    for (int a = 0; a <= x->from->n; ++a)
      for (int b = 0; b <= y->from->n; ++b)
        same += (a < x->from->n ? x->from->literal[a] : x->literal) ==
                (b < y->from->n ? y->from->literal[b] : y->literal);
    if (same == x->from->n + 1) return true;
  }
  return false;
}

static void keep(search *s, const step *x) {
  if (s->n_best == BEAM && x->cost >= s->best[BEAM - 1].cost) return;
  if (is_kept(s, x)) return;
  int at = s->n_best < BEAM ? s->n_best++ : BEAM - 1;
  for (; at > 0 && s->best[at - 1].cost > x->cost; --at) s->best[at] = s->best[at - 1];
  s->best[at] = *x;
}

static void offer(search *s, const step *x) {
  const double others = (double)x->others * s->weight;
  if (!is_precise(s->fit, x->inside, others)) return;
  if (s->has_found && x->cost >= s->found.cost - 1e-9) return;
  s->found = (fa_predicate){.n = x->from->n + 1, .cost = x->cost};
  for (int i = 0; i < x->from->n; ++i) s->found.literal[i] = x->from->literal[i];
  s->found.literal[x->from->n] = x->literal;
  s->has_found = true;
}

static void extend(search *s, const node *from, int first) {
  for (int c = first; c < s->n_candidates; ++c) {
    const fa_literal *l = s->candidate[c];
    step x = {.from = from, .literal = l};
    if (has_literal(from, l)) continue;
    x.inside = fa_count_both(from->group, l->failing, s->f_words);
    if (x.inside < s->need) continue;
    x.others = fa_count_both(from->sample, l->sample, s->s_words);
    x.other_failures = fa_count_both(from->elsewhere, l->failing, s->f_words);
    if (x.others == from->others && x.other_failures == from->other_failures) continue;
    x.cost = fa_predicate_cost(s->fit, from->bits + l->bits, x.inside, x.other_failures,
                               (double)x.others * s->weight);
    offer(s, &x);
    keep(s, &x);
  }
}

static bool make_next(search *s) {
  s->n_next = 0;
  for (int i = 0; i < s->n_best; ++i) {
    const step *x = &s->best[i];
    node *n = &s->next[s->n_next++];
    *n = *x->from;
    n->literal[n->n++] = x->literal;
    n->bits += x->literal->bits;
    n->inside = x->inside;
    n->others = x->others;
    n->other_failures = x->other_failures;
    n->cost = x->cost;
    n->group = both(x->from->group, x->literal->failing, s->f_words);
    n->elsewhere = both(x->from->elsewhere, x->literal->failing, s->f_words);
    n->sample = both(x->from->sample, x->literal->sample, s->s_words);
    if (!n->group || !n->elsewhere || !n->sample) return false;
  }
  return true;
}

static void swap_levels(search *s) {
  node *old = s->beam;
  for (int i = 0; i < s->n_beam; ++i) node_free(&s->beam[i]);
  s->beam = s->next;
  s->n_beam = s->n_next;
  s->next = old;
  s->n_next = s->n_best = 0;
}

/* All pairs are tried: a feature that says nothing alone may say everything with another. */
static bool try_pairs(search *s, const node *root) {
  for (int a = 0; a < s->n_candidates; ++a) {
    const fa_literal *l = s->candidate[a];
    node one = {.n = 1, .bits = l->bits, .literal = {l}};
    one.group = both(root->group, l->failing, s->f_words);
    one.elsewhere = both(root->elsewhere, l->failing, s->f_words);
    one.sample = both(root->sample, l->sample, s->s_words);
    const bool made = one.group && one.elsewhere && one.sample;
    if (made) {
      one.others = fa_count_bits(one.sample, s->s_words);
      one.other_failures = fa_count_bits(one.elsewhere, s->f_words);
      extend(s, &one, a + 1);
    }
    /* What was kept points to this node: let it point to one that lives on. */
    for (int i = 0; made && i < s->n_best; ++i)
      if (s->best[i].from == &one) s->best[i].from = &s->beam[a];
    if (made)
      s->beam[a] = one;
    else
      node_free(&one);
    s->n_beam = a + 1;
    if (!made) return --s->n_beam, false;
  }
  return true;
}

static bool run(search *s) {
  node root;
  const size_t n = (size_t)(s->n_candidates > BEAM ? s->n_candidates : BEAM);
  s->beam = calloc(n + 1, sizeof *s->beam);
  s->next = calloc(n + 1, sizeof *s->next);
  bool good = s->beam && s->next && make_root(s, &root);
  if (!good) return false;
  extend(s, &root, 0);
  s->n_best = 0;
  good = try_pairs(s, &root);
  for (int level = 2; good && s->n_best > 0; ++level) {
    good = make_next(s);
    swap_levels(s);
    if (level == FA_PREDICATE_LITERALS) break;
    for (int i = 0; good && i < s->n_beam; ++i) extend(s, &s->beam[i], 0);
  }
  node_free(&root);
  return good;
}

static void end(search *s) {
  for (int i = 0; i < s->n_beam; ++i) node_free(&s->beam[i]);
  for (int i = 0; i < s->n_next; ++i) node_free(&s->next[i]);
  free(s->beam);
  free(s->next);
  free(s->candidate);
}

/* ---- the last word have all passing cases, not the sample ---- */

static bool is_allowed(const fa_fit *f, const fa_predicate *p) {
  return (double)p->failing >= f->share * (double)f->n_group && is_precise(f, p->failing, (double)p->others);
}

static bool try_without(const fa_fit *f, fa_predicate *p) {
  for (int i = 0; i < p->n; ++i) {
    fa_predicate less = *p;
    less.literal[i] = less.literal[--less.n];
    fa_fit_evaluate(f, &less);
    if (!is_allowed(f, &less) || less.cost > p->cost) continue;
    *p = less;
    return true;
  }
  return false;
}

static bool try_with(const search *s, fa_predicate *p) {
  fa_predicate best = *p;
  for (int c = 0; p->n < FA_PREDICATE_LITERALS && c < s->n_candidates; ++c) {
    fa_predicate more = *p;
    more.literal[more.n++] = s->candidate[c];
    fa_fit_evaluate(s->fit, &more);
    if (is_allowed(s->fit, &more) && more.cost < best.cost - 1e-9) best = more;
  }
  const bool better = best.n > p->n;
  *p = best;
  return better;
}

bool fa_fit_best(const fa_fit *f, fa_predicate *out) {
  search s;
  begin(&s, f);
  fa_predicate empty = {0};
  fa_fit_evaluate(f, &empty);
  s.has_found = is_allowed(f, &empty);
  if (s.has_found) s.found = empty;
  const bool good = choose_candidates(&s) && run(&s);
  if (good && s.has_found) {
    fa_fit_evaluate(f, &s.found);
    for (int i = 0;
         i < 8 && (try_without(f, &s.found) || (s.n_sample < s.n_passing && try_with(&s, &s.found)));)
      ++i;
    fa_predicate_sort(&s.found);
    *out = s.found;
  }
  end(&s);
  return good && s.has_found;
}
