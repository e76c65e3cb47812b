#include "cases/tensors/guard.h"

#include "cases/tensors/table.h"
#include "cases/threads/bulk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- patterns in elements ---- */

/* +infinity of a floating-point type, e4m3's largest number; for f32 as two 16-bit words, the lower one 0. */
static uint32_t infinity_of(fa_dtype dtype) {
  if (fa_dtype_is_float8(dtype)) return dtype == FA_E4M3 ? 0x7e7e7e7e : 0x7c7c7c7c;
  return dtype == FA_F16 ? 0x7c007c00 : dtype == FA_BF16 ? 0x7f807f80 : dtype == FA_F32 ? 0x7f800000 : 0;
}

uint16_t fa_input_gap(fa_dtype dtype) {
  const bool eight = fa_dtype_is_float8(dtype) || dtype == FA_I8;
  return eight ? FA_PATTERN_INPUT_GAP_8 : FA_PATTERN_INPUT_GAP;
}

static uint32_t poison_pattern(fa_poison poison, fa_dtype dtype) {
  const bool eight = fa_dtype_is_float8(dtype);
  switch (poison) {
  case FA_POISON_A:
    return FA_PATTERN_WORD(eight ? FA_PATTERN_POISON_A_8 : FA_PATTERN_POISON_A);
  case FA_POISON_B:
    return FA_PATTERN_WORD(eight ? FA_PATTERN_POISON_B_8 : FA_PATTERN_POISON_B);
  case FA_POISON_INF:
    return infinity_of(dtype);
  case FA_POISON_ZERO:
    return 0;
  default:
    return FA_PATTERN_WORD(FA_PATTERN_POISON_FINITE);
  }
}

static unsigned char pattern_byte(const char *at, uint32_t pattern) {
  return (unsigned char)(pattern >> 8 * ((uintptr_t)at & 3));
}

static bool bytes_are(const char *p, size_t n, uint32_t pattern) {
  for (size_t i = 0; i < n; ++i)
    if ((unsigned char)p[i] != pattern_byte(p + i, pattern)) return false;
  return true;
}

bool fa_tensor_has_pattern(const fa_tensor *t, const int64_t *index, uint16_t pattern) {
  return bytes_are(t->data + fa_tensor_offset(t, index), fa_dtype_size(t->dtype), FA_PATTERN_WORD(pattern));
}

bool fa_tensor_is_poison(const fa_tensor *t, const int64_t *index, fa_poison poison) {
  return bytes_are(t->data + fa_tensor_offset(t, index), fa_dtype_size(t->dtype),
                   poison_pattern(poison, t->dtype));
}

void fa_tensors_poison(fa_tensors *set, fa_tensor_id id, fa_poison poison) {
  FA_ASSERT(fa_tensor_id_is_output(id));
  if (set->buffer[id].base) fa_buffer_fill_word(&set->buffer[id], poison_pattern(poison, set->t[id].dtype));
}

/* ---- guards ---- */

static bool guard_intact(const fa_buffer *b, bool front, const char *name, char *where, size_t where_size) {
  const char *p = front ? b->base : fa_buffer_payload(b) + b->bytes;
  size_t first = fa_pattern_first_difference(p, FA_GUARD_BYTES, FA_PATTERN_WORD(FA_PATTERN_GUARD)),
         last = FA_GUARD_BYTES, changed = 0;
  if (first == FA_GUARD_BYTES) return true;
  const char word[2] = {(char)(FA_PATTERN_GUARD & 0xff), (char)(FA_PATTERN_GUARD >> 8)};
  for (size_t i = first; i < FA_GUARD_BYTES; ++i)
    if (p[i] != word[i & 1]) last = i, ++changed;
  /* The difference nearest to the payload tells most: how far outside its bounds the subject wrote. */
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

/* Axes longer than 1, largest stride first; returns their number. */
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

bool fa_tensor_is_dense(const fa_tensor *t) {
  int axis[FA_MAX_RANK];
  const int n = sorted_axes(t, axis);
  int64_t step = 1;
  for (int i = n - 1; i >= 0; --i) {
    if (t->stride[axis[i]] != step) return false;
    step *= t->shape[axis[i]];
  }
  return true;
}

/* Sets used[] (one byte per element of the span) where tensor t, which is in b, has an element. */
static void mark_used(const fa_tensor *t, const fa_buffer *b, fa_span span, unsigned char *used) {
  const int64_t size = (int64_t)fa_dtype_size(t->dtype), n = fa_tensor_count(t);
  if (n == 0) return;
  const int64_t first = (t->data - fa_buffer_payload(b) - (int64_t)span.begin) / size;
  const int64_t room = (int64_t)(span.end - span.begin) / size;
  const int64_t inner = t->rank ? t->shape[t->rank - 1] : 1, step = t->rank ? t->stride[t->rank - 1] : 0;
  for (int64_t at = 0; at < n; at += inner) {
    int64_t index[FA_MAX_RANK] = {0};
    fa_tensor_unravel(t, at, index);
    const int64_t row = first + fa_tensor_offset(t, index) / size;
    if (row >= room || row + (inner - 1) * step < 0) continue; /* on another island */
    for (int64_t i = 0; i < inner; ++i)
      if (row + i * step >= 0 && row + i * step < room) used[row + i * step] = 1;
  }
}

/* Number of unused elements of one span that changed. Sets *first to the position in the payload of the first
 * one, unless it is set already. */
static int64_t changed_gaps(const fa_tensors *set, fa_tensor_id id, fa_span span, fa_poison poison,
                            int64_t *first) {
  const fa_tensor *t = &set->t[id];
  const fa_buffer *b = &set->buffer[id];
  const int64_t size = (int64_t)fa_dtype_size(t->dtype), n = (int64_t)(span.end - span.begin) / size;
  unsigned char *used = calloc((size_t)n + 1, 1);
  FA_ASSERT(used != NULL);
  for (int i = 0; i < FA_T_COUNT; ++i)
    if (set->t[i].data && set->owner[i] == (int)id) mark_used(&set->t[i], b, span, used);
  const fa_tensor flat = {
      .dtype = t->dtype, .rank = 1, .shape = {n}, .stride = {1}, .data = fa_buffer_payload(b) + span.begin};
  int64_t changed = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (used[i] || fa_tensor_is_poison(&flat, &i, poison)) continue;
    if (changed++ == 0 && *first < 0) *first = (int64_t)span.begin / size + i;
  }
  free(used);
  return changed;
}

bool fa_tensors_gaps_intact(const fa_tensors *set, fa_tensor_id id, fa_poison poison, char *where,
                            size_t where_size) {
  const fa_tensor *t = &set->t[id];
  const fa_buffer *b = &set->buffer[id];
  const int64_t size = (int64_t)fa_dtype_size(t->dtype);
  if (t->data == NULL || b->base == NULL) return true; /* absent, or a view: checked with its owner */
  if (fa_tensor_is_dense(t) && fa_tensor_count(t) == (int64_t)b->bytes / size) return true;
  int64_t first = -1, changed = 0;
  for (int i = 0; i < fa_buffer_n_spans(b); ++i)
    changed += changed_gaps(set, id, fa_buffer_span(b, i), poison, &first);
  if (changed == 0) return true;
  snprintf(where, where_size,
           "gaps of %s: %" PRId64 " element%s written that the tensor's strides skip, the first %" PRId64
           " elements after element 0",
           fa_tensor_id_name(id), changed, changed == 1 ? "" : "s",
           first - (t->data - fa_buffer_payload(b)) / size);
  return false;
}

/* ---- inputs unchanged ---- */

/* Writes "name[1,2,3,4]" for the element of t that covers the byte at `offset` from t's data, or returns
 * false. It divides out axes with larger strides first, which is right for every layout without overlaps. */
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
    if (appends && fa_tensor_describe((fa_tensor_id)i)->direction == FA_TENSOR_UPDATED) continue;
    FA_ASSERT(b->buffer[i].base && a->buffer[i].bytes == b->buffer[i].bytes);
    const char *p = fa_buffer_payload(&a->buffer[i]), *q = fa_buffer_payload(&b->buffer[i]);
    int64_t first = -1, changed = 0;
    for (int k = 0; k < fa_buffer_n_spans(&a->buffer[i]); ++k) {
      const fa_span s = fa_buffer_span(&a->buffer[i], k);
      if (fa_bulk_equal(p + s.begin, q + s.begin, s.end - s.begin)) continue;
      for (size_t at = s.begin; at < s.end; ++at)
        if (p[at] != q[at] && changed++ == 0 && first < 0) first = (int64_t)at;
    }
    if (changed == 0) continue;
    describe_change(a, i, first, changed, where, where_size);
    return false;
  }
  return true;
}
