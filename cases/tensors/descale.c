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

double fa_o_scale(const fa_problem *p, const fa_tensors *set) {
  const int64_t first = 0;
  return fa_quantizes_o(&p->quantized) ? fa_tensor_get(&set->t[FA_T_O_SCALE], &first) : 1;
}

double fa_quantised(fa_dtype t, double x) {
  if (t == FA_E4M3) return fa_e4m3_to_f32(fa_f64_to_e4m3(x, FA_OVERFLOW_SATURATES));
  if (t == FA_E5M2) return fa_e5m2_to_f32(fa_f64_to_e5m2(x, FA_OVERFLOW_SATURATES));
  return fmin(fmax(rint(x), -128), 127);
}

double fa_quantised_doubt(fa_dtype t, double value, double descale) {
  int exponent;
  const double x = value / descale, error = fabs(x) * 0x1.01p-23; /* two roundings */
  if (frexp(descale, &exponent) == 0.5) return 0;                 /* none: a power of two */
  const double near = fa_quantised(t, x);
  return fmax(fabs(fa_quantised(t, x + error) - near), fabs(fa_quantised(t, x - error) - near));
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
