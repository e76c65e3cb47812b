/* How near the judged outputs came to their bounds, by output and element type. */
#include "report/printed.h"
#include "report/score/cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- collecting ---- */

static fa_score_map *map_of(fa_score_cases *c, const char *output, const char *dtype) {
  for (int i = 0; i < c->n_maps; ++i)
    if (strcmp(c->map[i].output, output) == 0 && strcmp(c->map[i].dtype, dtype) == 0) return &c->map[i];
  fa_score_map *bigger = realloc(c->map, (size_t)(c->n_maps + 1) * sizeof *bigger);
  if (!bigger) return NULL;
  c->map = bigger;
  fa_score_map *map = &c->map[c->n_maps++];
  memset(map, 0, sizeof *map);
  snprintf(map->output, sizeof map->output, "%s", output);
  snprintf(map->dtype, sizeof map->dtype, "%s", dtype);
  return map;
}

static bool push(double **list, int64_t *n, int64_t *room, double x) {
  if (*n == *room) {
    const int64_t more = *room ? 2 * *room : 64;
    double *bigger = realloc(*list, (size_t)more * sizeof *bigger);
    if (!bigger) return false;
    *list = bigger;
    *room = more;
  }
  (*list)[(*n)++] = x;
  return true;
}

/* Infinities and NaN are strings in a report. */
static double value_of(const cJSON *x) {
  if (cJSON_IsNumber(x)) return x->valuedouble;
  return cJSON_IsString(x) && strcmp(x->valuestring, "-inf") == 0 ? -INFINITY : INFINITY;
}

/* Larger first; of equal ones by name, so that the order of reports decides nothing. */
static bool is_worse(const fa_score_point *a, const fa_score_point *b) {
  return a->ratio != b->ratio ? a->ratio > b->ratio : strcmp(a->name, b->name) < 0;
}

static void keep_worst(fa_score_map *map, const fa_score_point *p) {
  int at = map->n_worst < FA_SCORE_WORST ? map->n_worst++ : FA_SCORE_WORST;
  for (; at > 0 && is_worse(p, &map->worst[at - 1]); --at)
    if (at < FA_SCORE_WORST) map->worst[at] = map->worst[at - 1];
  if (at < FA_SCORE_WORST) map->worst[at] = *p;
}

static bool keep_by_feature(fa_score_map *map, const char *word, const fa_score_point *p) {
  for (int i = 0; i < map->n_by; ++i) {
    if (strcmp(map->by[i].word, word) != 0) continue;
    if (is_worse(p, &map->by[i].at)) map->by[i].at = *p;
    return true;
  }
  fa_score_worst *bigger = realloc(map->by, (size_t)(map->n_by + 1) * sizeof *bigger);
  if (!bigger) return false;
  map->by = bigger;
  snprintf(map->by[map->n_by].word, sizeof map->by[0].word, "%s", word);
  map->by[map->n_by++].at = *p;
  return true;
}

static bool keep_by_features(fa_score_map *map, const char *features, const fa_score_point *p) {
  char word[48];
  bool good = true, plain = true;
  for (int i = 0; fa_score_word(features, i, word, sizeof word); ++i) {
    if (fa_score_kind_of(word) != FA_SCORE_FEATURE) continue;
    plain = false;
    good = good && keep_by_feature(map, word, p);
  }
  return good && (!plain || keep_by_feature(map, "plain", p));
}

static void dtype_of(const char *features, char *dtype, size_t size) {
  char word[48];
  snprintf(dtype, size, "?");
  for (int i = 0; fa_score_word(features, i, word, sizeof word); ++i)
    if (fa_score_kind_of(word) == FA_SCORE_DTYPE) snprintf(dtype, size, "%.*s", (int)size - 1, word);
}

fa_status fa_score_map_errors(fa_score_cases *c, const cJSON *entry, const char *features, fa_error *err) {
  const cJSON *ratio;
  char dtype[8];
  dtype_of(features, dtype, sizeof dtype);
  cJSON_ArrayForEach(ratio, fa_report_at(entry, "ratios")) {
    fa_score_map *map = map_of(c, ratio->string, dtype);
    const cJSON *rms = fa_report_at(fa_report_at(entry, "rms"), ratio->string);
    fa_score_point p = {.ratio = value_of(ratio)};
    snprintf(p.name, sizeof p.name, "%s", fa_report_string(entry, "name"));
    bool good = map && push(&map->ratio, &map->n_ratio, &map->room_ratio, p.ratio);
    if (good && rms) good = push(&map->rms, &map->n_rms, &map->room_rms, value_of(rms));
    if (!good || !keep_by_features(map, features, &p)) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
    keep_worst(map, &p);
  }
  return FA_OK;
}

/* ---- as JSON ---- */

static int compare_numbers(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void add_value(cJSON *o, const char *key, double x) {
  char text[40];
  snprintf(text, sizeof text, "%.4g", x);
  if (isfinite(x))
    cJSON_AddRawToObject(o, key, text);
  else
    cJSON_AddStringToObject(o, key, x > 0 ? "inf" : "-inf");
}

/* {"median": 0.31, "worst": 0.94} */
static void add_summary(cJSON *o, const char *key, double *v, int64_t n) {
  if (n == 0) {
    cJSON_AddNullToObject(o, key);
    return;
  }
  cJSON *s = cJSON_AddObjectToObject(o, key);
  qsort(v, (size_t)n, sizeof *v, compare_numbers);
  add_value(s, "median", v[(n - 1) / 2]);
  add_value(s, "worst", v[n - 1]);
}

static void add_point(cJSON *o, const fa_score_point *p) {
  add_value(o, "ratio", p->ratio);
  cJSON_AddStringToObject(o, "case", p->name);
}

static int compare_by(const void *a, const void *b) {
  const fa_score_worst *x = a, *y = b;
  if (is_worse(&x->at, &y->at) != is_worse(&y->at, &x->at)) return is_worse(&x->at, &y->at) ? -1 : 1;
  return strcmp(x->word, y->word);
}

static cJSON *map_json(fa_score_map *map) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddStringToObject(o, "output", map->output);
  cJSON_AddStringToObject(o, "dtype", map->dtype);
  cJSON_AddNumberToObject(o, "cases", (double)map->n_ratio);
  add_summary(o, "ratio", map->ratio, map->n_ratio);
  add_summary(o, "rms", map->rms, map->n_rms);
  cJSON *worst = cJSON_AddArrayToObject(o, "worst");
  for (int i = 0; i < map->n_worst; ++i) {
    cJSON *one = cJSON_CreateObject();
    add_point(one, &map->worst[i]);
    cJSON_AddItemToArray(worst, one);
  }
  cJSON *by = cJSON_AddArrayToObject(o, "by_feature");
  if (map->n_by) qsort(map->by, (size_t)map->n_by, sizeof *map->by, compare_by);
  for (int i = 0; i < map->n_by; ++i) {
    cJSON *one = cJSON_CreateObject();
    cJSON_AddStringToObject(one, "feature", map->by[i].word);
    add_point(one, &map->by[i].at);
    cJSON_AddItemToArray(by, one);
  }
  return o;
}

static int compare_maps(const void *a, const void *b) {
  const fa_score_map *x = a, *y = b;
  const int by_output = strcmp(x->output, y->output);
  return by_output ? by_output : strcmp(x->dtype, y->dtype);
}

cJSON *fa_score_accuracy_json(fa_score_cases *c) {
  cJSON *list = cJSON_CreateArray();
  if (c->n_maps) qsort(c->map, (size_t)c->n_maps, sizeof *c->map, compare_maps);
  for (int i = 0; i < c->n_maps; ++i) cJSON_AddItemToArray(list, map_json(&c->map[i]));
  return list;
}
