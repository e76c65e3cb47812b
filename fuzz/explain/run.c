#include "fuzz/explain/run.h"

#include "fuzz/explain/accept.h"
#include "fuzz/explain/compute.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FULL_SECONDS 0.001 /* the default */
#define CLEARLY_NEARER 0.97
#define EQUALLY_WELL 0.005 /* of the share */

/* A mistake that explains something. */
typedef struct finding {
  const fa_hypothesis *h;
  fa_tensor_bits tensors;
  int64_t wrong, explained;
  double away; /* of a rounding: how far from its values, of the distance from the right ones */
  bool in_part, sampled;
  char text[128];
} finding;

typedef struct search {
  fa_failure x;
  double full_seconds; /* of one computation of the whole case */
  bool sample_first;
  fa_scope whole, sample, glance; /* the last: a few of the sample's rows or keys */
  int n, room;
  finding *found;
} search;

static double share_of(const finding *f) {
  return (double)f->explained / (double)f->wrong;
}

/* Tries a mistake on a scope. */
static fa_status try_on(search *s, fa_mistake *m, const fa_scope *scope, fa_tensor_bits set, finding *out,
                        fa_error *err) {
  const bool computes = !m->moved && !m->zero;
  fa_wants wants = {0};
  fa_status status = computes ? fa_mistake_compute(&s->x, m, set, scope, &wants, err) : FA_OK;
  out->tensors = 0;
  out->wrong = out->explained = 0;
  out->in_part = false;
  out->away = 0;
  for (int i = 0; status == FA_OK && i < s->x.n; ++i) {
    const fa_failed *t = &s->x.tensor[i];
    fa_tally tally;
    if (!(set >> t->id & 1)) continue;
    fa_tally_take(&s->x, m, &wants, t, scope, &tally);
    const fa_accepted accepted = m->of_precision ? fa_tally_accept_rounding(&tally) : fa_tally_accept(&tally);
    if (accepted == FA_NOT_EXPLAINED) continue;
    out->tensors |= FA_BIT(t->id);
    out->wrong += tally.wrong;
    out->explained += tally.explained;
    if (m->of_precision) out->away = fmax(out->away, tally.away_mistaken / tally.away_right);
    out->in_part |= accepted == FA_EXPLAINED_IN_PART;
  }
  out->sampled = !scope->whole;
  fa_wants_free(&wants);
  return status;
}

/* Which of two findings says more. */
static bool is_better(const finding *a, const finding *b) {
  const int n_a = fa_tensor_bits_count(a->tensors), n_b = fa_tensor_bits_count(b->tensors);
  if (n_a != n_b) return n_a > n_b;
  if (a->in_part != b->in_part) return b->in_part;
  if (a->away > 0 && b->away > 0) return a->away < CLEARLY_NEARER * b->away;
  return share_of(a) > share_of(b) + EQUALLY_WELL;
}

/* Keeps the best variant of each hypothesis. */
static fa_status keep(search *s, const finding *f, fa_error *err) {
  if (s->n > 0 && s->found[s->n - 1].h == f->h) {
    if (is_better(f, &s->found[s->n - 1])) s->found[s->n - 1] = *f;
    return FA_OK;
  }
  if (s->n == s->room) {
    const int room = 2 * s->room + 16;
    finding *more = realloc(s->found, (size_t)room * sizeof *more);
    if (!more) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
    s->found = more;
    s->room = room;
  }
  s->found[s->n++] = *f;
  return FA_OK;
}

/* Of tensors that have no rows to choose from, all must be computed. */
static fa_tensor_bits only_whole(const fa_failure *x) {
  fa_tensor_bits set = 0;
  for (int i = 0; i < x->n; ++i)
    if (!fa_tensor_has_places(x->tensor[i].id)) set |= FA_BIT(x->tensor[i].id);
  return set;
}

/* The tensor of the set that a glance at costs least; NULL: none. */
static const fa_failed *cheapest(const fa_failure *x, fa_tensor_bits set) {
  static const fa_tensor_id ids[] = {FA_T_O, FA_T_LSE, FA_T_DQ, FA_T_DV, FA_T_DK};
  for (size_t i = 0; i < sizeof ids / sizeof *ids; ++i)
    if (set & FA_BIT(ids[i])) return fa_failure_find(x, ids[i]);
  return NULL;
}

/* Leaves of the set what a glance does not rule out: the values alone, of one tensor of each pass. */
static fa_status glance(search *s, fa_mistake *m, fa_tensor_bits *set, fa_error *err) {
  const fa_tensor_bits passes[] = {FA_OF_FORWARD, FA_OF_BACKWARD};
  fa_status status = FA_OK;
  if (m->moved || m->zero || m->after || m->profile.delta != s->x.config->profile->delta) return FA_OK;
  m->values_only = true;
  for (int i = 0; status == FA_OK && i < 2; ++i) {
    const fa_failed *t = cheapest(&s->x, *set & passes[i]);
    fa_wants wants;
    fa_tally tally;
    if (!t || (status = fa_mistake_compute(&s->x, m, FA_BIT(t->id), &s->glance, &wants, err)) != FA_OK)
      continue;
    fa_tally_take(&s->x, m, &wants, t, &s->glance, &tally);
    if (!fa_tally_is_promising(&tally)) *set &= ~passes[i];
    fa_wants_free(&wants);
  }
  m->values_only = false;
  return status;
}

/* Tries it on some rows first if the case is large, and then, if there is time, on all of what these explain. */
static fa_status try_by_size(search *s, fa_mistake *m, fa_tensor_bits set, finding *f, fa_error *err) {
  const fa_tensor_bits last = set & only_whole(&s->x);
  fa_status status = FA_OK;
  if (!s->sample_first) return try_on(s, m, &s->whole, set, f, err);
  const fa_tensor_bits placed = set & ~last;
  fa_tensor_bits left = placed;
  if (placed && (status = glance(s, m, &left, err)) != FA_OK) return status;
  set = left | last;
  if (placed && !left) return FA_OK;
  if (set & ~last) {
    status = try_on(s, m, &s->sample, set & ~last, f, err);
    if (!f->tensors) return status;
  }
  if (status != FA_OK || s->full_seconds > fa_failure_left(&s->x)) return status;
  return try_on(s, m, &s->whole, f->tensors | last, f, err);
}

static fa_status try_variant(search *s, const fa_hypothesis *h, int variant, fa_error *err) {
  fa_mistake m;
  finding f = {.h = h};
  fa_status status = FA_OK;
  fa_mistake_init(&m, &s->x);
  if (h->make(&s->x, variant, &m)) {
    status = try_by_size(s, &m, s->x.set & h->tensors, &f, err);
    snprintf(f.text, sizeof f.text, "%s", m.text);
    if (status == FA_OK && f.tensors) status = keep(s, &f, err);
  }
  fa_mistake_free(&m);
  /* What a reference cannot compute is no mistake of this subject. */
  return status == FA_ERR_MEMORY ? status : FA_OK;
}

/* Whether every judged tensor that it may change has failed. Such a hypothesis is the more plausible. */
static bool fits_closely(const search *s, const fa_hypothesis *h) {
  for (int i = 0; i < s->x.result->n_verdicts; ++i)
    if (h->tensors & ~s->x.set & FA_BIT(s->x.result->verdict[i].id)) return false;
  return true;
}

static fa_status try_hypothesis(search *s, const fa_hypothesis *h, fa_error *err) {
  fa_status status = FA_OK;
  for (int v = 0; v < h->variants && status == FA_OK && fa_failure_in_time(&s->x); ++v)
    status = try_variant(s, h, v, err);
  return status;
}

static fa_status try_all(search *s, fa_error *err) {
  fa_status status = FA_OK;
  for (int closely = 1; closely >= 0; --closely)
    for (const fa_hypothesis *const *table = fa_hypotheses; *table; ++table)
      for (const fa_hypothesis *h = *table; h->name && status == FA_OK; ++h)
        if ((h->tensors & s->x.set) && fits_closely(s, h) == closely) status = try_hypothesis(s, h, err);
  return status;
}

/* The best finding for these tensors; NULL: none. */
static const finding *best_for(const search *s, fa_tensor_bits set) {
  const finding *best = NULL;
  for (int i = 0; i < s->n; ++i)
    if ((s->found[i].tensors & set) && (!best || is_better(&s->found[i], best))) best = &s->found[i];
  return best;
}

static void report(const finding *f, fa_tensor_bits consequences, fa_result *r) {
  if (r->n_explanations == FA_EXPLANATIONS) return;
  fa_explanation *e = &r->explanation[r->n_explanations++];
  const bool of_forward = f->tensors & FA_OF_FORWARD;
  *e = (fa_explanation){.tensors = f->tensors | (of_forward ? consequences : 0),
                        .wrong = f->wrong,
                        .share = share_of(f),
                        .sampled = f->sampled};
  snprintf(e->hypothesis, sizeof e->hypothesis, "%s", f->h->name);
  snprintf(e->text, sizeof e->text, "%s%s", f->text, f->in_part ? ", where it is wrong" : "");
}

/* The best finding, and those that are as good; then for the tensors that these leave. */
static void report_best(const search *s, fa_result *r) {
  fa_tensor_bits left = s->x.set;
  const finding *best;
  while (left && (best = best_for(s, left))) {
    fa_tensor_bits done = 0;
    for (int i = 0; i < s->n; ++i) {
      const finding *f = &s->found[i];
      if (!(f->tensors & left) || is_better(best, f)) continue;
      report(f, s->x.consequences, r);
      done |= f->tensors;
    }
    left &= ~done;
  }
}

/* Gradients are judged from the subject's own O and LSE. If these are wrong, but its backward does not use them, then its
 * gradients are right after all, and nothing about them is to be explained. */
static fa_status set_aside_consequences(search *s, fa_error *err) {
  fa_failure *x = &s->x;
  const fa_scope *scope = s->sample_first ? &s->sample : &s->whole;
  const fa_tensor_bits gradients = x->set & FA_OF_BACKWARD & ~(s->sample_first ? only_whole(x) : 0);
  fa_mistake none;
  fa_wants wants;
  if (!(x->set & FA_OF_FORWARD) || !gradients || !(x->judged->from_o || x->judged->from_lse)) return FA_OK;
  fa_mistake_init(&none, x);
  none.end_to_end = true;
  const fa_status status = fa_mistake_compute(x, &none, gradients, scope, &wants, err);
  if (status != FA_OK) return status;
  for (int i = 0; i < x->n; ++i) {
    const fa_failed *t = &x->tensor[i];
    fa_tally tally;
    if (!(gradients & FA_BIT(t->id))) continue;
    fa_tally_take(x, &none, &wants, t, scope, &tally);
    if (fa_tally_accept(&tally) == FA_EXPLAINED) x->consequences |= FA_BIT(t->id);
  }
  x->set &= ~x->consequences;
  fa_wants_free(&wants);
  return FA_OK;
}

static fa_status search_init(search *s, const fa_explain_options *o, const fa_result *r, fa_error *err) {
  const double most = o->full_seconds > 0 ? o->full_seconds : FULL_SECONDS;
  s->full_seconds = r->seconds_reference;
  s->sample_first = r->seconds_reference > most;
  fa_scope_whole(&s->whole);
  if (s->sample_first) fa_scope_sample(&s->x, &s->sample);
  fa_scope_glance(&s->sample, &s->glance);
  return set_aside_consequences(s, err);
}

fa_status fa_explain(const fa_problem *p, const fa_tensors *in, const fa_tensors *got,
                     const fa_judge_config *config, const fa_judged *judged,
                     const fa_explain_options *options, fa_result *r, fa_error *err) {
  search s = {.n = 0};
  r->n_explanations = 0;
  if (p->family == FA_MERGE) return FA_OK; /* mistakes are those of attention */
  if (r->state != FA_FAIL || !config->profile || !judged->forward.t[FA_T_O].value) return FA_OK;
  fa_status status = fa_failure_init(&s.x, options->seconds, p, in, got, config, judged, r, err);
  if (status == FA_OK && s.x.n > 0) {
    status = search_init(&s, options, r, err);
    if (status == FA_OK) status = try_all(&s, err);
    report_best(&s, r);
  }
  fa_failure_free(&s.x);
  free(s.found);
  return status;
}
