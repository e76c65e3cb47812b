#include "gpu/contract/blocks.h"

#include <string.h>

/* One list: n_q rows of n_k places into n_k rows of n_q places. */
static void turn(const int32_t *count, const int32_t *index, int64_t n_q, int64_t n_k, int32_t *to_count,
                 int32_t *to_index) {
  for (int64_t q = 0; q < n_q; ++q)
    for (int64_t i = 0; i < count[q]; ++i) {
      const int32_t k = index[q * n_k + i];
      to_index[k * n_q + to_count[k]++] = (int32_t)q;
    }
}

static void clear(const fa_tensor *t) {
  memset(t->data, 0, (size_t)fa_tensor_count(t) * sizeof(int32_t));
}

fa_status fa_contract_turn_lists(const fa_tensors *call, fa_tensor_id counts, fa_tensor_id indices,
                                 fa_tensors *set, fa_error *err) {
  const fa_tensor *index = &call->t[indices];
  if (!index->data) return FA_OK;
  const int64_t *s = index->shape, n_q = s[2], n_k = s[3];
  const int64_t count_shape[3] = {s[0], s[1], n_k}, index_shape[4] = {s[0], s[1], n_k, n_q};
  fa_status status = fa_tensors_add(set, counts, FA_I32, 3, count_shape, NULL, 0, err);
  if (status == FA_OK) status = fa_tensors_add(set, indices, FA_I32, 4, index_shape, NULL, 0, err);
  if (status != FA_OK) return status;
  clear(&set->t[counts]);
  clear(&set->t[indices]);
  const int32_t *from_count = (const int32_t *)call->t[counts].data, *from = (const int32_t *)index->data;
  int32_t *to_count = (int32_t *)set->t[counts].data, *to = (int32_t *)set->t[indices].data;
  for (int64_t row = 0; row < s[0] * s[1]; ++row)
    turn(from_count + row * n_q, from + row * n_q * n_k, n_q, n_k, to_count + row * n_k,
         to + row * n_k * n_q);
  return FA_OK;
}
