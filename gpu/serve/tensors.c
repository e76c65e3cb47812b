#include "gpu/serve/tensors.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Buffers begin at multiples of this, in the judge's memory as here, so that a copy keeps every tensor's alignment. */
#define PAGE ((size_t)4096)

/* ---- one tensor ---- */

/* An integer from 0 to 2^53. */
static bool read_size(const cJSON *x, int64_t *out) {
  const double value = cJSON_IsNumber(x) ? x->valuedouble : -1;
  if (!(value >= 0 && value <= 0x1p53 && value == floor(value))) return false;
  *out = (int64_t)value;
  return true;
}

/* As many as there are; -1: it is no array of at most FA_MAX_RANK integers. */
static int read_sizes(const cJSON *array, int64_t *out) {
  const cJSON *x;
  int n = 0;
  if (!cJSON_IsArray(array)) return -1;
  cJSON_ArrayForEach(x, array) if (n == FA_MAX_RANK || !read_size(x, &out[n++])) return -1;
  return n;
}

static bool read_shape(const cJSON *entry, fa_tensor *t, int64_t *offset) {
  const char *dtype = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(entry, "dtype"));
  t->rank = read_sizes(cJSON_GetObjectItemCaseSensitive(entry, "shape"), t->shape);
  return dtype && fa_dtype_from_name(dtype, &t->dtype) && t->rank > 0 &&
         read_sizes(cJSON_GetObjectItemCaseSensitive(entry, "strides"), t->stride) == t->rank &&
         read_size(cJSON_GetObjectItemCaseSensitive(entry, "offset"), offset);
}

/* Bytes from element 0 to behind the last element; false: more than there can be. */
static bool bytes_of(const fa_tensor *t, int64_t *bytes) {
  int64_t elements = 1, step;
  for (int a = 0; a < t->rank; ++a) {
    if (t->shape[a] == 0) return *bytes = 0, true;
    if (__builtin_mul_overflow(t->shape[a] - 1, t->stride[a], &step)) return false;
    if (__builtin_add_overflow(elements, step, &elements)) return false;
  }
  return !__builtin_mul_overflow(elements, (int64_t)fa_dtype_size(t->dtype), bytes);
}

/* Where a tensor lies, in bytes of the region. */
typedef struct extent {
  int id;
  size_t begin, end;
} extent;

static fa_status read_one(const cJSON *entry, int id, const fa_serve_region *r, fa_tensor *t, extent *at,
                          fa_error *err) {
  int64_t offset = 0, bytes = 0;
  if (!read_shape(entry, t, &offset))
    return fa_fail(err, FA_ERR_INPUT,
                   "tensor %.40s must have \"dtype\", \"shape\", \"strides\" and \"offset\"", entry->string);
  if (!bytes_of(t, &bytes) || offset < FA_GUARD_BYTES ||
      (uint64_t)offset + (uint64_t)bytes + FA_GUARD_BYTES > r->bytes)
    return fa_fail(err, FA_ERR_INPUT, "tensor %.40s does not lie inside the memory with its guards",
                   entry->string);
  t->data = r->map + offset;
  *at = (extent){id, (size_t)offset / PAGE * PAGE, (size_t)offset + (size_t)bytes};
  return FA_OK;
}

/* ---- its name ---- */

static int id_of_tensor(const fa_problem *p, const char *name) {
  (void)p;
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (strcmp(fa_tensor_id_name((fa_tensor_id)id), name) == 0) return id;
  return -1;
}

static int capture_of(const fa_problem *p, const char *name, fa_tensor_id first) {
  for (int k = 0; k < p->n_captures; ++k)
    if (strcmp(p->captures[k].name, name) == 0) return (int)first + k;
  return -1;
}

static int id_of_buffer(const fa_problem *p, const char *name) {
  return capture_of(p, name, FA_T_BUFFER_0);
}

static int id_of_dbuffer(const fa_problem *p, const char *name) {
  return capture_of(p, name, FA_T_DBUFFER_0);
}

/* ---- buffers ---- */

static int compare_extents(const void *a, const void *b) {
  const size_t x = ((const extent *)a)->begin, y = ((const extent *)b)->begin;
  return x < y ? -1 : x > y;
}

/* Buffers of the judge are two guards apart. What is nearer belongs together, and must be copied together. */
static void set_buffers(extent *at, int n, const fa_serve_region *r, fa_tensors *out) {
  qsort(at, (size_t)n, sizeof *at, compare_extents);
  for (int i = 0, next; i < n; i = next) {
    size_t end = at[i].end;
    for (next = i + 1; next < n && at[next].begin < end + 2 * FA_GUARD_BYTES; ++next)
      if (at[next].end > end) end = at[next].end;
    for (int k = i; k < next; ++k) out->owner[at[k].id] = at[i].id;
    out->buffer[at[i].id] =
        (fa_buffer){.base = r->map + at[i].begin - FA_GUARD_BYTES, .bytes = end - at[i].begin};
  }
}

fa_status fa_serve_tensors_read(const cJSON *request, const fa_problem *p, const fa_serve_region *r,
                                fa_tensors *out, fa_error *err) {
  static const struct {
    const char *key;
    int (*id_of)(const fa_problem *p, const char *name);
  } groups[] = {{"tensors", id_of_tensor}, {"buffers", id_of_buffer}, {"dbuffers", id_of_dbuffer}};
  extent at[FA_T_COUNT];
  int n = 0;
  memset(out, 0, sizeof *out);
  for (size_t g = 0; g < sizeof groups / sizeof *groups; ++g) {
    const cJSON *entry;
    cJSON_ArrayForEach(entry, cJSON_GetObjectItemCaseSensitive(request, groups[g].key)) {
      const int id = groups[g].id_of(p, entry->string ? entry->string : "");
      if (id < 0 || out->t[id].data) continue;
      const fa_status status = read_one(entry, id, r, &out->t[id], &at[n++], err);
      if (status != FA_OK) return status;
    }
  }
  set_buffers(at, n, r, out);
  return FA_OK;
}
