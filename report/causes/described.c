#include "report/causes/described.h"

#include "report/causes/shape.h"
#include "report/printed.h"
#include "report/text/line.h"
#include "report/text/words.h"

#include "cases/codec/json.h"

#include <cjson/cJSON.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALTERNATIVES = 3, NAMES = 20, TEXT = 512 };

static cJSON *get(const cJSON *o, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(o, key);
}

static void add_text(cJSON *list, const char *text) {
  cJSON_AddItemToArray(list, cJSON_CreateString(text));
}

/* ---- what is wrong ---- */

/* The failure whose class most of the group have, the first of several. */
static int64_t usual_member(const fa_cause_groups *g, const fa_cause_group *group) {
  enum { CLASSES = 64 };
  int64_t first[CLASSES], count[CLASSES], best = 0;
  int n = 0;
  for (int64_t i = 0; i < fa_cause_rows_failing(g->rows); ++i) {
    int k = 0;
    if (!fa_bit(group->member, i)) continue;
    while (k < n && !fa_failure_class_equal(&g->failure[first[k]].class, &g->failure[i].class)) ++k;
    if (k == CLASSES) continue;
    if (k == n) first[n] = i, count[n++] = 0;
    if (++count[k] > count[best]) best = k;
  }
  return first[best];
}

/* The text that most explanations by the group's hypothesis have: "one key short" and "two keys short" are one. */
static const char *usual_text(const fa_cause_groups *g, const fa_cause_group *group) {
  enum { TEXTS = 64 };
  const char *text[TEXTS];
  int64_t count[TEXTS];
  int n = 0, best = 0;
  for (int64_t i = 0; i < fa_cause_rows_failing(g->rows); ++i)
    for (int e = 0; fa_bit(group->member, i) && e < g->failure[i].n_explanations; ++e) {
      int k = 0;
      if (strcmp(g->failure[i].hypothesis[e], group->hypothesis) != 0) continue;
      while (k < n && strcmp(text[k], g->failure[i].text[e]) != 0) ++k;
      if (k == TEXTS) continue;
      if (k == n) text[n] = g->failure[i].text[e], count[n++] = 0;
      if (++count[k] > count[best]) best = k;
    }
  return n && text[best][0] ? text[best] : group->hypothesis;
}

static fa_tensor_bits tensors_of(const fa_cause_groups *g, const fa_cause_group *group, double *worst) {
  fa_tensor_bits which = 0;
  *worst = 0;
  for (int64_t i = 0; i < fa_cause_rows_failing(g->rows); ++i) {
    if (!fa_bit(group->member, i)) continue;
    which |= g->failure[i].tensors;
    if (g->failure[i].worst_ratio > *worst) *worst = g->failure[i].worst_ratio;
  }
  return which;
}

/* "FAIL: o outside its bound", and "; also dq dk" if other tensors are wrong too. */
static void add_what(cJSON *o, const fa_cause_groups *g, const fa_cause_group *group) {
  char class[128], title[TEXT];
  double worst;
  const fa_tensor_bits tensors = tensors_of(g, group, &worst);
  const fa_failure_class *usual = &g->failure[usual_member(g, group)].class;
  fa_failure_class_text(usual, class, sizeof class);
  size_t used = (size_t)snprintf(title, sizeof title, "%s", class);
  bool more = false;
  for (int id = 0; id < FA_T_COUNT && used < sizeof title; ++id) {
    if (!(tensors >> id & 1) || (fa_tensor_id)id == usual->tensor) continue;
    used += (size_t)snprintf(title + used, sizeof title - used, "%s%s", more ? " " : "; also ",
                             fa_tensor_id_name((fa_tensor_id)id));
    more = true;
  }
  cJSON_AddStringToObject(o, "title", group->hypothesis[0] ? usual_text(g, group) : title);
  cJSON_AddStringToObject(o, "hypothesis", group->hypothesis);
  cJSON_AddStringToObject(o, "class", class);
  cJSON *names = cJSON_AddArrayToObject(o, "tensors");
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (tensors >> id & 1) add_text(names, fa_tensor_id_name((fa_tensor_id)id));
  if (isfinite(worst))
    cJSON_AddNumberToObject(o, "worst_ratio", worst);
  else
    cJSON_AddStringToObject(o, "worst_ratio", "inf");
}

/* ---- which failures ---- */

/* The place of every failure in the report, by the failing row; -1 without a report. */
static int64_t *places_of(const fa_cause_groups *g, const cJSON *failures) {
  const int64_t n = fa_cause_rows_failing(g->rows);
  int64_t *place = malloc((size_t)(n + 1) * sizeof *place), at = 0, row = 0;
  const cJSON *f;
  for (int64_t i = 0; place && i < n; ++i) place[i] = g->failure[i].place;
  if (!place) return NULL;
  cJSON_ArrayForEach(f, failures) {
    if (row < n && g->failure[row].entry == f) place[row++] = at; /* both are in the order of the run */
    ++at;
  }
  return place;
}

static void add_members(cJSON *o, const fa_cause_groups *g, const fa_cause_group *group,
                        const int64_t *place) {
  cJSON *places = cJSON_AddArrayToObject(o, "failures"), *names = cJSON_AddArrayToObject(o, "names");
  int n = 0;
  for (int64_t i = 0; i < fa_cause_rows_failing(g->rows); ++i) {
    if (!fa_bit(group->member, i)) continue;
    if (place[i] >= 0) cJSON_AddItemToArray(places, cJSON_CreateNumber((double)place[i]));
    if (n++ < NAMES) add_text(names, g->failure[i].name);
  }
  cJSON_AddNumberToObject(o, "count", (double)group->n);
}

/* ---- what its cases have in common ---- */

static const char *kind_of(const fa_cause_groups *g, const fa_predicate *p) {
  const int64_t judged = fa_cause_rows_failing(g->rows) + fa_cause_rows_passing(g->rows);
  if (p->n == 0 && (double)p->failing >= 0.9 * (double)judged) return "every";
  return fa_cause_separates(p) ? "separates" : "none";
}

static void add_predicate(cJSON *o, const fa_cause_groups *g, const fa_cause_group *group) {
  char text[TEXT];
  const fa_fit fit = fa_cause_fit(g, group);
  fa_predicate p = group->predicate, other[ALTERNATIVES];
  fa_fit_evaluate(&fit, &p);
  fa_predicate_text(g->rows, &p, text, sizeof text);
  cJSON *to = cJSON_AddObjectToObject(o, "predicate");
  cJSON_AddStringToObject(to, "kind", kind_of(g, &p));
  cJSON_AddStringToObject(to, "text", text);
  cJSON *literals = cJSON_AddArrayToObject(to, "literals");
  for (int i = 0; i < p.n; ++i) {
    fa_predicate_say(g->rows, &p, i, text, sizeof text);
    add_text(literals, text);
  }
  cJSON_AddNumberToObject(to, "failing", (double)p.failing);
  cJSON_AddNumberToObject(to, "failing_of", (double)group->n);
  cJSON_AddNumberToObject(to, "others", (double)p.others);
  cJSON_AddNumberToObject(to, "others_of", (double)fa_cause_rows_passing(g->rows));
  cJSON_AddNumberToObject(to, "other_failures", (double)p.other_failures);
  cJSON *alternatives = cJSON_AddArrayToObject(o, "alternatives");
  const int n = fa_fit_alternatives(&fit, &p, other, ALTERNATIVES);
  for (int i = 0; i < n; ++i) {
    fa_predicate_text(g->rows, &other[i], text, sizeof text);
    add_text(alternatives, text);
  }
}

/* ---- the smallest case ---- */

double fa_cause_work_of_shrunk(const cJSON *shrunk) {
  fa_shape s;
  fa_case c;
  const cJSON *recipe = get(shrunk, "case");
  if (!recipe || fa_case_from_json(recipe, "$", &c, NULL) != FA_OK) return HUGE_VAL;
  fa_shape_of(&c, &s);
  fa_case_free(&c);
  return fa_shape_work(&s);
}

/* Shrunk cases come before all others, and those whose recipe is known before those whose is not. */
static int64_t smallest_of(const fa_cause_groups *g, const fa_cause_group *group) {
  int64_t best = -1;
  double least = 0;
  int rank_of_best = -1;
  for (int64_t i = 0; i < fa_cause_rows_failing(g->rows); ++i) {
    const fa_cause_failure *f = &g->failure[i];
    if (!fa_bit(group->member, i)) continue;
    const cJSON *found = get(f->entry, "shrunk");
    const bool shrunk = found || f->shrunk;
    const int rank = shrunk ? 2 : f->entry || f->place >= 0 || f->recipe;
    const double work = found ? fa_cause_work_of_shrunk(found) : shrunk ? f->shrunk_work : f->work;
    if (best >= 0 && (rank < rank_of_best || (rank == rank_of_best && work >= least))) continue;
    best = i;
    least = work;
    rank_of_best = rank;
  }
  return best;
}

/* What to type without a report. */
static char *command_of(const fa_cause_failure *f, const cJSON *recipe, const fa_cause_description *about) {
  char *text = NULL, *line = recipe ? cJSON_PrintUnformatted(recipe) : f->recipe ? strdup(f->recipe) : NULL;
  size_t n = 0;
  FILE *out = line ? open_memstream(&text, &n) : NULL;
  if (!out) {
    free(line);
    return NULL;
  }
  fa_print_shell_word(out, about->program ? about->program : "fa-verify");
  fprintf(out, " run %s%s--backend ", about->mode ? about->mode : "", about->mode ? " " : "");
  fa_print_shell_word(out, f->backend);
  if (f->schedule_seed) fprintf(out, " --schedule-seed %llu", (unsigned long long)f->schedule_seed);
  fa_print_sample(out, &f->sample);
  fputs(" --case ", out);
  fa_print_shell_word(out, line);
  fclose(out);
  free(line);
  return text;
}

static void add_repro(cJSON *o, const fa_cause_failure *f, const cJSON *entry, int64_t place,
                      const fa_cause_description *about) {
  char text[4400];
  const cJSON *shrunk = get(entry, "shrunk"), *best = shrunk ? shrunk : entry;
  const char *file = fa_report_string(entry, "file"), *own = fa_report_string(best, "repro");
  char *command = about->path && place >= 0 ? NULL : command_of(f, get(best, "case"), about);
  text[0] = 0;
  if (*file)
    snprintf(text, sizeof text, "fa-verify check %s", file);
  else if (about->path && place >= 0)
    snprintf(text, sizeof text, "fa-verify repro %s:%lld%s", about->path, (long long)place,
             shrunk ? ".shrunk" : "");
  cJSON_AddStringToObject(o, "repro", text[0] ? text : *own ? own : command ? command : "");
  free(command);
}

static void add_smallest(cJSON *o, const fa_cause_groups *g, const fa_cause_group *group,
                         const int64_t *place, const fa_cause_description *about) {
  const int64_t i = smallest_of(g, group);
  const fa_cause_failure *f = &g->failure[i];
  cJSON *again = !f->entry && f->place >= 0 && about->read ? about->read(about->ctx, f->place) : NULL;
  const cJSON *entry = again ? again : f->entry, *shrunk = get(entry, "shrunk"),
              *recipe = get(shrunk ? shrunk : entry, "case");
  cJSON *to = cJSON_AddObjectToObject(o, "smallest");
  cJSON_AddStringToObject(to, "name", f->name);
  cJSON_AddNumberToObject(to, "failure", (double)place[i]);
  cJSON_AddBoolToObject(to, "shrunk", shrunk != NULL);
  cJSON *copy = recipe ? cJSON_Duplicate(recipe, 1) : f->recipe ? cJSON_Parse(f->recipe) : NULL;
  if (copy) cJSON_AddItemToObject(to, "case", copy);
  add_repro(o, f, entry, place[i], about);
  cJSON_Delete(again);
}

cJSON *fa_cause_describe(const fa_cause_groups *g, const fa_cause_description *about) {
  int64_t *place = places_of(g, about->failures);
  cJSON *groups = place ? cJSON_CreateArray() : NULL;
  for (int k = 0; groups && k < g->n; ++k) {
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "id", k + 1);
    add_what(o, g, &g->v[k]);
    add_members(o, g, &g->v[k], place);
    add_predicate(o, g, &g->v[k]);
    add_smallest(o, g, &g->v[k], place, about);
    cJSON_AddItemToArray(groups, o);
  }
  free(place);
  return groups;
}
