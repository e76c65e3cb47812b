/* A tier while it runs: is there time for another case, what has been seen, and what is said of it. */
#include "fuzz/campaign/tier.h"

#include "cases/codec/json.h"

#include <cjson/cJSON.h>

#include <string.h>

#define MORE 0.1 /* the part of its time that a tier may take in excess, and in which it looks ahead */

static double estimate_of(const fa_tier *t, int64_t index) {
  int64_t place;
  fa_case_origin origin;
  if (!fa_tier_at(t, index, &place, &origin)) return 0;
  for (int p = 0; place < 0 && p < t->n_profiles; ++p)
    if (t->profile[p] == origin.profile) return t->profile_seconds[p];
  for (int64_t i = 0; i < t->n_named; ++i)
    if (t->order[i] == place) return t->seconds_of[i];
  return 0;
}

bool fa_tier_is_over(const fa_tier *t, int64_t index, double deadline, double now) {
  const double left = deadline - now, slowness = t->estimated > 0 ? t->measured / t->estimated : 1;
  if (left <= 0) return true;
  return left < MORE * t->seconds && slowness * estimate_of(t, index) > left + MORE * t->seconds;
}

void fa_tier_note(fa_tier *t, int64_t index, const fa_case *c, bool judged, double seconds) {
  int64_t place;
  fa_case_origin origin;
  int unused;
  if (!fa_tier_at(t, index, &place, &origin)) return;
  ++t->n_run[place < 0];
  if (!judged) return;
  t->estimated += estimate_of(t, index);
  t->measured += seconds;
  fa_worth w = {.seconds = 0};
  if (c) fa_worth_see(&w, c, &unused);
  for (int i = 0; i < FA_WORTH_WORDS; ++i) t->seen[i] |= w.has[i];
}

/* ---- what is said ---- */

static void print_profiles(FILE *out, const fa_tier *t) {
  for (int i = 0; i < t->n_profiles; ++i) fprintf(out, "%s%s", i ? ", " : "", t->profile[i]);
  if (t->n_profiles == 0) fputs("none", out);
}

void fa_tier_print_choice(FILE *out, const fa_tier *t) {
  fprintf(out, "tier %s, %.4g s: of %lld named cases %lld, in order of new features a second", t->name,
          t->seconds, (long long)t->n_all, (long long)t->n_named);
  if (t->n_unable) fprintf(out, "; %lld that the backend does not run", (long long)t->n_unable);
  if (t->n_too_long) fprintf(out, "; %lld too long", (long long)t->n_too_long);
  fprintf(out, "\ntier %s: the first %lld have %d of %d features; random profiles: ", t->name,
          (long long)t->n_first, t->n_features_first, t->n_features);
  print_profiles(out, t);
  fputc('\n', out);
}

void fa_tier_print_outcome(FILE *out, const fa_tier *t) {
  const int64_t left = t->n_named - t->n_run[0];
  fprintf(out,
          "tier %s: ran %lld of %lld named cases and %lld random ones; features judged: %d of %d; left out:",
          t->name, (long long)t->n_run[0], (long long)t->n_all, (long long)t->n_run[1],
          fa_worth_count(t->seen), t->n_features);
  fprintf(out, " %lld named for want of time, %lld not run by the backend, %lld too long\n", (long long)left,
          (long long)t->n_unable, (long long)t->n_too_long);
}

cJSON *fa_tier_to_json(const fa_tier *t) {
  const struct {
    const char *key;
    double n;
  } numbers[] = {{"seconds", t->seconds},
                 {"named", (double)t->n_all},
                 {"named_run", (double)t->n_run[0]},
                 {"random_run", (double)t->n_run[1]},
                 {"unable", (double)t->n_unable},
                 {"too_long", (double)t->n_too_long},
                 {"features", (double)t->n_features},
                 {"features_judged", (double)fa_worth_count(t->seen)}};
  cJSON *o = cJSON_CreateObject();
  cJSON_AddStringToObject(o, "name", t->name);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i)
    cJSON_AddNumberToObject(o, numbers[i].key, numbers[i].n);
  cJSON *profiles = cJSON_AddArrayToObject(o, "profiles");
  for (int i = 0; i < t->n_profiles; ++i) cJSON_AddItemToArray(profiles, cJSON_CreateString(t->profile[i]));
  return o;
}
