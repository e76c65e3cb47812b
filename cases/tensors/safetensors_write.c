/* Writer of safetensors files. */
#include "cases/tensors/safetensors.h"

#include "cases/base/atomic_file.h"
#include "cases/base/utf8.h"
#include "cases/tensors/safetensors_name.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const dtype_name[FA_N_DTYPES] = {
    [FA_F16] = "F16", [FA_BF16] = "BF16", [FA_F32] = "F32",   [FA_I32] = "I32",      [FA_U8] = "U8",
    [FA_F64] = "F64", [FA_I64] = "I64",   [FA_BOOL] = "BOOL", [FA_E4M3] = "F8_E4M3", [FA_E5M2] = "F8_E5M2",
    [FA_I8] = "I8",   [FA_E2M1] = "U8"}; /* one to a byte; in tensors of calls two are, which are bytes */

static int64_t tensor_bytes(const fa_tensor *t) {
  return fa_tensor_count(t) * (int64_t)fa_dtype_size(t->dtype);
}

/* ---- header ---- */

/* As text, because cJSON would print large offsets as doubles. */
static bool add_integers(cJSON *object, const char *key, const int64_t *v, int n) {
  cJSON *array = cJSON_AddArrayToObject(object, key);
  for (int i = 0; i < n; ++i) {
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, v[i]);
    if (!cJSON_AddItemToArray(array, cJSON_CreateRaw(text))) return false;
  }
  return array != NULL;
}

static bool add_entry(cJSON *header, const char *name, const fa_tensor *t, int64_t begin) {
  cJSON *object = cJSON_AddObjectToObject(header, name);
  const int64_t offsets[2] = {begin, begin + tensor_bytes(t)};
  return object && cJSON_AddStringToObject(object, "dtype", dtype_name[t->dtype]) &&
         add_integers(object, "shape", t->shape, t->rank) && add_integers(object, "data_offsets", offsets, 2);
}

/* malloc'd header text, padded with spaces so that the data starts at a multiple of 8; NULL when out of
 * memory. */
static char *make_header(const char *const *names, const fa_tensor *const *tensors, const int64_t *begin,
                         int64_t n_tensors, const char *const *meta_keys, const char *const *meta_values,
                         int64_t n_meta) {
  cJSON *header = cJSON_CreateObject();
  bool ok = header != NULL;
  cJSON *meta = ok && n_meta > 0 ? cJSON_AddObjectToObject(header, "__metadata__") : NULL;
  for (int64_t i = 0; i < n_meta && ok; ++i)
    ok = cJSON_AddStringToObject(meta, meta_keys[i], meta_values[i]) != NULL;
  for (int64_t i = 0; i < n_tensors && ok; ++i) ok = add_entry(header, names[i], tensors[i], begin[i]);
  char *text = ok ? cJSON_PrintUnformatted(header) : NULL;
  cJSON_Delete(header);
  if (!text) return NULL;
  const size_t n = strlen(text), padded = (n + 7) / 8 * 8;
  char *out = malloc(padded + 1);
  if (out) {
    memset(out, ' ', padded);
    memcpy(out, text, n);
    out[padded] = 0;
  }
  cJSON_free(text);
  return out;
}

/* ---- data ---- */

/* Row-major, whatever the strides. */
static bool write_tensor(FILE *file, const fa_tensor *t) {
  const int64_t size = (int64_t)fa_dtype_size(t->dtype), n = fa_tensor_count(t);
  const int64_t inner = t->rank ? t->shape[t->rank - 1] : 1, step = t->rank ? t->stride[t->rank - 1] : 1;
  for (int64_t at = 0; at < n; at += inner) {
    int64_t index[FA_MAX_RANK] = {0};
    fa_tensor_unravel(t, at, index);
    const char *row = t->data + fa_tensor_offset(t, index);
    if (step == 1) {
      if (fwrite(row, (size_t)size, (size_t)inner, file) != (size_t)inner) return false;
      continue;
    }
    for (int64_t i = 0; i < inner; ++i)
      if (fwrite(row + i * step * size, (size_t)size, 1, file) != 1) return false;
  }
  return true;
}

/* Wide types first, so that every tensor is aligned for its type. out[k]: the tensor at position k in the
 * file; begin[i]: the start of tensor i. */
static void place(const fa_tensor *const *tensors, int64_t n, int64_t *out, int64_t *begin) {
  int64_t at = 0, k = 0;
  for (size_t size = 8; size >= 1; size /= 2)
    for (int64_t i = 0; i < n; ++i) {
      if (fa_dtype_size(tensors[i]->dtype) != size) continue;
      out[k++] = i;
      begin[i] = at;
      at += tensor_bytes(tensors[i]);
    }
}

static bool write_all(FILE *file, const char *header, const fa_tensor *const *tensors, const int64_t *order,
                      int64_t n) {
  const uint64_t length = strlen(header);
  unsigned char prefix[8];
  for (int i = 0; i < 8; ++i) prefix[i] = (unsigned char)(length >> 8 * i);
  if (fwrite(prefix, 1, 8, file) != 8 || fwrite(header, 1, length, file) != length) return false;
  for (int64_t k = 0; k < n; ++k)
    if (!write_tensor(file, tensors[order[k]])) return false;
  return fflush(file) == 0;
}

static int by_text(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Do not write what the reader would reject. */
static fa_status check_texts(const char *path, const char *const *text, int64_t n, const char *what,
                             fa_error *err) {
  const char **sorted = malloc((size_t)n * sizeof *sorted + 1);
  if (!sorted) return fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", path);
  fa_status status = FA_OK;
  for (int64_t i = 0; i < n; ++i) {
    sorted[i] = text[i];
    if (!fa_safetensors_is_name(text[i]))
      status = fa_fail(err, FA_ERR_INPUT, "%s: %s %lld: not a printable UTF-8 name of at most %d bytes", path,
                       what, (long long)i, FA_SAFETENSORS_NAME_BYTES);
  }
  if (n > 0) qsort(sorted, (size_t)n, sizeof *sorted, by_text);
  for (int64_t i = 1; i < n && status == FA_OK; ++i)
    if (strcmp(sorted[i - 1], sorted[i]) == 0)
      status = fa_fail(err, FA_ERR_INPUT, "%s: %s \"%.100s\" is given twice", path, what, sorted[i]);
  free(sorted);
  return status;
}

static fa_status check_values(const char *path, const char *const *value, int64_t n, fa_error *err) {
  for (int64_t i = 0; i < n; ++i)
    for (const char *s = value[i]; *s;) {
      const int length = fa_utf8_length(s, strnlen(s, 4));
      if (length == 0)
        return fa_fail(err, FA_ERR_INPUT, "%s: metadata value %lld is not UTF-8", path, (long long)i);
      s += length;
    }
  return FA_OK;
}

fa_status fa_safetensors_print(FILE *file, const char *path, const char *const *names,
                               const fa_tensor *const *tensors, int64_t n_tensors,
                               const char *const *meta_keys, const char *const *meta_values, int64_t n_meta,
                               fa_error *err) {
  fa_status status = check_texts(path, names, n_tensors, "tensor", err);
  for (int64_t i = 0; i < n_tensors && status == FA_OK; ++i)
    if (strcmp(names[i], "__metadata__") == 0) /* only reserved for tensors */
      status = fa_fail(err, FA_ERR_INPUT, "%s: no tensor may be called __metadata__", path);
  if (status == FA_OK) status = check_texts(path, meta_keys, n_meta, "metadata key", err);
  if (status == FA_OK) status = check_values(path, meta_values, n_meta, err);
  if (status != FA_OK) return status;
  char *header = NULL;
  int64_t *order = malloc((size_t)(2 * n_tensors + 1) * sizeof *order);
  if (order) {
    place(tensors, n_tensors, order, order + n_tensors);
    header = make_header(names, tensors, order + n_tensors, n_tensors, meta_keys, meta_values, n_meta);
  }
  if (!header)
    status = fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", path);
  else if (!write_all(file, header, tensors, order, n_tensors))
    status = fa_fail(err, FA_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
  free(order);
  free(header);
  return status;
}

fa_status fa_safetensors_write(const char *path, const char *const *names, const fa_tensor *const *tensors,
                               int64_t n_tensors, const char *const *meta_keys,
                               const char *const *meta_values, int64_t n_meta, fa_error *err) {
  fa_new_file f;
  const fa_status status = fa_new_file_open(&f, path, err);
  if (status != FA_OK) return status;
  return fa_new_file_close(
      &f, fa_safetensors_print(f.file, path, names, tensors, n_tensors, meta_keys, meta_values, n_meta, err),
      err);
}
