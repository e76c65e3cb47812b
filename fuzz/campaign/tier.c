#include "fuzz/campaign/tier.h"

#include "fuzz/campaign/tier_ask.h"
#include "fuzz/generate/draw.h"
#include "fuzz/options/filter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST 0.1 /* the part of the time that one case may be expected to take */

static const fa_tier_kind kinds[] = {{"smoke", 30}, {"standard", 600}, {"nightly", 4 * 3600}};

const fa_tier_kind *fa_tier_find(const char *name) {
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i)
    if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
  return NULL;
}

/* ---- named cases ---- */

/* The dearest of the backends counts: each of them runs the case. */
static double cost_of(const fa_session *s, const fa_case *c) {
  double most = 0;
  for (int b = 0; b < s->n_choices; ++b) most = fmax(most, fa_tier_cost(s->choice[b].spec, c));
  return most;
}

static void weigh_named(fa_tier *t, const fa_session *s, const fa_case_list *list, const fa_tier_answers *a,
                        fa_filter *filter, fa_worth *v) {
  for (int64_t i = 0; i < list->n; ++i) {
    const fa_case *c = &list->v[i];
    fa_worth_see(&v[i], c, &t->n_features);
    v[i].seconds = cost_of(s, c);
    const bool wanted = fa_filter_passes(filter, c->name);
    const bool able = a->able[i] && !(s->rules && c->law != FA_LAW_NONE); /* nobody is held to a law there */
    const bool too_long = v[i].seconds > LONGEST * t->seconds;
    t->n_all += wanted;
    t->n_unable += wanted && !able;
    t->n_too_long += wanted && able && too_long;
    if (!wanted || !able || too_long) v[i].seconds = INFINITY;
  }
}

static fa_status order_named(fa_tier *t, const fa_session *s, const fa_case_list *list,
                             const fa_tier_answers *a, fa_filter *filter, uint64_t seen[FA_WORTH_WORDS],
                             fa_error *err) {
  const size_t n = (size_t)list->n + 1;
  fa_worth *v = calloc(n, sizeof *v);
  t->order = calloc(n, sizeof *t->order);
  t->seconds_of = calloc(n, sizeof *t->seconds_of);
  if (!v || !t->order || !t->seconds_of) {
    free(v);
    return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  }
  weigh_named(t, s, list, a, filter, v);
  t->n_first = fa_worth_order(v, list->n, seen, t->order, &t->n_named);
  for (int64_t i = 0; i < t->n_named; ++i) t->seconds_of[i] = v[t->order[i]].seconds;
  t->n_features_first = fa_worth_count(seen);
  free(v);
  return FA_OK;
}

/* ---- profiles ---- */

/* A case of a profile stands for all that its sample has; its seconds are the sample's mean. */
static fa_worth weigh_profile(fa_tier *t, const fa_session *s, const char *profile, const int64_t *draw) {
  fa_worth w = {.seconds = 0};
  int n = 0;
  for (int k = 0; k < FA_TIER_SAMPLE; ++k) {
    fa_case c;
    if (draw[k] < 0 || fa_generate_draw(profile, t->seed, k, draw[k], &c, NULL) != FA_OK) continue;
    fa_worth_see(&w, &c, &t->n_features);
    w.seconds += cost_of(s, &c);
    fa_case_free(&c);
    ++n;
  }
  w.seconds = n ? w.seconds / n : INFINITY;
  if (w.seconds > LONGEST * t->seconds) w.seconds = INFINITY;
  return w;
}

static void order_profiles(fa_tier *t, const fa_session *s, const fa_tier_answers *a,
                           uint64_t seen[FA_WORTH_WORDS]) {
  fa_worth v[FA_TIER_PROFILES];
  int64_t order[FA_TIER_PROFILES], n_order;
  int n = 0;
  for (; fa_generate_profiles[n].name && n < FA_TIER_PROFILES; ++n)
    v[n] = weigh_profile(t, s, fa_generate_profiles[n].name, a->draw[n]);
  int64_t chosen = fa_worth_order(v, n, seen, order, &n_order);
  if (chosen == 0 && n_order > 0) chosen = 1; /* nothing new in the samples: the cheapest goes on looking */
  for (int64_t i = 0; i < chosen; ++i) {
    t->profile[t->n_profiles] = fa_generate_profiles[order[i]].name;
    t->profile_seconds[t->n_profiles++] = v[order[i]].seconds;
  }
}

/* ---- all together ---- */

fa_status fa_tier_choose(fa_tier *t, fa_session *s, const fa_case_list *list, fa_error *err) {
  const fa_tier_kind *kind = fa_tier_find(s->cli->tier);
  uint64_t seen[FA_WORTH_WORDS] = {0};
  fa_filter filter;
  fa_tier_answers answers;
  *t = (fa_tier){.name = kind->name,
                 .seconds = s->cli->seconds > 0 ? s->cli->seconds : kind->seconds,
                 .started = fa_seconds_now(),
                 .seed = s->cli->seed};
  fa_status status = fa_filter_compile(s->cli, &filter, err);
  if (status != FA_OK) return status;
  /* Names of random cases are not known before they are drawn. */
  status = fa_tier_ask(s, list, t->seed, !filter.text, &answers, err);
  if (status == FA_OK) {
    status = order_named(t, s, list, &answers, &filter, seen, err);
    if (status == FA_OK && !filter.text) order_profiles(t, s, &answers, seen);
    fa_tier_forget(&answers);
  }
  fa_filter_report(&filter, list->n, s->shard.total);
  fa_filter_free(&filter);
  return status;
}

void fa_tier_free(fa_tier *t) {
  free(t->order);
  free(t->seconds_of);
  *t = (fa_tier){.name = NULL};
}

bool fa_tier_at(const fa_tier *t, int64_t index, int64_t *place, fa_case_origin *origin) {
  const int64_t later = index - t->n_first, rest = t->n_named - t->n_first;
  int64_t named = index, random = -1;
  if (t->n_profiles > 0 && later >= 0) {
    const bool in_turn = later < 2 * rest;
    named = in_turn && later % 2 ? t->n_first + later / 2 : -1;
    random = in_turn ? later / 2 : later - rest;
  }
  *origin = (fa_case_origin){.profile = NULL};
  *place = named >= 0 && named < t->n_named ? t->order[named] : -1;
  if (named >= 0) return named < t->n_named;
  *origin = (fa_case_origin){t->profile[random % t->n_profiles], t->seed, random / t->n_profiles};
  return true;
}
