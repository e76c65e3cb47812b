#include "cases/tensors/descale.h"

#include <math.h>

fa_descale_per fa_descale_per_of(const fa_problem *p, fa_tensor_id descale) {
  const fa_descale_per per = p->quantized.per;
  if (descale == FA_T_Q_DESCALE) return per == FA_PER_PAGE ? FA_PER_HEAD : per;
  return descale == FA_T_V_DESCALE && p->quantized.queries && per > FA_PER_HEAD ? FA_PER_HEAD : per;
}

double fa_descale_of_row(const fa_problem *p, const fa_tensors *set, fa_tensor_id id, int64_t b, int64_t h,
                         const int64_t *index) {
  const fa_tensor_id descale = fa_tensor_descale_of(p, id);
  if (descale == FA_T_COUNT) return 1;
  const int64_t one[1] = {0}, head[2] = {b, id == FA_T_Q ? h / (p->heads_q / p->heads_kv) : h};
  const int64_t page[2] = {index[0], h};
  const int64_t *const at[FA_N_DESCALES] = {
      [FA_PER_TENSOR] = one, [FA_PER_HEAD] = head, [FA_PER_TOKEN] = index, [FA_PER_PAGE] = page};
  return fa_tensor_get(&set->t[descale], at[fa_descale_per_of(p, descale)]);
}

/* NaN compares as neither. */
static void extremes(const fa_problem *p, const fa_tensors *set, fa_tensor_id id, double *least,
                     double *most) {
  const fa_tensor_id descale = fa_tensor_descale_of(p, id);
  const fa_tensor *t = &set->t[descale == FA_T_COUNT ? id : descale];
  *least = INFINITY, *most = 0;
  if (descale == FA_T_COUNT) *least = *most = 1;
  for (int64_t at = 0, n = descale == FA_T_COUNT ? 0 : fa_tensor_count(t); at < n; ++at) {
    int64_t index[FA_MAX_RANK];
    fa_tensor_unravel(t, at, index);
    const double x = fabs(fa_tensor_get(t, index));
    if (x > *most) *most = x;
    if (x < *least) *least = x;
  }
}

double fa_descale_largest(const fa_problem *p, const fa_tensors *set, fa_tensor_id id) {
  double least, most;
  extremes(p, set, id, &least, &most);
  return most;
}

double fa_descale_smallest(const fa_problem *p, const fa_tensors *set, fa_tensor_id id) {
  double least, most;
  extremes(p, set, id, &least, &most);
  return least;
}
