#include "fuzz/options/choices.h"

#include "cases/base/edit_distance.h"
#include "cases/vocabulary/law.h"
#include "fuzz/generate/draw.h"
#include "gpu/wall/layers.h"

#include <string.h>

static void add(fa_choices *out, const char *name, size_t n, const char *what) {
  FA_ASSERT(out->n < FA_MAX_CHOICES && n < sizeof out->v[0].name);
  memcpy(out->v[out->n].name, name, n);
  out->v[out->n].name[n] = 0;
  out->v[out->n++].what = what;
}

static void add_listed(fa_choices *out, const char *list) {
  for (const char *name = list; *name; name += name[0] == '|') {
    const size_t n = strcspn(name, "|");
    if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == n) add(out, name, n, NULL);
    name += n;
  }
}

static void add_layers(fa_choices *out) {
  static const char *const of_bench[] = {FA_BENCH_DEFENCES};
  for (int l = 0; l < FA_N_LAYERS; ++l)
    add(out, fa_layers[l].name, strlen(fa_layers[l].name), fa_layers[l].does);
  for (size_t i = 0; i < sizeof of_bench / sizeof *of_bench; ++i)
    add(out, of_bench[i], strlen(of_bench[i]), "of bench");
}

void fa_choices_of(fa_value_kind kind, const char *one_of, const fa_backend *const *backends,
                   fa_choices *out) {
  memset(out, 0, sizeof *out);
  out->is_all =
      kind == FA_VALUE_ONE_OF || kind == FA_VALUE_PROFILE || kind == FA_VALUE_LAW || kind == FA_VALUE_LAYER;
  if (one_of) add_listed(out, one_of);
  if (kind == FA_VALUE_PROFILE)
    for (const fa_generate_profile *p = fa_generate_profiles; p->name; ++p)
      add(out, p->name, strlen(p->name), p->what);
  if (kind == FA_VALUE_LAW)
    for (int k = FA_LAW_NONE + 1; k < FA_N_LAWS; ++k) {
      const fa_law_info *law = fa_law_describe((fa_law)k);
      add(out, law->name, strlen(law->name), law->what);
    }
  if (kind == FA_VALUE_LAYER) add_layers(out);
  if (kind == FA_VALUE_BACKEND)
    for (int i = 0; backends[i]; ++i)
      add(out, backends[i]->name, strlen(backends[i]->name), backends[i]->what);
}

const char *fa_choices_nearest(const fa_choices *choices, const char *given) {
  fa_nearest nearest = fa_nearest_to(given);
  for (int i = 0; i < choices->n; ++i) fa_nearest_look(&nearest, choices->v[i].name);
  return nearest.name;
}

int fa_choices_check(const fa_choices *choices, const char *what, const char *given) {
  char list[1024] = "";
  for (int i = 0; i < choices->n; ++i) {
    if (strcmp(choices->v[i].name, given) == 0) return 0;
    const size_t n = strlen(list);
    snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", choices->v[i].name);
  }
  const char *nearest = fa_choices_nearest(choices, given);
  return choices->is_all
             ? fa_cli_usage_error("%s %s: there is none%s%s; there are: %s", what, given,
                                  nearest ? "; the nearest is " : "", nearest ? nearest : "", list)
             : 0;
}
