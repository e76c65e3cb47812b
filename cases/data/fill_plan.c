#include "cases/data/fill_plan.h"

#include "cases/data/build.h"
#include "cases/tensors/guard.h"

#include <stdlib.h>
#include <string.h>

/* ---- which ---- */

/* Every element follows from its own draws and a few numbers of the tensor. */
static bool is_by_element(fa_fill fill, fa_tensor_data data) {
  const fa_fill_info *info = fa_fill_describe(fill);
  if (data == FA_DATA_QUERY || data == FA_DATA_KEY) return !info->by_row;
  return data != FA_DATA_GRADIENT || !info->reads_v;
}

static bool is_expanded(const fa_tensor *t) {
  for (int a = 0; a < t->rank; ++a)
    if (t->shape[a] > 1 && t->stride[a] == 0) return true;
  return false;
}

static bool can_fill(const fa_case *c, const fa_tensors *set, fa_tensor_id id) {
  const fa_tensor *t = &set->t[id];
  const fa_tensor_info *info = fa_tensor_describe(id);
  if (info->axes != FA_AXES_TOKENS || !is_by_element(c->fill[id], info->data)) return false;
  if (c->problem.family == FA_KVCACHE && info->direction == FA_TENSOR_UPDATED) return false;
  if (t->dtype != FA_F16 && t->dtype != FA_BF16 && t->dtype != FA_F32) return false;
  return c->zero[id].n == 0 && !is_expanded(t);
}

static bool is_filled_in(const fa_case *c, const fa_tensors *set, fa_tensor_id id, int owner) {
  return fa_tensor_is_filled(id) && set->owner[id] == owner && fa_tensor_count(&set->t[id]) > 0 &&
         !fa_tensor_is_in_k(&c->problem, id);
}

fa_tensor_bits fa_fill_buffers(const fa_case *c, const fa_tensors *set) {
  fa_tensor_bits buffers = 0;
  for (int owner = 0; owner < FA_T_COUNT; ++owner) {
    const fa_buffer *b = &set->buffer[owner];
    int can = 0, all = 0;
    if (!b->base || fa_buffer_is_virtual(b)) continue;
    for (int i = 0; i < FA_T_COUNT; ++i) {
      if (!is_filled_in(c, set, (fa_tensor_id)i, owner)) continue;
      ++all;
      can += can_fill(c, set, (fa_tensor_id)i);
    }
    if (all > 0 && can == all) buffers |= (fa_tensor_bits)1 << owner;
  }
  return buffers;
}

int64_t fa_fill_count(const fa_tensors *set, fa_tensor_bits buffers) {
  int64_t n = 0;
  for (int i = 0; i < FA_T_COUNT; ++i)
    if (set->t[i].data && buffers >> set->owner[i] & 1) n += fa_tensor_count(&set->t[i]);
  return n;
}

/* ---- the plan ---- */

/* Slots of sequence b that are filled, and where the first slot is: of keys, those that its queries may see. */
static fa_fill_sequence sequence_of(const fa_case *c, const fa_tensor *t, bool keys, int64_t b) {
  const fa_sequence e = fa_case_sequence(&c->problem, b);
  const bool varlen = t->rank == 3;
  const int64_t start = !varlen ? 0 : keys ? e.k_start : e.q_start;
  fa_fill_sequence s = {.b = b, .sq = e.sq, .end = varlen ? e.sq : t->shape[1]};
  s.at = varlen ? start * t->stride[0] : b * t->stride[0];
  if (keys) s.begin = e.leftpad, s.end = e.leftpad + e.sk;
  return s;
}

static void add_tensor(const fa_case *c, const fa_tensors *set, fa_tensor_id id, fa_fill_plan *x) {
  const fa_tensor *t = &set->t[id];
  const fa_buffer *b = &set->buffer[set->owner[id]];
  const fa_fill_image *image = &x->image[x->n_images - 1];
  const int last = t->rank - 1;
  fa_fill_tensor *to = &x->tensor[x->n_tensors++];
  *to = (fa_fill_tensor){.numbers = fa_fill_numbers_of(c, id, c->fill[id], t->shape[last]),
                         .seed = fa_fill_seed(c->data_seed, id),
                         .dtype = t->dtype,
                         .first_row = x->n_rows,
                         .first_sequence = x->n_sequences,
                         .n_sequences = c->problem.batch,
                         .heads = t->shape[last - 1],
                         .slot_step = t->stride[last - 2],
                         .head_step = t->stride[last - 1],
                         .step = t->stride[last],
                         .to = (int64_t)image->at + (t->data - fa_buffer_payload(b))};
  int64_t rows = 0;
  for (int64_t k = 0; k < to->n_sequences; ++k) {
    fa_fill_sequence *s = &x->sequence[x->n_sequences++];
    *s = sequence_of(c, t, fa_tensor_describe(id)->on_keys, k);
    s->first_row = rows;
    rows += s->end > s->begin ? (s->end - s->begin) * to->heads : 0;
  }
  x->n_rows += rows;
  x->filled |= (fa_tensor_bits)1 << id;
}

static void add_buffer(const fa_case *c, const fa_tensors *set, int owner, fa_fill_plan *x) {
  const size_t bytes = set->buffer[owner].bytes;
  FA_ASSERT(x->n_images < FA_FILL_TENSORS);
  x->image[x->n_images++] = (fa_fill_image){(fa_tensor_id)owner, x->bytes, bytes};
  x->bytes += (bytes + 255) / 256 * 256;
  for (int i = 0; i < FA_T_COUNT; ++i)
    if (is_filled_in(c, set, (fa_tensor_id)i, owner)) add_tensor(c, set, (fa_tensor_id)i, x);
}

fa_status fa_fill_plan_make(const fa_case *c, const fa_tensors *set, fa_tensor_bits buffers,
                            fa_fill_plan *out, fa_error *err) {
  memset(out, 0, sizeof *out);
  out->sequence = calloc((size_t)c->problem.batch * FA_FILL_TENSORS + 1, sizeof *out->sequence);
  if (!out->sequence) return fa_fail(err, FA_ERR_MEMORY, "fill: out of memory");
  for (int owner = 0; owner < FA_T_COUNT; ++owner)
    if (buffers >> owner & 1) add_buffer(c, set, owner, out);
  return FA_OK;
}

void fa_fill_plan_free(fa_fill_plan *plan) {
  free(plan->sequence);
  *plan = (fa_fill_plan){0};
}
