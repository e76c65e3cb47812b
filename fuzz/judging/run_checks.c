#include "fuzz/judging/run_checks.h"

#include "cases/tensors/table.h"
#include "cases/threads/bulk.h"
#include "fuzz/judging/judge.h"
#include "report/text/line.h"

#include <stdio.h>
#include <string.h>

static bool same_bits(const fa_tensor *a, const fa_tensor *b, const int64_t *index) {
  return memcmp(a->data + fa_tensor_offset(a, index), b->data + fa_tensor_offset(b, index),
                fa_dtype_size(a->dtype)) == 0;
}

/* Compares the row of elements from index on. Usually they are contiguous and equal, which takes one
 * memcmp. */
static bool same_row(const fa_tensor *a, const fa_tensor *b, const int64_t *index, int64_t width) {
  const int last = a->rank - 1;
  if (a->stride[last] != 1 || b->stride[last] != 1) return false;
  return memcmp(a->data + fa_tensor_offset(a, index), b->data + fa_tensor_offset(b, index),
                (size_t)width * fa_dtype_size(a->dtype)) == 0;
}

/* True for slots of a sequence's cache row that the call appends to. */
static bool is_appended(const fa_problem *p, const fa_tensors *in, const int64_t *index) {
  const fa_kvcache *kv = &p->kvcache;
  for (int64_t b = 0; b < p->batch; ++b) {
    for (int64_t slot = kv->len.v[b]; slot < kv->len.v[b] + kv->n_new; ++slot) {
      int64_t row = kv->batch_idx.n ? kv->batch_idx.v[b] : b, at = slot;
      if (kv->page_size) {
        int64_t entry[FA_MAX_RANK] = {b, slot / kv->page_size};
        row = (int64_t)fa_tensor_get(&in->t[FA_T_BLOCK_TABLE], entry);
        at = slot % kv->page_size;
      }
      if (index[0] == row && index[1] == at) return true;
    }
  }
  return false;
}

static void check_cache(const fa_problem *p, const fa_tensors *pristine, const fa_tensors *after,
                        fa_tensor_id id, fa_result *r) {
  const fa_tensor *before = &pristine->t[id], *now = &after->t[id];
  const int last = before->rank - 1;
  const int64_t n = fa_tensor_count(before), width = before->shape[last];
  int64_t index[FA_MAX_RANK];
  for (int64_t row = 0; row < n; row += width) {
    fa_tensor_unravel(before, row, index);
    if (same_row(before, now, index, width) || is_appended(p, pristine, index)) continue;
    while (index[last] < width && same_bits(before, now, index)) ++index[last];
    if (index[last] == width) continue;
    char text[128];
    fa_index_text(index, before->rank, text, sizeof text);
    fa_result_raise(r, FA_OOB, "cache %s%s changed, but the call appends elsewhere", fa_tensor_id_name(id),
                    text);
    return;
  }
}

void fa_check_memory(const fa_problem *p, const fa_tensors *pristine, const fa_tensors *after,
                     fa_poison poison, fa_result *r) {
  char where[200] = "";
  if (!fa_tensors_guards_intact(after, where, sizeof where)) fa_result_raise(r, FA_OOB, "%s", where);
  for (int id = 0; id < FA_T_COUNT; ++id) {
    if (!after->t[id].data || !fa_tensor_id_is_output((fa_tensor_id)id)) continue;
    if (!fa_tensors_gaps_intact(after, (fa_tensor_id)id, poison, where, sizeof where))
      fa_result_raise(r, FA_OOB, "%s", where);
  }
  if (!fa_tensors_inputs_equal(pristine, after, where, sizeof where))
    fa_result_raise(r, FA_INPUT_MODIFIED, "%s", where);
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (fa_tensor_is_updated(p, (fa_tensor_id)id)) check_cache(p, pristine, after, (fa_tensor_id)id, r);
}

/* Usually a tensor has no gaps and both runs agree: one memcmp, without a look at rows. Gaps may hold two poisons. */
static bool same_memory(const fa_tensor *a, const fa_tensor *b) {
  for (int axis = 0; axis < a->rank; ++axis)
    if (a->stride[axis] != b->stride[axis]) return false;
  return fa_tensor_is_dense(a) &&
         fa_bulk_equal(a->data, b->data, (size_t)fa_tensor_count(a) * fa_dtype_size(a->dtype));
}

/* True if they differ. */
static bool check_tensor_repeats(const fa_problem *p, const fa_tensors *first, const fa_tensors *second,
                                 fa_tensor_id id, fa_poison second_poison, fa_result *r) {
  const fa_tensor *a = &first->t[id], *b = &second->t[id];
  int64_t n = fa_tensor_count(a), differing = 0, index[FA_MAX_RANK], seen[FA_MAX_RANK] = {0};
  FA_ASSERT(a->rank > 0);
  const int last = a->rank - 1;
  const int64_t width = a->shape[last];
  if (same_memory(a, b)) return false;
  for (int64_t row = 0; row < n; row += width) {
    fa_tensor_unravel(a, row, index);
    if (same_row(a, b, index, width)) continue;
    for (index[last] = 0; index[last] < width; ++index[last]) {
      if (same_bits(a, b, index)) continue;
      if (fa_tensor_is_padding(p, id, index)) continue;
      if (fa_tensor_is_poison(a, index, FA_POISON_A) && fa_tensor_is_poison(b, index, second_poison))
        continue;
      if (differing++ == 0) memcpy(seen, index, sizeof seen);
    }
  }
  if (!differing) return false;
  char text[128];
  fa_index_text(seen, a->rank, text, sizeof text);
  fa_result_raise(
      r, FA_NONDETERMINISTIC, "%s: %lld elements differ between two runs, the first %s: %.9g, then %.9g",
      fa_tensor_id_name(id), (long long)differing, text, fa_tensor_get(a, seen), fa_tensor_get(b, seen));
  return true;
}

bool fa_any_order(const fa_problem *p, const fa_profile *profile, fa_tensor_id id) {
  return !p->deterministic && fa_tensor_sums_in_any_order(profile, id);
}

bool fa_check_repeats(const fa_problem *p, const fa_profile *profile, const fa_tensors *first,
                      const fa_tensors *second, fa_poison second_poison, fa_result *r) {
  bool differ = false;
  for (int id = 0; id < FA_T_COUNT; ++id) {
    if (!first->t[id].data) continue;
    if (!fa_tensor_id_is_output((fa_tensor_id)id) && !fa_tensor_is_updated(p, (fa_tensor_id)id)) continue;
    if (fa_any_order(p, profile, (fa_tensor_id)id)) continue;
    differ |= check_tensor_repeats(p, first, second, (fa_tensor_id)id, second_poison, r);
  }
  return differ;
}
