/* Rows of the inputs that are 0 regardless of the fill. */
#include "cases/recipe/case.h"
#include "cases/tensors/table.h"

bool fa_case_has_zero(fa_tensor_id id) {
  return fa_tensor_describe(id)->axes == FA_AXES_TOKENS && fa_tensor_is_filled(id);
}

bool fa_case_row_is_zero(const fa_case *c, fa_tensor_id id, int64_t row) {
  const fa_int32_array *a = &c->zero[id];
  for (int64_t i = 0; i + 1 < a->n; i += 2)
    if (row >= a->v[i] && row < a->v[i + 1]) return true;
  return false;
}

int64_t fa_case_zero_rows(const fa_case *c, fa_tensor_id id) {
  return fa_tensor_describe(id)->on_keys ? c->problem.seqlen_k : c->problem.seqlen_q;
}

fa_status fa_case_check_zero(const fa_case *c, fa_error *err) {
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const fa_int32_array *a = &c->zero[id];
    const char *tensor = fa_tensor_id_name(id);
    if (a->n == 0) continue;
    if (!fa_case_has_zero(id) || !fa_case_uses(c, id))
      return fa_fail(err, FA_ERR_INPUT, "$.zero.%s: the case has no tensor %s with such rows", tensor,
                     tensor);
    if (a->n < 0 || a->n % 2 || !a->v)
      return fa_fail(err, FA_ERR_INPUT, "$.zero.%s: %lld numbers are no pairs", tensor, (long long)a->n);
    const int64_t rows = fa_case_zero_rows(c, id);
    for (int64_t i = 0; i < a->n; i += 2) {
      const long long from = a->v[i], to = a->v[i + 1];
      if (from >= to || from < 0 || to > rows)
        return fa_fail(err, FA_ERR_INPUT, "$.zero.%s[%lld]: %lld to %lld is no range within %lld rows",
                       tensor, (long long)i / 2, from, to, (long long)rows);
      if (i > 0 && from <= a->v[i - 1])
        return fa_fail(err, FA_ERR_INPUT,
                       "$.zero.%s[%lld]: starts at %lld, but must lie behind %d, where the "
                       "range before it ends",
                       tensor, (long long)i / 2, from, a->v[i - 1]);
    }
  }
  return FA_OK;
}
