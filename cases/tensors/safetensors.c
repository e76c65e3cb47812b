/* Reader of safetensors files. It checks in this order: the header's length against the file's size, then the
 * JSON, then every entry against the data's size, then the entries against each other. No allocation is
 * proportional to a number that has not passed its check. */
#include "cases/tensors/safetensors.h"

#include "cases/base/json.h"
#include "cases/tensors/safetensors_name.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_HEADER_BYTES 100000000   /* the format's own limit */
#define MAX_HEADER_VALUES 4000000    /* JSON values: each costs about 100 bytes of tree */
#define MAX_EXACT 9007199254740992.0 /* 2^53: above it, a JSON number does not identify one integer */

#define BAD(...) return fa_fail(err, FA_ERR_INPUT, __VA_ARGS__)
#define TRY(e)                                                                                               \
  do {                                                                                                       \
    fa_status try_status = (e);                                                                              \
    if (try_status != FA_OK) return try_status;                                                              \
  } while (0)

/* Messages are single lines, so text that is not one line is not repeated in them. */
static const char *shown(const char *text) {
  return fa_safetensors_is_name(text) ? text : "(unprintable)";
}

/* ---- one entry ---- */

/* F4, numbers of e2m1, is read as bytes with two of them each: *in_one. */
static bool dtype_from_name(const char *name, fa_dtype *out, int *in_one) {
  static const struct {
    const char *name;
    fa_dtype dtype;
  } map[] = {{"F16", FA_F16},      {"BF16", FA_BF16},    {"F32", FA_F32}, {"F64", FA_F64},
             {"I32", FA_I32},      {"I64", FA_I64},      {"U8", FA_U8},   {"BOOL", FA_BOOL},
             {"F8_E4M3", FA_E4M3}, {"F8_E5M2", FA_E5M2}, {"I8", FA_I8},   {"F4", FA_U8}};
  *in_one = strcmp(name, "F4") == 0 ? 2 : 1;
  for (size_t i = 0; i < sizeof map / sizeof *map; ++i)
    if (strcmp(name, map[i].name) == 0) return *out = map[i].dtype, true;
  return false;
}

/* A non-negative integer that a double holds exactly. */
static bool read_integer(const cJSON *item, int64_t *out) {
  if (!cJSON_IsNumber(item)) return false;
  const double x = item->valuedouble;
  if (!(x >= 0 && x <= MAX_EXACT) || x != (double)(int64_t)x) return false;
  *out = (int64_t)x;
  return true;
}

static fa_status read_shape(const cJSON *shape, int in_one, fa_tensor *t, const char *file, const char *name,
                            fa_error *err) {
  int64_t bytes = (int64_t)fa_dtype_size(t->dtype);
  const cJSON *item;
  if (!cJSON_IsArray(shape)) BAD("%s: tensor %s: \"shape\" must be an array", file, name);
  cJSON_ArrayForEach(item, shape) {
    int64_t n;
    if (t->rank == FA_MAX_RANK) BAD("%s: tensor %s: more than %d axes", file, name, FA_MAX_RANK);
    if (!read_integer(item, &n))
      BAD("%s: tensor %s: \"shape\" must hold integers from 0 to 2^53", file, name);
    t->shape[t->rank++] = n;
  }
  if (in_one == 2 && (t->rank == 0 || t->shape[t->rank - 1] % 2 != 0))
    BAD("%s: tensor %s: F4 has two numbers in a byte, so the last axis must be even", file, name);
  if (t->rank > 0) t->shape[t->rank - 1] /= in_one;
  /* The product of the nonzero axes must fit too, because strides are computed from it. */
  for (int a = t->rank - 1; a >= 0; --a) {
    t->stride[a] = bytes / (int64_t)fa_dtype_size(t->dtype);
    if (t->shape[a] > 0 && __builtin_mul_overflow(bytes, t->shape[a], &bytes))
      BAD("%s: tensor %s: \"shape\" overflows 2^63 bytes", file, name);
  }
  return FA_OK;
}

/* Fills *t; data is at base + begin. */
static fa_status read_entry(const cJSON *item, const char *base, int64_t data_bytes, const char *file,
                            fa_tensor *t, fa_error *err) {
  const char *name = item->string;
  *t = (fa_tensor){0};
  if (!cJSON_IsObject(item)) BAD("%s: tensor %s: must be an object", file, name);
  const cJSON *dtype = NULL, *shape = NULL, *offsets = NULL, *field;
  cJSON_ArrayForEach(field, item) {
    if (strcmp(field->string, "dtype") == 0)
      dtype = field;
    else if (strcmp(field->string, "shape") == 0)
      shape = field;
    else if (strcmp(field->string, "data_offsets") == 0)
      offsets = field;
    else
      BAD("%s: tensor %s: unknown key \"%.100s\"; allowed: dtype, shape, data_offsets", file, name,
          shown(field->string));
  }
  if (!cJSON_IsString(dtype)) BAD("%s: tensor %s: \"dtype\" must be a string", file, name);
  int in_one;
  if (!dtype_from_name(dtype->valuestring, &t->dtype, &in_one))
    BAD("%s: tensor %s: dtype \"%.40s\" is not supported; allowed: F16, BF16, F32, F64, I32, I64, I8, U8, "
        "BOOL, F8_E4M3, F8_E5M2, F4",
        file, name, shown(dtype->valuestring));
  TRY(read_shape(shape, in_one, t, file, name, err));
  int64_t begin, end, bytes = (int64_t)fa_dtype_size(t->dtype);
  if (!cJSON_IsArray(offsets) || cJSON_GetArraySize(offsets) != 2 || !read_integer(offsets->child, &begin) ||
      !read_integer(offsets->child->next, &end) || begin > end)
    BAD("%s: tensor %s: \"data_offsets\" must be two integers, begin <= end", file, name);
  if (end > data_bytes)
    BAD("%s: tensor %s: data ends at byte %" PRId64 ", the file's data at %" PRId64, file, name, end,
        data_bytes);
  for (int a = 0; a < t->rank; ++a) bytes *= t->shape[a];
  if (end - begin != bytes)
    BAD("%s: tensor %s: shape and dtype need %" PRId64 " bytes, \"data_offsets\" give %" PRId64, file, name,
        bytes, end - begin);
  t->data = (char *)base + begin;
  return FA_OK;
}

/* ---- all entries ---- */

static int by_address(const void *a, const void *b) {
  const fa_st_entry *x = *(const fa_st_entry *const *)a, *y = *(const fa_st_entry *const *)b;
  if (x->tensor.data != y->tensor.data) return x->tensor.data < y->tensor.data ? -1 : 1;
  const int64_t n = fa_tensor_count(&x->tensor), m = fa_tensor_count(&y->tensor);
  return (n > 0) - (m > 0); /* empty ones first: they end where they begin */
}

/* The format requires that tensors cover the data without holes or overlaps. */
static fa_status check_cover(const fa_safetensors *f, const char *base, int64_t data_bytes, const char *file,
                             fa_error *err) {
  const fa_st_entry **order = malloc((size_t)f->n_entries * sizeof *order + 1);
  if (!order) return fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", file);
  for (int64_t i = 0; i < f->n_entries; ++i) order[i] = &f->entry[i];
  qsort(order, (size_t)f->n_entries, sizeof *order, by_address);
  int64_t at = 0;
  fa_status status = FA_OK;
  for (int64_t i = 0; i < f->n_entries && status == FA_OK; ++i) {
    const fa_tensor *t = &order[i]->tensor;
    const int64_t begin = t->data - base;
    if (begin < at)
      status = fa_fail(err, FA_ERR_INPUT, "%s: tensor %s: its data overlaps that of tensor %s", file,
                       order[i]->name, order[i - 1]->name);
    else if (begin > at)
      status =
          fa_fail(err, FA_ERR_INPUT, "%s: tensor %s: %" PRId64 " bytes before its data belong to no tensor",
                  file, order[i]->name, begin - at);
    at = begin + fa_tensor_count(t) * (int64_t)fa_dtype_size(t->dtype);
  }
  free(order);
  if (status == FA_OK && at != data_bytes)
    BAD("%s: %" PRId64 " bytes after the last tensor's data belong to no tensor", file, data_bytes - at);
  return status;
}

static fa_status read_metadata(const cJSON *object, const char *file, fa_safetensors *f, fa_error *err) {
  if (!cJSON_IsObject(object)) BAD("%s: \"__metadata__\" must be an object", file);
  f->meta = calloc((size_t)cJSON_GetArraySize(object) + 1, sizeof *f->meta);
  if (!f->meta) return fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", file);
  const cJSON *item;
  cJSON_ArrayForEach(item, object) {
    if (!fa_safetensors_is_name(item->string))
      BAD("%s: \"__metadata__\": a key is longer than %d bytes or holds control characters", file,
          FA_SAFETENSORS_NAME_BYTES);
    if (!cJSON_IsString(item))
      BAD("%s: \"__metadata__\": value of \"%.100s\" must be a string", file, item->string);
    fa_st_meta *m = &f->meta[f->n_meta++];
    *m = (fa_st_meta){strdup(item->string), strdup(item->valuestring)};
    if (!m->key || !m->value) return fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", file);
  }
  return FA_OK;
}

static fa_status read_header(const cJSON *header, const char *base, int64_t data_bytes, const char *file,
                             fa_safetensors *f, fa_error *err) {
  if (!cJSON_IsObject(header)) BAD("%s: the header must be a JSON object", file);
  f->entry = calloc((size_t)cJSON_GetArraySize(header) + 1, sizeof *f->entry);
  if (!f->entry) return fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", file);
  const cJSON *item;
  cJSON_ArrayForEach(item, header) {
    if (strcmp(item->string, "__metadata__") == 0) {
      TRY(read_metadata(item, file, f, err));
      continue;
    }
    if (!fa_safetensors_is_name(item->string))
      BAD("%s: a tensor's name is longer than %d bytes or holds control characters", file,
          FA_SAFETENSORS_NAME_BYTES);
    fa_st_entry *e = &f->entry[f->n_entries++];
    e->name = strdup(item->string);
    if (!e->name) return fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", file);
    TRY(read_entry(item, base, data_bytes, file, &e->tensor, err));
  }
  return check_cover(f, base, data_bytes, file, err);
}

/* Upper bound of the number of JSON values: one of these characters precedes each. */
static int64_t count_values(const char *text, int64_t n) {
  int64_t values = 1;
  for (int64_t i = 0; i < n; ++i) values += text[i] == ',' || text[i] == '{' || text[i] == '[';
  return values;
}

fa_status fa_safetensors_parse(const void *bytes, size_t n_bytes, const char *name, fa_safetensors *out,
                               fa_error *err) {
  const unsigned char *u = bytes;
  uint64_t length = 0;
  *out = (fa_safetensors){0};
  if (n_bytes < 8)
    BAD("%s: %zu bytes; a safetensors file starts with 8 bytes of header length", name, n_bytes);
  for (int i = 7; i >= 0; --i) length = length << 8 | u[i];
  if (length > n_bytes - 8)
    BAD("%s: header of %" PRIu64 " bytes, but only %zu bytes follow", name, length, n_bytes - 8);
  if (length > MAX_HEADER_BYTES)
    BAD("%s: header of %" PRIu64 " bytes; at most %d are allowed", name, length, MAX_HEADER_BYTES);
  const char *text = (const char *)bytes + 8, *base = text + length;
  if (length == 0 || text[0] != '{') BAD("%s: the header must start with {", name);
  if (count_values(text, (int64_t)length) > MAX_HEADER_VALUES)
    BAD("%s: header of more than %d JSON values", name, MAX_HEADER_VALUES);
  cJSON *header = NULL;
  fa_status status = fa_json_parse(text, (size_t)length, name, &header, err);
  if (status == FA_OK) status = read_header(header, base, (int64_t)(n_bytes - 8 - length), name, out, err);
  cJSON_Delete(header);
  if (status != FA_OK) fa_safetensors_close(out);
  return status;
}

/* ---- files ---- */

fa_status fa_safetensors_open(const char *path, fa_safetensors *out, fa_error *err) {
  fa_status status = FA_OK;
  struct stat info;
  void *map = MAP_FAILED;
  size_t bytes = 0;
  *out = (fa_safetensors){0};
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block */
  if (fd < 0 || fstat(fd, &info) != 0) {
    status = fa_fail(err, FA_ERR_IO, "%s: %s", path, strerror(errno));
  } else if (!S_ISREG(info.st_mode)) {
    status = fa_fail(err, FA_ERR_IO, "%s: not a regular file", path);
  } else if (info.st_size < 8) {
    status =
        fa_fail(err, FA_ERR_INPUT, "%s: %lld bytes; a safetensors file starts with 8 bytes of header length",
                path, (long long)info.st_size);
  } else {
    bytes = (size_t)info.st_size;
    map = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) status = fa_fail(err, FA_ERR_IO, "%s: %s", path, strerror(errno));
  }
  if (fd >= 0) close(fd);
  if (status != FA_OK) return status;
  status = fa_safetensors_parse(map, bytes, path, out, err);
  if (status != FA_OK) {
    munmap(map, bytes);
    return status;
  }
  out->map = map;
  out->map_bytes = bytes;
  return FA_OK;
}

void fa_safetensors_close(fa_safetensors *f) {
  for (int64_t i = 0; i < f->n_entries; ++i) free(f->entry[i].name);
  for (int64_t i = 0; i < f->n_meta; ++i) {
    free(f->meta[i].key);
    free(f->meta[i].value);
  }
  free(f->entry);
  free(f->meta);
  if (f->map) munmap(f->map, f->map_bytes);
  *f = (fa_safetensors){0};
}

const fa_tensor *fa_safetensors_find(const fa_safetensors *f, const char *name) {
  for (int64_t i = 0; i < f->n_entries; ++i)
    if (strcmp(f->entry[i].name, name) == 0) return &f->entry[i].tensor;
  return NULL;
}

const char *fa_safetensors_meta(const fa_safetensors *f, const char *key) {
  for (int64_t i = 0; i < f->n_meta; ++i)
    if (strcmp(f->meta[i].key, key) == 0) return f->meta[i].value;
  return NULL;
}
