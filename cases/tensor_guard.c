#include "cases/tensor_guard.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(FA_GUARD_BYTES % 256 == 0, "the payload stands right after the guard, 256-byte aligned");

/* ---- buffers ---- */

/* p is even-aligned relative to the pattern; doubling copies run at memcpy speed. */
static void fill_pattern(char *p, size_t bytes, uint16_t pattern) {
  if (bytes == 0) return;
  p[0] = (char)(pattern & 0xff);
  if (bytes == 1) return;
  p[1] = (char)(pattern >> 8);
  for (size_t done = 2; done < bytes;) {
    size_t step = done < bytes - done ? done : bytes - done;
    if (step > 65536) step = 65536; /* stay in cache: copy the same block again and again */
    memcpy(p + done, p, step);
    done += step;
  }
}

/* Offset of the first byte that differs from the pattern, or bytes. */
static size_t first_difference(const char *p, size_t bytes, uint16_t pattern) {
  const char word[2] = {(char)(pattern & 0xff), (char)(pattern >> 8)};
  /* If the first word is right and every byte equals the one two before it, all of it is right. */
  if (bytes == 0 ||
      (p[0] == word[0] && (bytes == 1 || (p[1] == word[1] && memcmp(p, p + 2, bytes - 2) == 0))))
    return bytes;
  size_t i = 0;
  while (p[i] == word[i & 1]) ++i;
  return i;
}

/* Bytes are counted against physical memory because an overcommitting system hands out any size and then
 * kills the process while the buffer is being filled. */
static bool fits_memory(size_t bytes) {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages <= 0 || page <= 0 || bytes / (size_t)page < (size_t)pages;
}

fa_status fa_buffer_alloc(fa_buffer *b, size_t bytes, fa_error *err) {
  void *p = NULL;
  *b = (fa_buffer){0};
  if (!fits_memory(bytes) || posix_memalign(&p, 256, bytes + 2 * FA_GUARD_BYTES) != 0)
    return fa_fail(err, FA_ERR_MEMORY, "out of memory: %zu bytes", bytes);
  *b = (fa_buffer){p, bytes};
  fill_pattern(b->base, FA_GUARD_BYTES, FA_PATTERN_GUARD);
  fill_pattern(fa_buffer_payload(b) + bytes, FA_GUARD_BYTES, FA_PATTERN_GUARD);
  return FA_OK;
}

void fa_buffer_free(fa_buffer *b) {
  free(b->base);
  *b = (fa_buffer){0};
}

char *fa_buffer_payload(const fa_buffer *b) {
  return b->base + FA_GUARD_BYTES;
}

void fa_buffer_fill(const fa_buffer *b, uint16_t pattern) {
  fill_pattern(fa_buffer_payload(b), b->bytes, pattern);
}

/* ---- patterns in elements ---- */

static uint16_t poison_pattern(fa_poison poison) {
  return poison == FA_POISON_A ? FA_PATTERN_POISON_A : FA_PATTERN_POISON_B;
}

static unsigned char pattern_byte(const char *at, uint16_t pattern) {
  return (unsigned char)((uintptr_t)at & 1 ? pattern >> 8 : pattern & 0xff);
}

void fa_tensor_set_pattern(const fa_tensor *t, const int64_t *index, uint16_t pattern) {
  char *p = t->data + fa_tensor_offset(t, index);
  for (size_t i = 0; i < fa_dtype_size(t->dtype); ++i) p[i] = (char)pattern_byte(p + i, pattern);
}

bool fa_tensor_has_pattern(const fa_tensor *t, const int64_t *index, uint16_t pattern) {
  const char *p = t->data + fa_tensor_offset(t, index);
  for (size_t i = 0; i < fa_dtype_size(t->dtype); ++i)
    if ((unsigned char)p[i] != pattern_byte(p + i, pattern)) return false;
  return true;
}

bool fa_tensor_is_poison(const fa_tensor *t, const int64_t *index, fa_poison poison) {
  return fa_tensor_has_pattern(t, index, poison_pattern(poison));
}

void fa_tensors_poison(fa_tensors *set, fa_tensor_id id, fa_poison poison) {
  FA_ASSERT(fa_tensor_id_is_output(id));
  if (set->buffer[id].base) fa_buffer_fill(&set->buffer[id], poison_pattern(poison));
}

/* ---- guards ---- */

static bool guard_intact(const fa_buffer *b, bool front, const char *name, char *where, size_t where_size) {
  const char *p = front ? b->base : fa_buffer_payload(b) + b->bytes;
  size_t first = first_difference(p, FA_GUARD_BYTES, FA_PATTERN_GUARD), last = FA_GUARD_BYTES, changed = 0;
  if (first == FA_GUARD_BYTES) return true;
  const char word[2] = {(char)(FA_PATTERN_GUARD & 0xff), (char)(FA_PATTERN_GUARD >> 8)};
  for (size_t i = first; i < FA_GUARD_BYTES; ++i)
    if (p[i] != word[i & 1]) last = i, ++changed;
  /* The nearest to the payload is the telling one: how far out of its bounds the subject wrote. */
  const size_t nearest = front ? FA_GUARD_BYTES - last : first;
  snprintf(where, where_size, "%s guard of %s: %zu byte%s overwritten, the nearest %zu byte%s %s",
           front ? "front" : "back", name, changed, changed == 1 ? "" : "s", nearest, nearest == 1 ? "" : "s",
           front ? "before its buffer" : "past its buffer's end");
  return false;
}

bool fa_tensors_guards_intact(const fa_tensors *set, char *where, size_t where_size) {
  for (int i = 0; i < FA_T_COUNT; ++i) {
    const fa_buffer *b = &set->buffer[i];
    const char *name = fa_tensor_id_name((fa_tensor_id)i);
    if (b->base == NULL) continue;
    if (!guard_intact(b, true, name, where, where_size)) return false;
    if (!guard_intact(b, false, name, where, where_size)) return false;
  }
  return true;
}

/* ---- gaps ---- */

/* Axes of more than one entry, largest stride first; returns their number. */
static int sorted_axes(const fa_tensor *t, int *axis) {
  int n = 0;
  for (int a = 0; a < t->rank; ++a) {
    if (t->shape[a] <= 1) continue;
    int at = n++;
    for (; at > 0 && t->stride[axis[at - 1]] < t->stride[a]; --at) axis[at] = axis[at - 1];
    axis[at] = a;
  }
  return n;
}

/* True if the elements are exactly a run of `count` consecutive ones, each once. */
static bool is_dense(const fa_tensor *t) {
  int axis[FA_MAX_RANK];
  const int n = sorted_axes(t, axis);
  int64_t step = 1;
  for (int i = n - 1; i >= 0; --i) {
    if (t->stride[axis[i]] != step) return false;
    step *= t->shape[axis[i]];
  }
  return true;
}

/* Sets used[] (one byte per element of the buffer) where tensor t, which lives in it, has an element. */
static void mark_used(const fa_tensor *t, const fa_buffer *b, unsigned char *used) {
  const int64_t size = (int64_t)fa_dtype_size(t->dtype), n = fa_tensor_count(t);
  if (n == 0) return;
  const int64_t first = (t->data - fa_buffer_payload(b)) / size;
  const int64_t inner = t->rank ? t->shape[t->rank - 1] : 1, step = t->rank ? t->stride[t->rank - 1] : 0;
  for (int64_t at = 0; at < n; at += inner) {
    int64_t index[FA_MAX_RANK] = {0};
    fa_tensor_unravel(t, at, index);
    unsigned char *row = used + first + fa_tensor_offset(t, index) / size;
    for (int64_t i = 0; i < inner; ++i) row[i * step] = 1;
  }
}

bool fa_tensors_gaps_intact(const fa_tensors *set, fa_tensor_id id, fa_poison poison, char *where,
                            size_t where_size) {
  const fa_tensor *t = &set->t[id];
  const fa_buffer *b = &set->buffer[id];
  const int64_t size = (int64_t)fa_dtype_size(t->dtype), n = (int64_t)b->bytes / size;
  if (t->data == NULL || b->base == NULL) return true; /* absent, or a view: checked with its owner */
  if (is_dense(t) && fa_tensor_count(t) == n) return true;
  unsigned char *used = calloc((size_t)n + 1, 1);
  FA_ASSERT(used != NULL);
  for (int i = 0; i < FA_T_COUNT; ++i)
    if (set->t[i].data && set->owner[i] == (int)id) mark_used(&set->t[i], b, used);
  fa_tensor flat = {.dtype = t->dtype, .rank = 1, .shape = {n}, .stride = {1}, .data = fa_buffer_payload(b)};
  int64_t first = -1, changed = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (used[i] || fa_tensor_is_poison(&flat, &i, poison)) continue;
    if (changed++ == 0) first = i;
  }
  free(used);
  if (changed == 0) return true;
  snprintf(where, where_size,
           "gaps of %s: %" PRId64 " element%s written that the tensor's strides skip, the first %" PRId64
           " elements after element 0",
           fa_tensor_id_name(id), changed, changed == 1 ? "" : "s", first - (t->data - flat.data) / size);
  return false;
}

/* ---- inputs unchanged ---- */

/* Writes "name[1,2,3,4]" for the element of t that covers the byte at `offset` from t's data, or returns
 * false. Axes with larger strides are divided out first, which is right for every layout without overlaps. */
static bool name_element(const fa_tensor *t, const char *name, int64_t offset, char *out, size_t out_size) {
  int axis[FA_MAX_RANK];
  const int n = sorted_axes(t, axis);
  int64_t index[FA_MAX_RANK] = {0}, rest = offset / (int64_t)fa_dtype_size(t->dtype);
  if (offset < 0 || fa_tensor_count(t) == 0) return false;
  for (int i = 0; i < n && t->stride[axis[i]] > 0; ++i) {
    index[axis[i]] = rest / t->stride[axis[i]];
    rest %= t->stride[axis[i]];
    if (index[axis[i]] >= t->shape[axis[i]]) return false;
  }
  if (rest != 0) return false;
  size_t used = (size_t)snprintf(out, out_size, "%s[", name);
  for (int a = 0; a < t->rank && used < out_size; ++a)
    used += (size_t)snprintf(out + used, out_size - used, "%s%" PRId64, a ? "," : "", index[a]);
  if (used < out_size) snprintf(out + used, out_size - used, "]");
  return true;
}

static void describe_change(const fa_tensors *set, int owner, int64_t byte, int64_t changed, char *where,
                            size_t where_size) {
  char element[160] = "";
  for (int i = 0; i < FA_T_COUNT; ++i) {
    const fa_tensor *t = &set->t[i];
    if (t->data == NULL || set->owner[i] != owner) continue;
    const int64_t start = t->data - fa_buffer_payload(&set->buffer[owner]);
    if (name_element(t, fa_tensor_id_name((fa_tensor_id)i), byte - start, element, sizeof element)) break;
  }
  const char *name = fa_tensor_id_name((fa_tensor_id)owner);
  if (element[0])
    snprintf(where, where_size, "input %s was modified: %" PRId64 " byte%s, the first in %s", name, changed,
             changed == 1 ? "" : "s", element);
  else
    snprintf(where, where_size,
             "input %s was modified: %" PRId64 " byte%s, the first in a gap, byte %" PRId64 " of the buffer",
             name, changed, changed == 1 ? "" : "s", byte);
}

bool fa_tensors_inputs_equal(const fa_tensors *a, const fa_tensors *b, char *where, size_t where_size) {
  const bool appends = a->t[FA_T_K_NEW].data != NULL && fa_tensor_count(&a->t[FA_T_K_NEW]) > 0;
  for (int i = 0; i < FA_T_COUNT; ++i) {
    if (fa_tensor_id_is_output((fa_tensor_id)i) || a->buffer[i].base == NULL) continue;
    if (appends && (i == FA_T_K || i == FA_T_V)) continue;
    FA_ASSERT(b->buffer[i].base && a->buffer[i].bytes == b->buffer[i].bytes);
    const char *p = fa_buffer_payload(&a->buffer[i]), *q = fa_buffer_payload(&b->buffer[i]);
    const size_t bytes = a->buffer[i].bytes;
    if (bytes == 0 || memcmp(p, q, bytes) == 0) continue;
    int64_t first = -1, changed = 0;
    for (size_t at = 0; at < bytes; ++at)
      if (p[at] != q[at] && changed++ == 0) first = (int64_t)at;
    describe_change(a, i, first, changed, where, where_size);
    return false;
  }
  return true;
}
