#include "cases/base/json.h"

#include "cases/base/utf8.h"

#include <cjson/cJSON.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fa_json_path_key(char *buffer, size_t size, const char *key, size_t key_bytes) {
  bool plain = key_bytes > 0;
  for (size_t i = 0; i < key_bytes; ++i) {
    unsigned char c = (unsigned char)key[i];
    plain &= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
             (i > 0 && ((c >= '0' && c <= '9') || c == '-'));
  }
  if (plain) {
    snprintf(buffer, size, ".%.*s", (int)key_bytes, key);
    return;
  }
  size_t n = (size_t)snprintf(buffer, size, "[\"");
  for (size_t i = 0; i < key_bytes && n + 8 < size; ++i) {
    const unsigned char c = (unsigned char)key[i];
    n += (size_t)snprintf(buffer + n, size - n, c < 0x20 || c == 0x7f ? "\\u%04x" : "%c", c);
  }
  if (n < size) snprintf(buffer + n, size - n, "\"]");
}

void fa_json_number_text(char *buffer, size_t size, double x, bool single) {
  for (int digits = 1; digits <= 17; ++digits) {
    snprintf(buffer, size, "%.*g", digits, x);
    double back = strtod(buffer, NULL);
    if (single ? (float)back == (float)x : back == x) return;
  }
}

/* ---- checking the text ---- */

typedef struct step { /* from a container to the value being read */
  const char *key;    /* NULL: array */
  size_t key_bytes;
  long long index;
} step;

typedef struct text_checker {
  const char *name, *start, *at, *end;
  fa_error *err;
  int depth;
  step path[FA_JSON_MAX_DEPTH];
} text_checker;

static fa_status text_fail(text_checker *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes the message for the place t->at. */
static fa_status text_fail(text_checker *t, const char *format, ...) {
  char what[256], path[512] = "$";
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  size_t n = 1;
  for (int d = 0; d < t->depth && n + 1 < sizeof path; ++d) {
    const step *s = &t->path[d];
    if (s->key)
      fa_json_path_key(path + n, sizeof path - n, s->key, s->key_bytes);
    else if (s->index >= 0)
      snprintf(path + n, sizeof path - n, "[%lld]", s->index);
    n += strlen(path + n);
  }
  long long line = 1, column = 1;
  for (const char *s = t->start; s < t->at; ++s) {
    column = *s == '\n' ? 1 : column + 1;
    line += *s == '\n';
  }
  return fa_fail(t->err, FA_ERR_INPUT, "%s:%lld:%lld: %s: %s", t->name, line, column, path, what);
}

static void skip_space(text_checker *t) {
  while (t->at < t->end && (*t->at == ' ' || *t->at == '\t' || *t->at == '\n' || *t->at == '\r')) ++t->at;
}

/* Describes the text at t->at, for messages. */
static const char *found(const text_checker *t, char buffer[32]) {
  if (t->at == t->end) return "the text ends here";
  unsigned char c = (unsigned char)*t->at;
  if (c > 0x20 && c < 0x7f)
    snprintf(buffer, 32, "found '%c'", c);
  else
    snprintf(buffer, 32, "found byte 0x%02x", c);
  return buffer;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* XXXX of \uXXXX, or -1. */
static int hex_unit(const text_checker *t, const char *s) {
  int unit = 0;
  if (t->end - s < 4) return -1;
  for (int i = 0; i < 4; ++i) {
    int digit = hex_digit(s[i]);
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

/* t->at is at the backslash. */
static fa_status check_escape(text_checker *t) {
  char c = t->end - t->at > 1 ? t->at[1] : 0;
  if (c != 'u') {
    if (c == 0 || !strchr("\"\\/bfnrt", c)) return text_fail(t, "this escape is not JSON");
    t->at += 2;
    return FA_OK;
  }
  int unit = hex_unit(t, t->at + 2);
  if (unit < 0) return text_fail(t, "\\u needs four hex digits");
  if (unit == 0) return text_fail(t, "\\u0000 is not allowed in a string");
  bool high = unit >= 0xd800 && unit < 0xdc00, low = unit >= 0xdc00 && unit < 0xe000;
  if (high) {
    bool pair = t->end - t->at >= 12 && t->at[6] == '\\' && t->at[7] == 'u';
    int second = pair ? hex_unit(t, t->at + 8) : -1;
    low = second < 0xdc00 || second >= 0xe000;
    if (!low) t->at += 6;
  }
  if (low) return text_fail(t, "half of a surrogate pair");
  t->at += 6;
  return FA_OK;
}

/* t->at is at the opening quote; *bytes counts the bytes between the quotes. */
static fa_status check_string(text_checker *t, const char **string, size_t *bytes) {
  const char *quote = t->at++;
  while (t->at < t->end && *t->at != '"') {
    unsigned char c = (unsigned char)*t->at;
    int length = fa_utf8_length(t->at, (size_t)(t->end - t->at));
    if (c < 0x20) return text_fail(t, "a control character (0x%02x) in a string; write it as \\u%04x", c, c);
    if (length == 0) return text_fail(t, "byte 0x%02x is not UTF-8", c);
    if (c == '\\') {
      fa_status status = check_escape(t);
      if (status != FA_OK) return status;
    } else
      t->at += length;
  }
  if (t->at == t->end) {
    t->at = quote;
    return text_fail(t, "this string does not end");
  }
  *string = quote + 1;
  *bytes = (size_t)(t->at - quote - 1);
  ++t->at;
  return FA_OK;
}

static size_t count_digits(text_checker *t) {
  const char *from = t->at;
  while (t->at < t->end && *t->at >= '0' && *t->at <= '9') ++t->at;
  return (size_t)(t->at - from);
}

static bool starts_with(const text_checker *t, const char *word) {
  size_t n = strlen(word);
  return (size_t)(t->end - t->at) >= n && memcmp(t->at, word, n) == 0;
}

static fa_status check_number(text_checker *t) {
  const char *from = t->at;
  char buffer[32];
  if (*t->at == '-') ++t->at;
  if (starts_with(t, "Infinity") || starts_with(t, "NaN"))
    return text_fail(t, "not a JSON number; numbers are finite");
  bool zero = t->at < t->end && *t->at == '0';
  size_t digits = count_digits(t);
  if (digits == 0) return text_fail(t, "a number needs a digit here, %s", found(t, buffer));
  if (zero && digits > 1) {
    t->at = from;
    return text_fail(t, "a number must not start with 0 followed by digits");
  }
  if (t->at < t->end && *t->at == '.') {
    ++t->at;
    if (count_digits(t) == 0)
      return text_fail(t, "a number needs a digit after its point, %s", found(t, buffer));
  }
  if (t->at < t->end && (*t->at == 'e' || *t->at == 'E')) {
    ++t->at;
    if (t->at < t->end && (*t->at == '+' || *t->at == '-')) ++t->at;
    if (count_digits(t) == 0)
      return text_fail(t, "a number needs a digit in its exponent, %s", found(t, buffer));
  }
  if (t->at - from <= FA_JSON_MAX_NUMBER_BYTES) return FA_OK;
  t->at = from;
  return text_fail(t, "a number longer than %d characters", FA_JSON_MAX_NUMBER_BYTES);
}

static fa_status check_value(text_checker *t);

/* Enters the container at t->at. The caller fills in the step as it reads. */
static fa_status enter(text_checker *t, step **s) {
  if (t->depth == FA_JSON_MAX_DEPTH) return text_fail(t, "nested deeper than %d", FA_JSON_MAX_DEPTH);
  *s = &t->path[t->depth++];
  **s = (step){.index = -1};
  ++t->at;
  skip_space(t);
  return FA_OK;
}

/* After an element: skips the comma, or reports that the container is closed. */
static fa_status next_element(text_checker *t, char close, bool *closed) {
  char buffer[32];
  skip_space(t);
  *closed = t->at < t->end && *t->at == close;
  if (!*closed && (t->at == t->end || *t->at != ','))
    return text_fail(t, "',' or '%c' expected, %s", close, found(t, buffer));
  ++t->at;
  skip_space(t);
  return FA_OK;
}

static fa_status check_array(text_checker *t) {
  step *s = NULL;
  fa_status status = enter(t, &s);
  bool closed = status == FA_OK && t->at < t->end && *t->at == ']';
  if (closed) ++t->at;
  while (status == FA_OK && !closed) {
    ++s->index;
    status = check_value(t);
    if (status == FA_OK) status = next_element(t, ']', &closed);
  }
  if (status == FA_OK) --t->depth;
  return status;
}

static fa_status check_object(text_checker *t) {
  char buffer[32];
  step *s = NULL;
  fa_status status = enter(t, &s);
  bool closed = status == FA_OK && t->at < t->end && *t->at == '}';
  if (closed) ++t->at;
  while (status == FA_OK && !closed) {
    const char *key;
    size_t key_bytes;
    s->key = NULL;
    if (t->at == t->end || *t->at != '"')
      return text_fail(t, "a key in double quotes expected, %s", found(t, buffer));
    status = check_string(t, &key, &key_bytes);
    if (status != FA_OK) return status;
    s->key = key;
    s->key_bytes = key_bytes;
    skip_space(t);
    if (t->at == t->end || *t->at != ':') return text_fail(t, "':' expected, %s", found(t, buffer));
    ++t->at;
    skip_space(t);
    status = check_value(t);
    if (status == FA_OK) status = next_element(t, '}', &closed);
  }
  if (status == FA_OK) --t->depth;
  return status;
}

static fa_status check_value(text_checker *t) {
  static const char *const word[] = {"true", "false", "null"};
  const char *string;
  size_t bytes;
  char buffer[32];
  if (t->at == t->end) return text_fail(t, "a value expected, the text ends here");
  switch (*t->at) {
  case '{':
    return check_object(t);
  case '[':
    return check_array(t);
  case '"':
    return check_string(t, &string, &bytes);
  default:
    break;
  }
  if (*t->at == '-' || (*t->at >= '0' && *t->at <= '9') || starts_with(t, "NaN") ||
      starts_with(t, "Infinity"))
    return check_number(t);
  for (int i = 0; i < 3; ++i)
    if (starts_with(t, word[i])) {
      t->at += strlen(word[i]);
      return FA_OK;
    }
  return text_fail(t, "a value expected, %s", found(t, buffer));
}

/* ---- duplicate keys ---- */

static int compare_keys(const void *a, const void *b) {
  return strcmp((*(cJSON *const *)a)->string, (*(cJSON *const *)b)->string);
}

/* Sets *twice to the second of two equal keys of one object, or to NULL. It sorts, because a hostile object
 * may have a million keys. */
static fa_status find_twice(const cJSON *object, const cJSON **twice) {
  *twice = NULL;
  size_t n = (size_t)cJSON_GetArraySize(object), i = 0;
  if (n < 2) return FA_OK;
  const cJSON **key = malloc(n * sizeof *key);
  if (!key) return FA_ERR_MEMORY;
  for (const cJSON *c = object->child; c; c = c->next) key[i++] = c;
  qsort(key, n, sizeof *key, compare_keys);
  for (i = 1; i < n && !*twice; ++i)
    if (strcmp(key[i - 1]->string, key[i]->string) == 0) *twice = key[i];
  free(key);
  return FA_OK;
}

/* path has room for the names of every level; names that do not fit are cut. */
static fa_status check_keys(const cJSON *value, const char *name, char *path, size_t size, fa_error *err) {
  size_t n = strlen(path);
  if (cJSON_IsObject(value)) {
    const cJSON *twice;
    fa_status status = find_twice(value, &twice);
    if (status != FA_OK) return fa_fail(err, status, "%s: out of memory", name);
    if (twice) {
      fa_json_path_key(path + n, size - n, twice->string, strlen(twice->string));
      return fa_fail(err, FA_ERR_INPUT, "%s: %s: this key is given twice", name, path);
    }
  }
  long long index = 0;
  for (const cJSON *c = value->child; c; c = c->next, ++index) {
    if (!c->child) continue; /* scalars hold no keys */
    if (c->string)
      fa_json_path_key(path + n, size - n, c->string, strlen(c->string));
    else
      snprintf(path + n, size - n, "[%lld]", index);
    fa_status status = check_keys(c, name, path, size, err);
    if (status != FA_OK) return status;
    path[n] = 0;
  }
  return FA_OK;
}

/* ---- the tree ---- */

fa_status fa_json_parse_next(const char *text, size_t n_bytes, size_t *at, const char *name, cJSON **out,
                             fa_error *err) {
  *out = NULL;
  text_checker t = {.name = name, .start = text, .at = text + *at, .end = text + n_bytes, .err = err};
  skip_space(&t);
  const char *from = t.at;
  fa_status status = check_value(&t);
  if (status != FA_OK) return status;
  cJSON *tree = cJSON_ParseWithLengthOpts(from, (size_t)(t.at - from), NULL, 0);
  if (!tree) return fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", name);
  char path[512] = "$";
  status = check_keys(tree, name, path, sizeof path, err);
  if (status != FA_OK) {
    cJSON_Delete(tree);
    return status;
  }
  skip_space(&t);
  *at = (size_t)(t.at - text);
  *out = tree;
  return FA_OK;
}

fa_status fa_json_parse(const char *text, size_t n_bytes, const char *name, cJSON **out, fa_error *err) {
  size_t at = 0;
  fa_status status = fa_json_parse_next(text, n_bytes, &at, name, out, err);
  if (status != FA_OK || at == n_bytes) return status;
  cJSON_Delete(*out);
  *out = NULL;
  text_checker t = {.name = name, .start = text, .at = text + at, .end = text + n_bytes, .err = err};
  char buffer[32];
  return text_fail(&t, "text after the end of the value, %s", found(&t, buffer));
}
