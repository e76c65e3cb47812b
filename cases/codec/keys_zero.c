/* The key "zero". */
#include "cases/codec/keys.h"

/* Reads [[from, to] ...] into pairs. */
static fa_status read_pairs(fa_case_reader *r, const cJSON *v, int32_t *pairs) {
  char buffer[80];
  int64_t index = 0, n = 0;
  for (const cJSON *e = v->child; e; e = e->next, ++index) {
    size_t mark = fa_read_push_index(r, index);
    if (!cJSON_IsArray(e) || cJSON_GetArraySize(e) != 2)
      return fa_read_fail(r, true, "%s is not [from, to]", fa_read_describe(e, buffer));
    for (int i = 0; i < 2; ++i) {
      int64_t x = 0;
      size_t inner = fa_read_push_index(r, i);
      TRY(fa_read_int(r, cJSON_GetArrayItem(e, i), 0, FA_MAX_LENGTH, &x));
      fa_read_pop(r, inner);
      pairs[n++] = (int32_t)x;
    }
    fa_read_pop(r, mark);
  }
  return FA_OK;
}

static fa_status read_ranges(fa_case_reader *r, const cJSON *v, fa_tensor_id id) {
  char buffer[80];
  if (!cJSON_IsArray(v) || !v->child)
    return fa_read_fail(r, true, "%s is not [[from, to] ...]",
                        cJSON_IsArray(v) ? "an empty array" : fa_read_describe(v, buffer));
  fa_int32_array *a = &r->c.zero[id];
  if (fa_int32_array_set(a, NULL, 2 * (int64_t)cJSON_GetArraySize(v)) != FA_OK)
    return fa_fail(r->err, FA_ERR_MEMORY, "out of memory");
  return read_pairs(r, v, a->v);
}

#define ZERO_READER(name, id)                                                                                \
  READER(name) {                                                                                             \
    return read_ranges(r, v, id);                                                                            \
  }
ZERO_READER(read_zero_q, FA_T_Q)
ZERO_READER(read_zero_k, FA_T_K)
ZERO_READER(read_zero_v, FA_T_V)
ZERO_READER(read_zero_do, FA_T_DO)
static const fa_case_key zero_keys[] = {
    {"q", read_zero_q}, {"k", read_zero_k}, {"v", read_zero_v}, {"do", read_zero_do}, {0}};
fa_status fa_read_zero(fa_case_reader *r, const cJSON *v) {
  return fa_read_object(r, v, zero_keys);
}
