/* Leaves of the case codec: convert one JSON value to one C value, or report the place, what was found and
 * what is allowed. */
#include "cases/codec/read.h"

#include "cases/base/edit_distance.h"
#include "cases/base/json.h"
#include "cases/base/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(e)                                                                                               \
  do {                                                                                                       \
    fa_status try_status = (e);                                                                              \
    if (try_status != FA_OK) return try_status;                                                              \
  } while (0)

/* ---- places ---- */

size_t fa_read_push(fa_case_reader *r, const char *key) {
  size_t mark = strlen(r->path);
  fa_json_path_key(r->path + mark, sizeof r->path - mark, key, strlen(key));
  return mark;
}

size_t fa_read_push_index(fa_case_reader *r, int64_t index) {
  size_t mark = strlen(r->path);
  snprintf(r->path + mark, sizeof r->path - mark, "[%lld]", (long long)index);
  return mark;
}

void fa_read_pop(fa_case_reader *r, size_t mark) {
  r->path[mark] = 0;
}

/* True if path (".mask.type[0]") is at or below key ("mask", "mask.type"). */
static bool path_is_below(const char *path, const char *key) {
  size_t n = strlen(key);
  return path[0] == '.' && strncmp(path + 1, key, n) == 0 && (!path[1 + n] || strchr(".[", path[1 + n]));
}

/* Translates a path inside the case to its path in the file, where the key may come from the defaults or a
 * sweep. */
static void locate(const fa_case_reader *r, const char *path, char *buffer, size_t size) {
  const fa_case_field *best = NULL;
  for (int64_t i = 0; i < r->n_fields; ++i) {
    const fa_case_field *f = &r->field[i];
    if (path_is_below(path, f->key) && (!best || strlen(f->key) > strlen(best->key))) best = f;
  }
  if (!best) {
    snprintf(buffer, size, "%s%s", r->base, path);
    return;
  }
  char key[128], index[32] = "";
  fa_json_path_key(key, sizeof key, best->key, strlen(best->key));
  if (best->index >= 0) snprintf(index, sizeof index, "[%lld]", (long long)best->index);
  snprintf(buffer, size, "%s%s%s%s", best->container, key, index, path + 1 + strlen(best->key));
}

fa_status fa_read_fail(fa_case_reader *r, bool structural, const char *format, ...) {
  char what[768], place[512];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  locate(r, r->path, place, sizeof place);
  r->structural = structural;
  return fa_fail(r->err, FA_ERR_INPUT, "%s: %s", place, what);
}

#define BAD(...) return fa_read_fail(r, true, __VA_ARGS__)

static fa_status no_memory(fa_case_reader *r) {
  return fa_fail(r->err, FA_ERR_MEMORY, "out of memory");
}

const char *fa_read_describe(const cJSON *value, char buffer[80]) {
  if (cJSON_IsObject(value)) return "an object";
  if (cJSON_IsArray(value)) return "an array";
  if (cJSON_IsNull(value)) return "null";
  if (cJSON_IsBool(value)) return cJSON_IsTrue(value) ? "true" : "false";
  if (cJSON_IsString(value)) {
    const char *s = value->valuestring;
    int n = (int)strnlen(s, 61);
    for (; n > 60 || (n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80); --n) continue; /* whole characters */
    snprintf(buffer, 80, s[n] ? "\"%.*s...\"" : "\"%.*s\"", n, s);
    for (char *c = buffer; *c; ++c)
      if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
    return buffer;
  }
  if (cJSON_IsRaw(value))
    snprintf(buffer, 80, "%.60s", value->valuestring);
  else
    fa_json_number_text(buffer, 80, value->valuedouble, false);
  return buffer;
}

/* ---- scalars ---- */

/* A canonical tree stores numbers that cJSON cannot print exactly as raw text. */
static bool get_number(const cJSON *v, double *out) {
  if (cJSON_IsRaw(v)) {
    char *end;
    *out = strtod(v->valuestring, &end);
    return end != v->valuestring && !*end;
  }
  *out = v->valuedouble;
  return cJSON_IsNumber(v);
}

fa_status fa_read_int(fa_case_reader *r, const cJSON *v, int64_t lo, int64_t hi, int64_t *out) {
  char buffer[80];
  double x;
  /* Limits are far below 2^53, so every integer that passes is exact. */
  if (!get_number(v, &x) || !(x >= (double)lo && x <= (double)hi) || x != floor(x))
    BAD("%s is not an integer in %lld .. %lld", fa_read_describe(v, buffer), (long long)lo, (long long)hi);
  *out = (int64_t)x;
  return FA_OK;
}

fa_status fa_read_number(fa_case_reader *r, const cJSON *v, double lo, double hi, double *out) {
  char buffer[80];
  double x;
  if (!get_number(v, &x)) BAD("%s is not a number", fa_read_describe(v, buffer));
  if (!isfinite(x)) BAD("the number is not finite in double precision");
  if (!(x >= lo && x <= hi)) BAD("%s is not in %.17g .. %.17g", fa_read_describe(v, buffer), lo, hi);
  *out = x;
  return FA_OK;
}

fa_status fa_read_bool(fa_case_reader *r, const cJSON *v, bool *out) {
  char buffer[80];
  if (!cJSON_IsBool(v)) BAD("%s is not true or false", fa_read_describe(v, buffer));
  *out = cJSON_IsTrue(v);
  return FA_OK;
}

fa_status fa_read_text(fa_case_reader *r, const cJSON *v, int64_t min, int64_t max, char **out) {
  char buffer[80];
  int64_t at = 0;
  if (!cJSON_IsString(v)) BAD("%s is not a string", fa_read_describe(v, buffer));
  int64_t n = fa_utf8_count(v->valuestring, &at);
  if (n < 0) BAD("byte %lld of the string is a control character or not UTF-8", (long long)at);
  if (n < min || n > max)
    BAD("the string has %lld characters, must have %lld .. %lld", (long long)n, (long long)min,
        (long long)max);
  char *copy = strdup(v->valuestring);
  if (!copy) return no_memory(r);
  free(*out);
  *out = copy;
  return FA_OK;
}

fa_status fa_read_u64(fa_case_reader *r, const cJSON *v, uint64_t *out) {
  char buffer[80];
  double x;
  if (get_number(v, &x))
    BAD("%s is a number, but 64-bit values are strings: a double holds no 64 bits",
        fa_read_describe(v, buffer));
  if (!cJSON_IsString(v)) BAD("%s is not a string with a 64-bit integer", fa_read_describe(v, buffer));
  const char *s = v->valuestring;
  uint64_t value = 0, base = s[0] == '0' && (s[1] == 'x' || s[1] == 'X') ? 16 : 10;
  const char *digits = base == 16 ? s + 2 : s;
  bool ok = *digits && (base == 16 || digits[0] != '0' || !digits[1]); /* no leading zeros in decimal */
  ok &= base == 10 || strlen(digits) <= 16;
  for (const char *d = digits; *d && ok; ++d) {
    const char *hex = "0123456789abcdef", *at = strchr(hex, *d >= 'A' && *d <= 'F' ? *d + 32 : *d);
    ok = at && (uint64_t)(at - hex) < base && !__builtin_mul_overflow(value, base, &value) &&
         !__builtin_add_overflow(value, (uint64_t)(at - hex), &value);
  }
  if (!ok)
    BAD("%s is not a decimal (or 0x hexadecimal) integer in 0 .. 18446744073709551615",
        fa_read_describe(v, buffer));
  *out = value;
  return FA_OK;
}

/* Of a list too long to be read at a glance, the word that was probably meant; else NULL. */
static const char *meant_word(const cJSON *v, const char *const *words, int n_words) {
  enum { GLANCE = 8, FAR = 3 };
  if (n_words <= GLANCE || !cJSON_IsString(v)) return NULL;
  fa_nearest nearest = {.given = v->valuestring, .limit = FAR};
  for (int i = 0; i < n_words; ++i) fa_nearest_look(&nearest, words[i]);
  return nearest.name;
}

fa_status fa_read_word(fa_case_reader *r, const cJSON *v, const char *const *words, int n_words, int *out) {
  char buffer[80], list[640] = "";
  if (cJSON_IsString(v))
    for (int i = 0; i < n_words; ++i)
      if (strcmp(v->valuestring, words[i]) == 0) {
        *out = i;
        return FA_OK;
      }
  for (int i = 0; i < n_words; ++i) {
    size_t n = strlen(list);
    snprintf(list + n, sizeof list - n, "%s\"%s\"", i ? ", " : "", words[i]);
  }
  const char *meant = meant_word(v, words, n_words);
  if (meant) BAD("%s is not one of %s; did you mean \"%s\"?", fa_read_describe(v, buffer), list, meant);
  BAD("%s is not one of %s", fa_read_describe(v, buffer), list);
}

/* ---- arrays ---- */

/* Appends one integer, doubling the array as needed; *capacity is its allocated size. */
static fa_status append_int(fa_case_reader *r, fa_int32_array *a, int64_t *capacity, int32_t value) {
  if (a->n == *capacity) {
    *capacity = *capacity ? 2 * *capacity : 16;
    int32_t *v = realloc(a->v, (size_t)*capacity * sizeof *v);
    if (!v) return no_memory(r);
    a->v = v;
  }
  a->v[a->n++] = value;
  return FA_OK;
}

static fa_status read_level(fa_case_reader *r, const cJSON *v, int64_t lo, int64_t hi, fa_int32_array *a,
                            int64_t *capacity) {
  char buffer[80];
  if (!cJSON_IsArray(v)) BAD("%s is not an array of integers", fa_read_describe(v, buffer));
  int64_t index = 0, value;
  for (const cJSON *e = v->child; e; e = e->next, ++index) {
    double x;
    if (get_number(e, &x) && x >= (double)lo && x <= (double)hi && x == floor(x))
      value = (int64_t)x;
    else { /* only messages need paths, and lists may be long */
      fa_read_push_index(r, index);
      return fa_read_int(r, e, lo, hi, &value);
    }
    TRY(append_int(r, a, capacity, (int32_t)value));
  }
  return FA_OK;
}

static void replace_array(fa_int32_array *to, fa_int32_array *from) {
  free(to->v);
  *to = *from;
}

fa_status fa_read_ints(fa_case_reader *r, const cJSON *v, int64_t lo, int64_t hi, int64_t min_items,
                       fa_int32_array *out) {
  fa_int32_array a = {0};
  int64_t capacity = 0;
  fa_status status = read_level(r, v, lo, hi, &a, &capacity);
  if (status == FA_OK && a.n < min_items)
    status = fa_read_fail(r, true, "has %lld elements, must have at least %lld", (long long)a.n,
                          (long long)min_items);
  if (status == FA_OK)
    replace_array(out, &a);
  else
    free(a.v);
  return status;
}

/* shape[0] < 0: not known yet. */
static fa_status read_nested_level(fa_case_reader *r, const cJSON *v, int rank, int64_t *shape,
                                   fa_int32_array *a, int64_t *capacity) {
  char buffer[80];
  int64_t n = 0;
  if (!cJSON_IsArray(v))
    BAD("%s is not an array, %d more levels are needed", fa_read_describe(v, buffer), rank);
  if (rank == 1) TRY(read_level(r, v, INT32_MIN, INT32_MAX, a, capacity));
  for (const cJSON *e = v->child; e; e = e->next, ++n) {
    if (rank == 1) continue;
    size_t mark = fa_read_push_index(r, n);
    TRY(read_nested_level(r, e, rank - 1, shape + 1, a, capacity));
    fa_read_pop(r, mark);
  }
  if (shape[0] >= 0 && shape[0] != n)
    return fa_read_fail(r, false, "has %lld elements, the arrays beside it %lld", (long long)n,
                        (long long)shape[0]);
  shape[0] = n;
  return FA_OK;
}

fa_status fa_read_nested(fa_case_reader *r, const cJSON *v, int rank, int64_t *shape, fa_int32_array *out) {
  fa_int32_array a = {0};
  int64_t capacity = 0;
  for (int i = 0; i < rank; ++i) shape[i] = -1;
  fa_status status = read_nested_level(r, v, rank, shape, &a, &capacity);
  for (int i = 0; i < rank && status == FA_OK; ++i)
    if (shape[i] < 0) shape[i] = 0;  /* below an empty list */
  if (status == FA_OK && a.n == 0) { /* an absent array is {0, NULL} */
    free(a.v);
    a.v = NULL;
  }
  if (status == FA_OK)
    replace_array(out, &a);
  else
    free(a.v);
  return status;
}

/* ---- objects ---- */

const fa_case_key *fa_read_find_key(const fa_case_key *keys, const char *key) {
  for (const fa_case_key *k = keys; k->key; ++k)
    if (strcmp(k->key, key) == 0) return k;
  return NULL;
}

/* r->path is the path of the object. */
fa_status fa_read_unknown_key(fa_case_reader *r, const char *key, const fa_case_key *keys) {
  const fa_case_key *nearest = NULL;
  int least = 1000;
  char list[640] = "";
  for (const fa_case_key *k = keys; k->key; ++k) {
    int d = fa_edit_distance(key, k->key);
    if (strncmp(key, k->key, strlen(key)) == 0 && strlen(key) >= 3 && d > 2) d = 2; /* an abbreviation */
    if (d < least) least = d, nearest = k;
    size_t n = strlen(list);
    snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", k->key);
  }
  fa_read_push(r, key);
  if (nearest && least <= 2 && (size_t)least < strlen(nearest->key))
    BAD("unknown key; did you mean \"%s\"?", nearest->key);
  BAD("unknown key; known are %s", list);
}

fa_status fa_read_object(fa_case_reader *r, const cJSON *v, const fa_case_key *keys) {
  char buffer[80];
  if (!cJSON_IsObject(v)) BAD("%s is not an object", fa_read_describe(v, buffer));
  for (const cJSON *e = v->child; e; e = e->next) {
    const fa_case_key *k = fa_read_find_key(keys, e->string);
    if (!k) return fa_read_unknown_key(r, e->string, keys);
    size_t mark = fa_read_push(r, e->string);
    TRY(k->read(r, e));
    fa_read_pop(r, mark);
  }
  return FA_OK;
}
