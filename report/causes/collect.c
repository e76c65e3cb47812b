#include "report/causes/collect.h"

#include "report/causes/described.h"
#include "report/causes/group.h"
#include "report/causes/shape.h"
#include "report/printed.h"
#include "report/sampling/record.h"

#include "cases/codec/json.h"

#include <cjson/cJSON.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A campaign may run for days: passing cases after so many, and recipes after so many bytes, are not kept. */
enum { MOST_PASSING = 1 << 21, MOST_RECIPE_BYTES = 1 << 26 };

struct fa_causes {
  fa_cause_rows *rows;
  fa_cause_failure *failure; /* owned: of each failing row */
  int64_t n, capacity;
  size_t recipe_bytes;
  const char *mode;
};

fa_causes *fa_causes_make(void) {
  fa_causes *c = calloc(1, sizeof *c);
  if (c) c->rows = fa_cause_rows_make();
  if (c && c->rows) return c;
  free(c);
  return NULL;
}

void fa_causes_set_mode(fa_causes *c, const char *mode) {
  c->mode = mode;
}

static void failure_free(fa_cause_failure *f) {
  free(f->name);
  free(f->recipe);
  free(f->backend);
}

void fa_causes_free(fa_causes *c) {
  if (!c) return;
  for (int64_t i = 0; i < c->n; ++i) failure_free(&c->failure[i]);
  free(c->failure);
  fa_cause_rows_free(c->rows);
  free(c);
}

static fa_status out_of_memory(fa_error *err) {
  return fa_fail(err, FA_ERR_MEMORY, "groups of failures: out of memory");
}

/* ---- a failure ---- */

static fa_cause_failure *next_failure(fa_causes *c) {
  if (c->n == c->capacity) {
    const int64_t capacity = c->capacity ? 2 * c->capacity : 16;
    fa_cause_failure *more = realloc(c->failure, (size_t)capacity * sizeof *more);
    if (!more) return NULL;
    c->failure = more;
    c->capacity = capacity;
  }
  c->failure[c->n] = (fa_cause_failure){.place = -1};
  return &c->failure[c->n];
}

static void keep_recipe(fa_causes *c, fa_cause_failure *f, const char *recipe) {
  const size_t n = strlen(recipe);
  if (c->recipe_bytes + n > MOST_RECIPE_BYTES) return;
  f->recipe = strdup(recipe);
  c->recipe_bytes += n;
}

static void take_result(fa_causes *c, fa_cause_failure *f, const fa_result *r) {
  f->name = strdup(r->name ? r->name : "");
  f->backend = strdup(r->backend);
  f->class = fa_failure_class_of(r);
  f->tensors = fa_failure_tensors(r);
  f->schedule_seed = r->schedule_seed;
  f->sample = r->sampled.asked;
  f->worst_ratio = r->worst_ratio;
  f->n_explanations = r->n_explanations;
  for (int i = 0; i < r->n_explanations; ++i) {
    memcpy(f->hypothesis[i], r->explanation[i].hypothesis, sizeof f->hypothesis[i]);
    memcpy(f->text[i], r->explanation[i].text, sizeof f->text[i]);
  }
  if (!f->entry && r->case_line && !r->file[0]) keep_recipe(c, f, r->case_line);
}

static void take_explanations(fa_cause_failure *f, const cJSON *list) {
  const cJSON *one;
  cJSON_ArrayForEach(one, list) {
    const char *hypothesis = fa_report_string(one, "hypothesis");
    if (f->n_explanations == FA_EXPLANATIONS || !*hypothesis) continue;
    snprintf(f->hypothesis[f->n_explanations], sizeof f->hypothesis[0], "%s", hypothesis);
    snprintf(f->text[f->n_explanations++], sizeof f->text[0], "%s", fa_report_string(one, "text"));
  }
}

/* Numbers may be text here, see fa_report_keep_digits. */
static double any_number(const cJSON *o, const char *key) {
  const cJSON *n = cJSON_GetObjectItemCaseSensitive(o, key);
  return cJSON_IsNumber(n) ? n->valuedouble : n && n->valuestring ? strtod(n->valuestring, NULL) : 0;
}

static void take_entry(fa_cause_failure *f, const cJSON *entry, const cJSON *failure) {
  const cJSON *t;
  f->name = strdup(fa_report_string(entry, "name"));
  f->backend = strdup(fa_report_string(entry, "backend"));
  f->entry = failure;
  f->worst_ratio = any_number(entry, "worst_ratio");
  f->schedule_seed = strtoull(fa_report_string(failure, "schedule_seed"), NULL, 10);
  fa_sampled_read(failure, &f->sample, NULL); /* without one it was all judged */
  if (!fa_failure_class_from_json(failure, &f->class)) {
    f->class = (fa_failure_class){.tensor = FA_T_COUNT};
    fa_state_from_name(fa_report_string(entry, "state"), &f->class.state);
  }
  cJSON_ArrayForEach(t, cJSON_GetObjectItemCaseSensitive(failure, "tensors")) {
    if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(t, "failed"))) continue;
    for (int id = 0; id < FA_T_COUNT; ++id)
      if (strcmp(fa_tensor_id_name((fa_tensor_id)id), fa_report_string(t, "name")) == 0)
        f->tensors |= FA_TENSOR_BIT(id);
  }
  take_explanations(f, cJSON_GetObjectItemCaseSensitive(failure, "explained_by"));
}

/* ---- noting ---- */

static bool counts(fa_state state, bool waived, const fa_causes *c) {
  if (waived) return false;
  return fa_state_is_failure(state) || (state == FA_PASS && fa_cause_rows_passing(c->rows) < MOST_PASSING);
}

/* The work of a case whose report does not tell its shape, from its recipe. */
static double work_of(const char *text, const cJSON *failure) {
  fa_shape s;
  fa_case c;
  const cJSON *recipe = cJSON_GetObjectItemCaseSensitive(failure, "case");
  if (fa_shape_parse(text, &s)) return fa_shape_work(&s);
  if (!recipe || fa_case_from_json(recipe, "$", &c, NULL) != FA_OK) return HUGE_VAL;
  fa_shape_of(&c, &s);
  fa_case_free(&c);
  return fa_shape_work(&s);
}

static fa_status note(fa_causes *c, fa_cause_failure *f, const cJSON *failure, const fa_cause_facts *facts,
                      fa_error *err) {
  if (f && (!f->name || !f->backend)) return out_of_memory(err);
  if (fa_cause_rows_add(c->rows, f != NULL, facts) != FA_OK) return out_of_memory(err);
  if (f) f->work = work_of(facts->shape, failure);
  if (f) ++c->n;
  return FA_OK;
}

fa_status fa_causes_note(fa_causes *c, const fa_result *r, const cJSON *failure, fa_error *err) {
  const fa_cause_facts facts = {.features = r->features,
                                .shape = r->shape,
                                .kernel = r->kernel,
                                .backward_kernel = r->backward_kernel,
                                .backend = r->backend,
                                .backward_left_out = r->backward_left_out};
  if (!counts(r->state, r->waived, c)) return FA_OK;
  if (!fa_state_is_failure(r->state)) return note(c, NULL, NULL, &facts, err);
  fa_cause_failure *f = next_failure(c);
  if (!f) return out_of_memory(err);
  f->entry = failure;
  take_result(c, f, r);
  return note(c, f, failure, &facts, err);
}

fa_status fa_causes_note_entry(fa_causes *c, const cJSON *entry, const cJSON *failure, fa_error *err) {
  fa_state state = FA_ERROR;
  const fa_cause_facts facts = {
      .features = fa_report_string(entry, "features"),
      .shape = fa_report_string(entry, "shape"),
      .kernel = fa_report_string(entry, "kernel"),
      .backward_kernel = fa_report_string(entry, "backward_kernel"),
      .backend = fa_report_string(entry, "backend"),
      .backward_left_out = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(entry, "backward_left_out"))};
  fa_state_from_name(fa_report_string(entry, "state"), &state);
  if (!counts(state, cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(entry, "waived")), c)) return FA_OK;
  if (!fa_state_is_failure(state)) return note(c, NULL, NULL, &facts, err);
  fa_cause_failure *f = next_failure(c);
  if (!f) return out_of_memory(err);
  take_entry(f, entry, failure);
  return note(c, f, failure, &facts, err);
}

fa_status fa_causes_note_passing_by(fa_causes *c, const cJSON *entry, const cJSON *failure, int64_t place,
                                    fa_error *err) {
  const int64_t before = c->n;
  const fa_status status = fa_causes_note_entry(c, entry, failure, err);
  if (status != FA_OK || c->n == before || !failure) return status;
  fa_cause_failure *f = &c->failure[before];
  const cJSON *shrunk = cJSON_GetObjectItemCaseSensitive(failure, "shrunk");
  f->entry = NULL;
  f->place = place;
  f->shrunk = shrunk != NULL;
  f->shrunk_work = f->shrunk ? fa_cause_work_of_shrunk(shrunk) : 0;
  return FA_OK;
}

fa_status fa_causes_note_report(fa_causes *c, const cJSON *root, fa_error *err) {
  const cJSON *failures = cJSON_GetObjectItemCaseSensitive(root, "failures"), *entry;
  const cJSON *failure = failures ? failures->child : NULL;
  fa_status status = FA_OK;
  cJSON_ArrayForEach(entry, cJSON_GetObjectItemCaseSensitive(root, "cases")) {
    const bool good = fa_report_is_good(entry);
    if (status == FA_OK) status = fa_causes_note_entry(c, entry, good ? NULL : failure, err);
    if (!good && failure) failure = failure->next;
  }
  return status;
}

static fa_status conclude(fa_causes *c, const fa_cause_description *about, cJSON **groups, fa_error *err) {
  fa_cause_groups g;
  *groups = NULL;
  fa_status status = fa_cause_rows_close(c->rows);
  if (status == FA_OK) {
    status = fa_cause_groups_make(&g, c->rows, c->failure);
    if (status == FA_OK) *groups = fa_cause_describe(&g, about);
    fa_cause_groups_free(&g);
  }
  return *groups ? FA_OK : out_of_memory(err);
}

fa_status fa_causes_conclude(fa_causes *c, const cJSON *failures, const char *path, const char *program,
                             cJSON **groups, fa_error *err) {
  const fa_cause_description about = {
      .failures = failures, .path = path, .program = program, .mode = c->mode};
  return conclude(c, &about, groups, err);
}

fa_status fa_causes_conclude_read(fa_causes *c, cJSON *(*read)(void *ctx, int64_t place), void *ctx,
                                  const char *program, cJSON **groups, fa_error *err) {
  const fa_cause_description about = {.program = program, .mode = c->mode, .read = read, .ctx = ctx};
  return conclude(c, &about, groups, err);
}
