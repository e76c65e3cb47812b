/* Case files: {"fa_cases": 1, "defaults", "cases", "sweeps", "random"}, a single bare case object, or JSON
 * lines of bare case objects. */
#include "cases/codec/file.h"
#include "cases/base/json.h"
#include "cases/codec/read.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(e)                                                                                               \
  do {                                                                                                       \
    fa_status try_status = (e);                                                                              \
    if (try_status != FA_OK) return try_status;                                                              \
  } while (0)

fa_status fa_case_file_fail(fa_case_file *f, bool structural, const char *format, ...) {
  char what[sizeof f->err->text];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  f->structural = structural;
  return fa_fail(f->err, FA_ERR_INPUT, "%s", what);
}

/* ---- cases ---- */

fa_status fa_case_file_plan(fa_case_file *f, const char *base, int64_t n) {
  if (n <= FA_MAX_FILE_CASES - f->n_planned) {
    f->n_planned += n;
    return FA_OK;
  }
  return fa_case_file_fail(f, false, "%s: with its %lld cases the file has more than %d", base, (long long)n,
                           FA_MAX_FILE_CASES);
}

/* Heap memory that the case owns. */
static int64_t owned_bytes(const fa_case *c) {
  const fa_problem *p = &c->problem;
  const fa_block_sparse *s = &p->block_sparse;
  int64_t n = p->cu_seqlens_q.n + p->cu_seqlens_k.n + p->seqused_k.n + p->leftpad_k.n + p->kvcache.len.n +
              p->kvcache.batch_idx.n + p->alibi.n + s->kv_num_blocks.n + s->kv_indices.n +
              s->full_kv_num_blocks.n + s->full_kv_indices.n;
  for (int id = 0; id < FA_T_COUNT; ++id) n += c->zero[id].n;
  size_t bytes = (size_t)n * sizeof(int32_t) + strlen(c->name) + strlen(c->note) +
                 (size_t)p->n_captures * sizeof *p->captures;
  if (p->score_mod) bytes += strlen(p->score_mod);
  if (p->mask_mod) bytes += strlen(p->mask_mod);
  return (int64_t)bytes;
}

fa_status fa_case_file_add(fa_case_file *f, const char *base, const fa_case_field *field, int64_t n_fields,
                           const char *name) {
  fa_case_reader r;
  fa_case c;
  TRY(fa_case_reader_init(&r, base, f->err));
  r.field = field;
  r.n_fields = n_fields;
  fa_status status = fa_case_reader_read(&r);
  if (status == FA_OK && (name || !r.c.name[0]) && fa_case_set_name(&r.c, name ? name : f->stem) != FA_OK)
    status = fa_fail(f->err, FA_ERR_MEMORY, "out of memory");
  if (status == FA_OK) status = fa_case_reader_finish(&r, &c);
  f->structural = r.structural;
  fa_case_reader_free(&r);
  if (status != FA_OK) return status;
  f->n_bytes += owned_bytes(&c);
  if (f->line && strcmp(f->name, "-") != 0 && asprintf(&c.place, "%s:%lld", f->name, (long long)f->line) < 0)
    c.place = NULL;
  if (f->n_bytes > FA_MAX_FILE_BYTES) {
    fa_case_free(&c);
    return fa_case_file_fail(f, false,
                             "%s: the arrays and texts of the file's cases are more than %lld bytes", base,
                             (long long)FA_MAX_FILE_BYTES);
  }
  if (fa_case_list_push(&f->list, &c) == FA_OK) return FA_OK;
  fa_case_free(&c);
  return fa_fail(f->err, FA_ERR_MEMORY, "out of memory");
}

fa_status fa_case_file_check_part(fa_case_file *f, const char *base, const cJSON *object) {
  fa_case_reader r;
  char buffer[80];
  if (!cJSON_IsObject(object))
    return fa_case_file_fail(f, true, "%s: %s is not an object", base, fa_read_describe(object, buffer));
  TRY(fa_case_reader_init(&r, base, f->err));
  fa_status status = FA_OK;
  for (const cJSON *e = object->child; e && status == FA_OK; e = e->next) {
    fa_case_field field = {e->string, e, base, -1};
    r.field = &field;
    r.n_fields = 1;
    status = fa_case_reader_read(&r);
    r.field = NULL;
  }
  f->structural = r.structural;
  fa_case_reader_free(&r);
  return status;
}

/* A case object, standing alone or in "cases". index names a case without a name; -1: use the file's stem
 * alone. */
static fa_status add_object(fa_case_file *f, const char *base, const cJSON *object, int64_t index) {
  char buffer[80], name[300];
  if (!cJSON_IsObject(object))
    return fa_case_file_fail(f, true, "%s: %s is not an object", base, fa_read_describe(object, buffer));
  int64_t room = cJSON_GetArraySize(object) + (f->defaults ? cJSON_GetArraySize(f->defaults) : 0), n = 0;
  fa_case_field *field = calloc((size_t)room + 1, sizeof *field);
  if (!field) return fa_fail(f->err, FA_ERR_MEMORY, "out of memory");
  fa_case_fields_add(field, &n, object, base);
  fa_case_fields_add(field, &n, f->defaults, "$.defaults");
  bool named = false;
  for (int64_t i = 0; i < n; ++i)
    named |=
        strcmp(field[i].key, "name") == 0 && cJSON_IsString(field[i].value) && *field[i].value->valuestring;
  if (index < 0)
    snprintf(name, sizeof name, "%s", f->stem);
  else
    snprintf(name, sizeof name, "%s/%lld", f->stem, (long long)index);
  fa_status status = fa_case_file_add(f, base, field, n, named ? NULL : name);
  free(field);
  return status;
}

static fa_status add_sweep(fa_case_file *f, const char *base, const cJSON *object, int64_t index) {
  (void)index;
  return fa_case_file_sweep(f, base, object);
}

typedef fa_status (*read_element)(fa_case_file *f, const char *base, const cJSON *object, int64_t index);

/* Reads the elements of "cases" or "sweeps". */
static fa_status read_elements(fa_case_file *f, const cJSON *array, read_element read) {
  const int64_t n = cJSON_GetArraySize(array);
  int64_t *line = calloc((size_t)n + 1, sizeof *line), index = 0;
  if (!line) return fa_fail(f->err, FA_ERR_MEMORY, "out of memory");
  fa_case_lines_find(f->text, f->n_text, array->string, line, n);
  fa_status status = FA_OK;
  for (const cJSON *e = array->child; status == FA_OK && e; e = e->next, ++index) {
    char base[64];
    snprintf(base, sizeof base, "$.%s[%lld]", array->string, (long long)index);
    f->line = line[index];
    status = read(f, base, e, index);
  }
  f->line = 0;
  free(line);
  return status;
}

static fa_status read_cases(fa_case_file *f, const cJSON *cases) {
  TRY(fa_case_file_plan(f, "$.cases", cJSON_GetArraySize(cases)));
  return read_elements(f, cases, add_object);
}

/* ---- random ---- */

typedef struct random_part {
  int64_t count;
  uint64_t seed;
  char *profile;
} random_part;

static fa_status read_random_keys(fa_case_reader *r, const cJSON *object, random_part *part) {
  static const fa_case_key keys[] = {{"count", NULL}, {"seed", NULL}, {"profile", NULL}, {0}};
  char buffer[80];
  if (!cJSON_IsObject(object))
    return fa_read_fail(r, true, "%s is not an object", fa_read_describe(object, buffer));
  for (const cJSON *e = object->child; e; e = e->next) {
    const fa_case_key *k = fa_read_find_key(keys, e->string);
    if (!k) return fa_read_unknown_key(r, e->string, keys);
    size_t mark = fa_read_push(r, e->string);
    if (k == &keys[0])
      TRY(fa_read_int(r, e, 1, FA_MAX_FILE_CASES, &part->count));
    else if (k == &keys[1])
      TRY(fa_read_u64(r, e, &part->seed));
    else
      TRY(fa_read_text(r, e, 1, FA_MAX_NAME_CHARACTERS, &part->profile));
    fa_read_pop(r, mark);
  }
  if (!part->count) return fa_read_fail(r, true, "\"count\" is missing");
  if (!part->profile) return fa_read_fail(r, true, "\"profile\" is missing");
  return FA_OK;
}

static fa_status generate_cases(fa_case_file *f, const char *base, const random_part *part) {
  TRY(fa_case_file_plan(f, base, part->count));
  if (!f->generate)
    return fa_case_file_fail(f, false, "%s: random cases cannot be made here (no generator)", base);
  for (int64_t i = 0; i < part->count; ++i) {
    fa_case c;
    fa_status status = f->generate(part->profile, part->seed, i, &c, f->err);
    if (status != FA_OK) {
      f->structural = false;
      fa_error_prefix(f->err, "%s", base);
      return status;
    }
    char name[300];
    snprintf(name, sizeof name, "%.200s/%llu/%lld", part->profile, (unsigned long long)part->seed,
             (long long)i);
    status = c.name[0] ? FA_OK : fa_case_set_name(&c, name);
    if (status == FA_OK) status = fa_case_list_push(&f->list, &c);
    fa_case_free(&c);
    if (status != FA_OK) return fa_fail(f->err, status, "out of memory");
  }
  return FA_OK;
}

static fa_status read_random(fa_case_file *f, const cJSON *random) {
  int64_t index = 0;
  for (const cJSON *e = random->child; e; e = e->next, ++index) {
    char base[64];
    snprintf(base, sizeof base, "$.random[%lld]", (long long)index);
    fa_case_reader r = {.base = base, .err = f->err};
    random_part part = {.seed = 1};
    fa_status status = read_random_keys(&r, e, &part);
    f->structural = r.structural;
    if (status == FA_OK) status = generate_cases(f, base, &part);
    free(part.profile);
    TRY(status);
  }
  return FA_OK;
}

/* ---- the file ---- */

static fa_status read_ignored_text(fa_case_reader *r, const cJSON *v) {
  return fa_read_text(r, v, 0, FA_MAX_NOTE_CHARACTERS, &r->c.note);
}

static fa_status read_version(fa_case_reader *r, const cJSON *v) {
  char buffer[80];
  if (cJSON_IsNumber(v) && v->valuedouble == FA_CASES_VERSION) return FA_OK;
  return fa_read_fail(r, true, "%s is not a version of this format that can be read, which is %d",
                      fa_read_describe(v, buffer), FA_CASES_VERSION);
}

static fa_status read_part_array(fa_case_reader *r, const cJSON *v) {
  char buffer[80];
  if (cJSON_IsArray(v)) return FA_OK;
  return fa_read_fail(r, true, "%s is not an array", fa_read_describe(v, buffer));
}

static fa_status read_part_object(fa_case_reader *r, const cJSON *v) {
  char buffer[80];
  if (cJSON_IsObject(v)) return FA_OK;
  return fa_read_fail(r, true, "%s is not an object", fa_read_describe(v, buffer));
}

static const fa_case_key file_keys[] = {{"fa_cases", read_version},  {"$schema", read_ignored_text},
                                        {"note", read_ignored_text}, {"defaults", read_part_object},
                                        {"cases", read_part_array},  {"sweeps", read_part_array},
                                        {"random", read_part_array}, {0}};

static fa_status read_file_object(fa_case_file *f, const cJSON *root) {
  fa_case_reader r;
  TRY(fa_case_reader_init(&r, "$", f->err));
  fa_status status = fa_read_object(&r, root, file_keys);
  f->structural = r.structural;
  fa_case_reader_free(&r);
  TRY(status);
  const cJSON *cases = cJSON_GetObjectItemCaseSensitive(root, "cases");
  const cJSON *sweeps = cJSON_GetObjectItemCaseSensitive(root, "sweeps");
  const cJSON *random = cJSON_GetObjectItemCaseSensitive(root, "random");
  f->defaults = cJSON_GetObjectItemCaseSensitive(root, "defaults");
  if (f->defaults) TRY(fa_case_file_check_part(f, "$.defaults", f->defaults));
  if (cases) TRY(read_cases(f, cases));
  if (sweeps) TRY(read_elements(f, sweeps, add_sweep));
  return random ? read_random(f, random) : FA_OK;
}

/* Bare case objects, one after another; the first has been read. */
static fa_status read_lines(fa_case_file *f, const char *text, size_t n_bytes, size_t at,
                            const cJSON *first) {
  f->line = 1;
  if (at == n_bytes) return add_object(f, "$", first, -1);
  const cJSON *object = first;
  cJSON *tree = NULL;
  fa_status status = FA_OK;
  size_t start = 0, counted = 0;
  while (strchr(" \t\r\n", text[start])) ++start; /* start of the first object */
  long long line = 1;
  for (int64_t index = 0; status == FA_OK; ++index) {
    char base[64];
    for (; counted < start; ++counted) line += text[counted] == '\n';
    snprintf(base, sizeof base, "line %lld: $", line);
    f->line = line;
    status = fa_case_file_plan(f, base, 1);
    if (status == FA_OK) status = add_object(f, base, object, index);
    cJSON_Delete(tree);
    tree = NULL;
    if (status != FA_OK || at == n_bytes) break;
    start = at;
    status = fa_json_parse_next(text, n_bytes, &at, f->name, &tree, f->err);
    f->placed = status != FA_OK;
    object = tree;
  }
  return status;
}

static fa_status parse_text(fa_case_file *f, const char *text, size_t n_bytes) {
  cJSON *root;
  size_t at = 0;
  f->placed = true;
  TRY(fa_json_parse_next(text, n_bytes, &at, f->name, &root, f->err));
  bool whole = at == n_bytes, file = cJSON_GetObjectItemCaseSensitive(root, "fa_cases") != NULL;
  fa_status status;
  if (!whole && (file || text[at] != '{')) {
    cJSON_Delete(root); /* more text follows: the strict parser reports it */
    return fa_json_parse(text, n_bytes, f->name, &root, f->err);
  }
  f->placed = false;
  if (file)
    status = read_file_object(f, root);
  else
    status = read_lines(f, text, n_bytes, at, root);
  cJSON_Delete(root);
  return status;
}

/* The file's stem: "causal" for "cases/causal.json". */
static void file_stem(const char *path, char *stem, size_t size) {
  const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
  snprintf(stem, size, "%s", strcmp(path, "-") == 0 ? "stdin" : base);
  char *dot = strrchr(stem, '.');
  if (dot && dot != stem) *dot = 0;
  for (char *c = stem; *c; ++c) /* a file name may hold any bytes; a case name must be text */
    if (*c < 0x20 || *c > 0x7e) *c = '_';
}

/* Moves the cases to the other list; on failure nothing is moved. */
static fa_status append_list(fa_case_list *to, fa_case_list *from) {
  if (to->capacity - to->n < from->n) {
    int64_t capacity = to->n + from->n;
    fa_case *v = realloc(to->v, (size_t)capacity * sizeof *v);
    if (!v) return FA_ERR_MEMORY;
    to->v = v;
    to->capacity = capacity;
  }
  if (from->n) memcpy(to->v + to->n, from->v, (size_t)from->n * sizeof *from->v);
  to->n += from->n;
  from->n = 0;
  return FA_OK;
}

fa_status fa_case_file_classify(const char *text, size_t n_bytes, const char *name, fa_generate_fn generate,
                                fa_case_list *out, bool *structural, fa_error *err) {
  char stem[200];
  fa_error local = {""};
  file_stem(name, stem, sizeof stem);
  fa_case_file f = {
      .name = name, .stem = stem, .generate = generate, .text = text, .n_text = n_bytes, .err = &local};
  fa_status status = parse_text(&f, text, n_bytes);
  if (status == FA_OK && append_list(out, &f.list) != FA_OK)
    status = fa_fail(&local, FA_ERR_MEMORY, "out of memory");
  if (status != FA_OK && !f.placed) fa_error_prefix(&local, "%s", name);
  if (status != FA_OK && err) *err = local;
  *structural = f.placed || f.structural;
  fa_case_list_free(&f.list);
  return status;
}

fa_status fa_case_file_parse(const char *text, size_t n_bytes, const char *name, fa_generate_fn generate,
                             fa_case_list *out, fa_error *err) {
  bool structural;
  return fa_case_file_classify(text, n_bytes, name, generate, out, &structural, err);
}
