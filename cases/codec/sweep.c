/* "sweeps": the Cartesian product of the values under "over", applied to a base; the last key varies fastest.
 * A key of "over" is a key of a case, or a dotted key inside an object: "mask.type", "kvcache.rotary.dim". */
#include "cases/codec/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(e)                                                                                               \
  do {                                                                                                       \
    fa_status try_status = (e);                                                                              \
    if (try_status != FA_OK) return try_status;                                                              \
  } while (0)

#define MAX_KEY 200 /* bytes of a dotted key */

typedef struct axis {
  const cJSON *values; /* the array */
  const cJSON *value;  /* its current element */
  int64_t index;
} axis;

typedef struct sweep {
  fa_case_file *f;
  const char *base; /* "$.sweeps[0]" */
  char base_path[80], over_path[80];
  const cJSON *base_object; /* or NULL */
  axis *axis;
  int64_t n_axes;
  char stem[FA_MAX_NAME_CHARACTERS]; /* of the names */
} sweep;

/* ---- reading ---- */

static fa_status read_base(fa_case_reader *r, const cJSON *v) {
  (void)r, (void)v; /* fa_case_file_check_part checks it */
  return FA_OK;
}

static fa_status read_over(fa_case_reader *r, const cJSON *v) {
  char buffer[80];
  if (!cJSON_IsObject(v)) return fa_read_fail(r, true, "%s is not an object", fa_read_describe(v, buffer));
  if (!v->child) return fa_read_fail(r, true, "an empty object; a sweep needs keys");
  for (const cJSON *e = v->child; e; e = e->next) {
    char top[64];
    size_t n = strcspn(e->string, ".");
    snprintf(top, sizeof top, "%.*s", (int)n, e->string);
    if (n >= sizeof top || strlen(e->string) > MAX_KEY || !fa_read_find_key(fa_case_keys, top))
      return fa_read_unknown_key(r, e->string, fa_case_keys);
    size_t mark = fa_read_push(r, e->string);
    if (strcmp(e->string, "name") == 0)
      return fa_read_fail(r, true, "the name cannot be swept; names are made from the swept values");
    if (!cJSON_IsArray(e))
      return fa_read_fail(r, true, "%s is not an array of values", fa_read_describe(e, buffer));
    if (!e->child) return fa_read_fail(r, true, "an empty array; a sweep needs values");
    fa_read_pop(r, mark);
  }
  return FA_OK;
}

static const fa_case_key sweep_keys[] = {{"base", read_base}, {"over", read_over}, {0}};

static fa_status count_cases(sweep *s, int64_t *n) {
  *n = 1;
  for (int64_t i = 0; i < s->n_axes; ++i)
    if (__builtin_mul_overflow(*n, (int64_t)cJSON_GetArraySize(s->axis[i].values), n)) {
      *n = INT64_MAX;
      break;
    }
  return fa_case_file_plan(s->f, s->base, *n);
}

/* Rejects "mask" and "mask.type" in one sweep, because their order would matter. */
static fa_status check_overlap(sweep *s) {
  for (int64_t i = 0; i < s->n_axes; ++i)
    for (int64_t j = 0; j < s->n_axes; ++j) {
      const char *a = s->axis[i].values->string, *b = s->axis[j].values->string;
      size_t n = strlen(a);
      if (strncmp(a, b, n) == 0 && b[n] == '.')
        return fa_case_file_fail(s->f, false, "%s: \"%s\" is inside \"%s\", which is swept too", s->over_path,
                                 b, a);
    }
  return FA_OK;
}

/* ---- dotted keys ---- */

/* Sets a dotted key inside object to a copy of value, creating objects on the way. Other missing keys are
 * reported when the case is read. */
static bool set_inside(cJSON *object, const char *key, const cJSON *value) {
  char step[MAX_KEY + 1];
  const char *dot = strchr(key, '.');
  snprintf(step, sizeof step, "%.*s", (int)(dot ? dot - key : (long)strlen(key)), key);
  cJSON *old = cJSON_GetObjectItemCaseSensitive(object, step);
  if (dot && cJSON_IsObject(old)) return set_inside(old, dot + 1, value);
  if (old) cJSON_DeleteItemFromObjectCaseSensitive(object, step);
  cJSON *item = dot ? cJSON_CreateObject() : cJSON_Duplicate(value, 1);
  if (!item || !cJSON_AddItemToObject(object, step, item)) {
    cJSON_Delete(item);
    return false;
  }
  return dot ? set_inside(item, dot + 1, value) : true;
}

/* The first part of a dotted key must be a key whose value is an object: tries an empty object. */
static fa_status check_top(sweep *s, const char *key, const char *top) {
  cJSON *empty = cJSON_CreateObject();
  fa_case_field field = {top, empty, s->over_path, -1};
  fa_case_reader r;
  fa_error ignored;
  fa_status status = empty ? fa_case_reader_init(&r, "$", &ignored) : FA_ERR_MEMORY;
  if (status == FA_OK) {
    r.field = &field;
    r.n_fields = 1;
    status = fa_case_reader_read(&r);
    fa_case_reader_free(&r);
  }
  cJSON_Delete(empty);
  if (status == FA_ERR_MEMORY) return fa_fail(s->f->err, status, "out of memory");
  if (status == FA_OK) return FA_OK;
  return fa_case_file_fail(s->f, true, "%s[\"%s\"]: %s is not an object, nothing is inside it", s->over_path,
                           key, top);
}

/* Checks one value under a dotted key as the only content of its object. */
static fa_status check_dotted(sweep *s, const axis *a, const cJSON *value, int64_t index) {
  char top[64];
  const char *key = a->values->string;
  snprintf(top, sizeof top, "%.*s", (int)strcspn(key, "."), key);
  TRY(check_top(s, key, top));
  cJSON *object = cJSON_CreateObject();
  bool made = object && set_inside(object, key, value);
  fa_case_field field[] = {{top, made ? object->child : NULL, s->over_path, -1},
                           {key, NULL, s->over_path, index}};
  fa_case_reader r;
  fa_status status = made ? fa_case_reader_init(&r, s->base_path, s->f->err)
                          : fa_fail(s->f->err, FA_ERR_MEMORY, "out of memory");
  if (status == FA_OK) {
    r.field = field;
    r.n_fields = 2;
    status = fa_case_reader_read(&r);
    s->f->structural = r.structural;
    fa_case_reader_free(&r);
  }
  cJSON_Delete(object);
  return status;
}

static fa_status check_all_dotted(sweep *s) {
  for (int64_t i = 0; i < s->n_axes; ++i) {
    int64_t index = 0;
    if (!strchr(s->axis[i].values->string, '.')) continue;
    for (const cJSON *e = s->axis[i].values->child; e; e = e->next, ++index)
      TRY(check_dotted(s, &s->axis[i], e, index));
  }
  return FA_OK;
}

/* ---- one combination ---- */

/* Appends text to name only if it fits whole: names are UTF-8 and have a limit. */
static void append(char *name, size_t size, const char *text) {
  size_t n = strlen(name), length = strlen(text);
  if (n + length < size) memcpy(name + n, text, length + 1);
}

/* Appends "key=value"; a value with a long text is named by its index in the array. */
static fa_status name_value(const axis *a, char *name, size_t size, fa_error *err) {
  char value[64];
  char *text = cJSON_IsString(a->value) ? strdup(a->value->valuestring) : cJSON_PrintUnformatted(a->value);
  if (!text) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  if (strlen(text) > 48)
    snprintf(value, sizeof value, "#%lld", (long long)a->index);
  else {
    size_t n = 0;
    for (const char *c = text; *c; ++c)
      if (*c != '"') value[n++] = *c;
    value[n] = 0;
  }
  free(text);
  append(name, size, a->values->string);
  append(name, size, "=");
  append(name, size, value);
  return FA_OK;
}

/* The fields of one combination. Dotted keys change copies of the objects that they are in; *copies owns
 * those. field needs room for one entry per key of base and defaults, and two per axis. */
static fa_status combine(sweep *s, fa_case_field *field, int64_t *n, cJSON *copies) {
  int64_t n_axes = s->n_axes;
  *n = 0;
  for (int64_t i = 0; i < n_axes; ++i) {
    const axis *a = &s->axis[i];
    if (!strchr(a->values->string, '.'))
      field[(*n)++] = (fa_case_field){a->values->string, a->value, s->over_path, a->index};
  }
  fa_case_fields_add(field, n, s->base_object, s->base_path);
  fa_case_fields_add(field, n, s->f->defaults, "$.defaults");
  for (int64_t i = 0; i < n_axes; ++i) {
    const axis *a = &s->axis[i];
    const char *key = a->values->string, *dot = strchr(key, '.');
    if (!dot) continue;
    char top[64];
    int64_t at = 0;
    snprintf(top, sizeof top, "%.*s", (int)(dot - key), key);
    while (at < *n && (!field[at].value || strcmp(field[at].key, top) != 0)) ++at;
    cJSON *object = cJSON_GetObjectItemCaseSensitive(copies, top);
    if (!object) {
      object = at < *n ? cJSON_Duplicate(field[at].value, 1) : cJSON_CreateObject();
      if (!object || !cJSON_AddItemToObject(copies, top, object)) {
        cJSON_Delete(object);
        return fa_fail(s->f->err, FA_ERR_MEMORY, "out of memory");
      }
    }
    if (!cJSON_IsObject(object))
      return fa_case_file_fail(s->f, false, "%s: \"%s\": the base's \"%s\" is not an object", s->over_path,
                               key, top);
    if (!set_inside(object, dot + 1, a->value)) return fa_fail(s->f->err, FA_ERR_MEMORY, "out of memory");
    if (at == *n) field[(*n)++] = (fa_case_field){object->string, object, s->base_path, -1};
    field[at].value = object;
    field[(*n)++] = (fa_case_field){key, NULL, s->over_path, a->index};
  }
  return FA_OK;
}

static fa_status add_combination(sweep *s, fa_case_field *field) {
  char name[sizeof s->stem];
  int64_t n;
  snprintf(name, sizeof name, "%s", s->stem);
  for (int64_t i = 0; i < s->n_axes; ++i) {
    append(name, sizeof name, i ? "," : "/");
    TRY(name_value(&s->axis[i], name, sizeof name, s->f->err));
  }
  cJSON *copies = cJSON_CreateObject();
  if (!copies) return fa_fail(s->f->err, FA_ERR_MEMORY, "out of memory");
  fa_status status = combine(s, field, &n, copies);
  if (status == FA_OK) status = fa_case_file_add(s->f, s->base, field, n, name);
  cJSON_Delete(copies);
  return status;
}

/* Goes to the next combination; false after the last. */
static bool advance(sweep *s) {
  for (int64_t i = s->n_axes - 1; i >= 0; --i) {
    axis *a = &s->axis[i];
    a->value = a->value->next;
    ++a->index;
    if (a->value) return true;
    a->value = a->values->child;
    a->index = 0;
  }
  return false;
}

/* Sets "square", or the file's stem and the sweep's number if neither base nor defaults give a name. */
static void set_stem(sweep *s) {
  const cJSON *name = cJSON_GetObjectItemCaseSensitive(s->base_object, "name");
  if (!name) name = cJSON_GetObjectItemCaseSensitive(s->f->defaults, "name");
  if (cJSON_IsString(name) && *name->valuestring)
    snprintf(s->stem, sizeof s->stem, "%.400s", name->valuestring);
  else
    snprintf(s->stem, sizeof s->stem, "%.200s/%s", s->f->stem, s->base + 2);
}

static fa_status expand(sweep *s) {
  int64_t n, n_keys = 1;
  TRY(check_all_dotted(s));
  TRY(check_overlap(s));
  TRY(count_cases(s, &n));
  set_stem(s);
  for (int64_t i = 0; i < s->n_axes; ++i) s->axis[i].value = s->axis[i].values->child;
  if (s->base_object) n_keys += cJSON_GetArraySize(s->base_object);
  if (s->f->defaults) n_keys += cJSON_GetArraySize(s->f->defaults);
  fa_case_field *field = calloc((size_t)(n_keys + 2 * s->n_axes), sizeof *field);
  if (!field) return fa_fail(s->f->err, FA_ERR_MEMORY, "out of memory");
  fa_status status;
  do status = add_combination(s, field);
  while (status == FA_OK && advance(s));
  free(field);
  return status;
}

fa_status fa_case_file_sweep(fa_case_file *f, const char *base, const cJSON *object) {
  sweep s = {.f = f, .base = base};
  fa_case_reader r = {.base = base, .err = f->err};
  fa_status status = fa_read_object(&r, object, sweep_keys);
  const cJSON *over = cJSON_GetObjectItemCaseSensitive(object, "over");
  if (status == FA_OK && !over) status = fa_read_fail(&r, true, "\"over\" is missing");
  f->structural = r.structural;
  TRY(status);
  snprintf(s.base_path, sizeof s.base_path, "%s.base", base);
  snprintf(s.over_path, sizeof s.over_path, "%s.over", base);
  s.base_object = cJSON_GetObjectItemCaseSensitive(object, "base");
  if (s.base_object) TRY(fa_case_file_check_part(f, s.base_path, s.base_object));
  s.axis = calloc((size_t)cJSON_GetArraySize(over) + 1, sizeof *s.axis);
  if (!s.axis) return fa_fail(f->err, FA_ERR_MEMORY, "out of memory");
  for (const cJSON *e = over->child; e; e = e->next) s.axis[s.n_axes++].values = e;
  status = expand(&s);
  free(s.axis);
  return status;
}
