#include "cases/tensors/set.h"

#include "cases/tensors/guard.h"
#include "cases/threads/bulk.h"
#include "cases/vocabulary/problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- elements ---- */

int64_t fa_tensor_count(const fa_tensor *t) {
  if (t->data == NULL) return 0;
  int64_t n = 1;
  for (int a = 0; a < t->rank; ++a) n *= t->shape[a];
  return n;
}

int64_t fa_tensor_offset(const fa_tensor *t, const int64_t *index) {
  int64_t offset = 0;
  for (int a = 0; a < t->rank; ++a) offset += index[a] * t->stride[a];
  return offset * (int64_t)fa_dtype_size(t->dtype);
}

void fa_tensor_unravel(const fa_tensor *t, int64_t position, int64_t *index) {
  for (int a = t->rank - 1; a >= 0; --a) {
    index[a] = position % t->shape[a];
    position /= t->shape[a];
  }
}

double fa_tensor_get(const fa_tensor *t, const int64_t *index) {
  return fa_load(t->dtype, t->data + fa_tensor_offset(t, index));
}

void fa_tensor_set(const fa_tensor *t, const int64_t *index, double value) {
  fa_store(t->dtype, t->data + fa_tensor_offset(t, index), value);
}

void fa_tensor_copy(const fa_tensor *to, const fa_tensor *from) {
  const size_t size = fa_dtype_size(to->dtype);
  const int64_t n = fa_tensor_count(to), inner = to->rank ? to->shape[to->rank - 1] : 1;
  const int64_t to_step = to->rank ? to->stride[to->rank - 1] : 1;
  const int64_t from_step = from->rank ? from->stride[from->rank - 1] : 1;
  int64_t index[FA_MAX_RANK] = {0};
  for (int64_t at = 0; at < n; at += inner) {
    fa_tensor_unravel(to, at, index);
    char *row = to->data + fa_tensor_offset(to, index);
    const char *source = from->data + fa_tensor_offset(from, index);
    if (to_step == 1 && from_step == 1)
      memcpy(row, source, (size_t)inner * size);
    else
      for (int64_t i = 0; i < inner; ++i)
        memcpy(row + i * to_step * (int64_t)size, source + i * from_step * (int64_t)size, size);
  }
}

void fa_tensor_shape_text(const fa_tensor *t, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, "%s [", fa_dtype_name(t->dtype));
  for (int a = 0; a < t->rank && used < size; ++a)
    used += (size_t)snprintf(text + used, size - used, a ? ",%lld" : "%lld", (long long)t->shape[a]);
  if (used < size) snprintf(text + used, size - used, "]");
}

/* ---- the set ---- */

/* Number of elements from the first to one past the last; 0 for an empty tensor. False if it, or the count,
 * exceeds the limit of a tensor. */
static bool span_of(int rank, const int64_t *shape, const int64_t *stride, int64_t *span) {
  int64_t last = 0, count = 1;
  bool empty = false;
  for (int a = 0; a < rank; ++a) {
    int64_t reach;
    if (shape[a] < 0 || stride[a] < 0) return false;
    if (shape[a] == 0) {
      empty = true;
      continue;
    }
    if (__builtin_mul_overflow(count, shape[a], &count) || count > FA_MAX_ELEMENTS) return false;
    if (__builtin_mul_overflow(shape[a] - 1, stride[a], &reach)) return false;
    if (__builtin_add_overflow(last, reach, &last) || last >= FA_MAX_SPAN) return false;
  }
  *span = empty ? 0 : last + 1;
  return true;
}

static void row_major(int rank, const int64_t *shape, int64_t *stride) {
  int64_t step = 1;
  for (int a = rank - 1; a >= 0; --a) {
    stride[a] = step;
    if (shape[a] > 1 && __builtin_mul_overflow(step, shape[a], &step)) step = INT64_MAX;
  }
}

/* Sets *t; *span as in span_of. */
static fa_status describe(fa_tensor *t, fa_tensor_id id, fa_dtype dtype, int rank, const int64_t *shape,
                          const int64_t *stride, int64_t *span, fa_error *err) {
  FA_ASSERT((unsigned)id < FA_T_COUNT && rank >= 0 && rank <= FA_MAX_RANK);
  *t = (fa_tensor){.dtype = dtype, .rank = rank};
  for (int a = 0; a < rank; ++a) t->shape[a] = shape[a];
  if (stride)
    for (int a = 0; a < rank; ++a) t->stride[a] = stride[a];
  else
    row_major(rank, shape, t->stride);
  if (!span_of(rank, t->shape, t->stride, span))
    return fa_fail(err, FA_ERR_INPUT, "%s: shape and strides span more than %lld elements, or are negative",
                   fa_tensor_id_name(id), (long long)FA_MAX_SPAN);
  return FA_OK;
}

fa_status fa_tensors_add(fa_tensors *set, fa_tensor_id id, fa_dtype dtype, int rank, const int64_t *shape,
                         const int64_t *stride, int64_t offset_elements, fa_error *err) {
  return fa_tensors_add_padded(set, id, dtype, rank, shape, stride, offset_elements, 0, err);
}

/* ---- memory that elements cover ---- */

static int by_stride(const fa_tensor *t, int *axis) {
  int n = 0;
  for (int a = 0; a < t->rank; ++a) {
    if (t->shape[a] <= 1 || t->stride[a] == 0) continue;
    int at = n++;
    for (; at > 0 && t->stride[axis[at - 1]] > t->stride[a]; --at) axis[at] = axis[at - 1];
    axis[at] = a;
  }
  return n;
}

/* The bytes that t's elements cover, with t->data first_byte into the payload; axes whose strides leave only
 * small gaps count as covered. The caller frees *spans. FA_ERR_UNSUPPORTED: more than FA_MAX_ISLANDS. */
static fa_status spans_of(const fa_tensor *t, size_t first_byte, fa_span **spans, int64_t *n, fa_error *err) {
  const size_t size = fa_dtype_size(t->dtype), near = 65536;
  size_t length = size;
  int axis[FA_MAX_RANK], outer[FA_MAX_RANK], n_outer = 0;
  const int n_axes = by_stride(t, axis);
  int64_t count = 1;
  *n = 0;
  for (int i = 0; i < n_axes; ++i) {
    const size_t step = (size_t)t->stride[axis[i]] * size;
    if (n_outer == 0 && step <= length + near) {
      length += (size_t)(t->shape[axis[i]] - 1) * step;
      continue;
    }
    outer[n_outer++] = axis[i];
    if (__builtin_mul_overflow(count, t->shape[axis[i]], &count) || count > FA_MAX_ISLANDS)
      return fa_fail(err, FA_ERR_UNSUPPORTED, "its elements lie in more than %d places far apart",
                     FA_MAX_ISLANDS);
  }
  *spans = malloc((size_t)count * sizeof **spans);
  if (!*spans) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  for (int64_t k = 0; k < count; ++k) {
    size_t begin = first_byte;
    int64_t rest = k;
    for (int i = 0; i < n_outer; ++i) {
      begin += (size_t)(rest % t->shape[outer[i]]) * (size_t)t->stride[outer[i]] * size;
      rest /= t->shape[outer[i]];
    }
    (*spans)[(*n)++] = (fa_span){begin, begin + length};
  }
  return FA_OK;
}

/* A buffer for a tensor whose first element is first_byte into it: virtual if that saves enough. */
static fa_status make_buffer(fa_buffer *b, const fa_tensor *t, int64_t elements, size_t first_byte,
                             size_t bytes, fa_error *err) {
  fa_span *spans = NULL;
  int64_t n = 0;
  fa_error why;
  if (elements == 0 || bytes <= FA_VIRTUAL_BYTES) return fa_buffer_alloc(b, bytes, err);
  fa_status status = spans_of(t, first_byte, &spans, &n, &why);
  if (status == FA_OK && fa_spans_are_sparse(spans, n, bytes))
    status = fa_buffer_reserve(b, bytes, spans, n, err);
  else if (fa_buffer_alloc(b, bytes, err) == FA_OK) /* too many places, but it fits in memory */
    status = FA_OK;
  else
    status = status == FA_OK ? FA_ERR_MEMORY : fa_fail(err, status, "%s", why.text);
  free(spans);
  return status;
}

fa_status fa_tensors_add_padded(fa_tensors *set, fa_tensor_id id, fa_dtype dtype, int rank,
                                const int64_t *shape, const int64_t *stride, int64_t offset_elements,
                                int64_t tail_elements, fa_error *err) {
  int64_t elements;
  fa_tensor t;
  fa_status status = describe(&t, id, dtype, rank, shape, stride, &elements, err);
  if (status) return status;
  FA_ASSERT(set->buffer[id].base == NULL);
  if (offset_elements < 0 || tail_elements < 0 || offset_elements > FA_MAX_SPAN ||
      tail_elements > FA_MAX_SPAN)
    return fa_fail(err, FA_ERR_INPUT, "%s: offset out of range", fa_tensor_id_name(id));
  const int64_t all = elements + offset_elements + tail_elements;
  const size_t size = fa_dtype_size(dtype);
  status =
      make_buffer(&set->buffer[id], &t, elements, (size_t)offset_elements * size, (size_t)all * size, err);
  if (status) {
    fa_error_prefix(err, "%s", fa_tensor_id_name(id));
    return status;
  }
  t.data = fa_buffer_payload(&set->buffer[id]) + offset_elements * (int64_t)fa_dtype_size(dtype);
  set->t[id] = t;
  set->owner[id] = (int)id;
  if (fa_tensor_id_is_output(id))
    fa_tensors_poison(set, id, FA_POISON_A);
  else
    fa_buffer_fill(&set->buffer[id], fa_input_gap(dtype));
  return FA_OK;
}

fa_status fa_tensors_add_view(fa_tensors *set, fa_tensor_id id, fa_tensor_id owner, int rank,
                              const int64_t *shape, const int64_t *stride, int64_t offset_elements,
                              fa_error *err) {
  int64_t elements;
  fa_tensor t;
  FA_ASSERT(id != owner && set->t[owner].data && set->owner[owner] == (int)owner);
  fa_status status = describe(&t, id, set->t[owner].dtype, rank, shape, stride, &elements, err);
  if (status) return status;
  const int64_t size = (int64_t)fa_dtype_size(t.dtype);
  const int64_t before = (set->t[owner].data - fa_buffer_payload(&set->buffer[owner])) / size;
  const int64_t room = (int64_t)set->buffer[owner].bytes / size - before;
  if (offset_elements < -before || offset_elements > room || elements > room - offset_elements)
    return fa_fail(err, FA_ERR_INPUT, "%s: reaches out of %s's buffer", fa_tensor_id_name(id),
                   fa_tensor_id_name(owner));
  t.data = set->t[owner].data + offset_elements * size;
  if (elements > 0 && fa_buffer_is_virtual(&set->buffer[owner])) {
    fa_span *spans = NULL;
    int64_t n = 0;
    status = spans_of(&t, (size_t)(before + offset_elements) * (size_t)size, &spans, &n, err);
    if (status == FA_OK) status = fa_buffer_touch(&set->buffer[owner], spans, n, fa_input_gap(t.dtype), err);
    free(spans);
    if (status != FA_OK) return status;
  }
  set->t[id] = t;
  set->owner[id] = (int)owner;
  return FA_OK;
}

void fa_tensors_free(fa_tensors *set) {
  for (int i = 0; i < FA_T_COUNT; ++i) fa_buffer_free(&set->buffer[i]);
  memset(set, 0, sizeof *set);
}

/* With a poison an output's bytes are not copied, which it would overwrite. */
static fa_status clone_buffer(fa_tensors *dst, const fa_tensors *src, fa_tensor_id id,
                              const fa_poison *poison, fa_error *err) {
  if (!poison || !fa_tensor_id_is_output(id)) return fa_buffer_clone(&dst->buffer[id], &src->buffer[id], err);
  const fa_status status = fa_buffer_alloc_like(&dst->buffer[id], &src->buffer[id], err);
  dst->t[id].dtype = src->t[id].dtype;
  if (status == FA_OK) fa_tensors_poison(dst, id, *poison);
  return status;
}

/* Tensors where those of src are in the buffers that dst has. */
static void clone_places(fa_tensors *dst, const fa_tensors *src) {
  for (int i = 0; i < FA_T_COUNT; ++i) {
    if (src->t[i].data == NULL) continue;
    const int owner = src->owner[i];
    FA_ASSERT(src->buffer[owner].base); /* a tensor in memory owned elsewhere cannot be cloned */
    dst->t[i] = src->t[i];
    dst->owner[i] = owner;
    dst->t[i].data =
        fa_buffer_payload(&dst->buffer[owner]) + (src->t[i].data - fa_buffer_payload(&src->buffer[owner]));
  }
}

static fa_status clone(fa_tensors *dst, const fa_tensors *src, const fa_poison *poison, fa_error *err) {
  memset(dst, 0, sizeof *dst);
  for (int i = 0; i < FA_T_COUNT; ++i) {
    if (src->buffer[i].base == NULL) continue;
    fa_status status = clone_buffer(dst, src, (fa_tensor_id)i, poison, err);
    if (status) {
      fa_error_prefix(err, "%s", fa_tensor_id_name((fa_tensor_id)i));
      fa_tensors_free(dst);
      return status;
    }
  }
  clone_places(dst, src);
  return FA_OK;
}

fa_status fa_tensors_clone(fa_tensors *dst, const fa_tensors *src, fa_error *err) {
  return clone(dst, src, NULL, err);
}

fa_status fa_tensors_clone_poisoned(fa_tensors *dst, const fa_tensors *src, fa_poison poison, fa_error *err) {
  return clone(dst, src, &poison, err);
}

static size_t in_block(const fa_buffer *b) {
  const size_t bytes = b->base ? b->bytes + 2 * FA_GUARD_BYTES : 0;
  return (bytes + FA_BLOCK_ALIGNMENT - 1) / FA_BLOCK_ALIGNMENT * FA_BLOCK_ALIGNMENT;
}

size_t fa_tensors_block_bytes(const fa_tensors *src) {
  size_t bytes = 0;
  for (int i = 0; i < FA_T_COUNT; ++i) {
    if (fa_buffer_is_virtual(&src->buffer[i])) return 0;
    bytes += in_block(&src->buffer[i]);
  }
  return bytes;
}

void fa_tensors_clone_poisoned_into(fa_tensors *dst, const fa_tensors *src, fa_poison poison, char *block) {
  memset(dst, 0, sizeof *dst);
  for (int i = 0; i < FA_T_COUNT; ++i) {
    const fa_buffer *from = &src->buffer[i];
    if (from->base == NULL) continue;
    dst->buffer[i] = fa_buffer_at(block, from->bytes);
    dst->t[i].dtype = src->t[i].dtype;
    if (fa_tensor_id_is_output((fa_tensor_id)i))
      fa_tensors_poison(dst, (fa_tensor_id)i, poison);
    else
      fa_bulk_copy(fa_buffer_payload(&dst->buffer[i]), fa_buffer_payload(from), from->bytes);
    block += in_block(from);
  }
  clone_places(dst, src);
}
