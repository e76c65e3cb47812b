#include "ref/attention/amax.h"

#include "cases/tensors/descale.h"
#include "ref/reference.h"

#include <math.h>

fa_status fa_ref_amax_outputs(fa_ref_call *c, fa_error *err) {
  const int64_t one = 1;
  if (!c->p->quantized.amax || c->sample || (c->twist && c->twist->n_rows > 0)) return FA_OK;
  const fa_status status = fa_want_init(&c->out->t[FA_T_AMAX_P], FA_F32, 1, &one, c->profile != NULL, err);
  return status ? status : fa_want_init(&c->out->t[FA_T_AMAX_O], FA_F32, 1, &one, c->profile != NULL, err);
}

/* The larger number; NaN if either is, which is not compared. */
static double larger(double a, double b) {
  return isnan(a) || b <= a ? a : b;
}

void fa_ref_amax_row(fa_ref_scratch *w, int64_t k) {
  if (w->key_l[k] != 0) w->amax_p = larger(w->amax_p, exp(w->key_m[k] - w->m[k]) / w->l[k]);
}

void fa_ref_amax_set(fa_want *w, double value, fa_bound_amax between) {
  if (w->n == 0) return;
  w->value[0] = value;
  if (!w->accum) return;
  w->accum[0] = (float)(1.0001 * fmax(between.most - value, value - between.least));
  w->scale[0] = (float)value;
}

void fa_ref_amax_finish(fa_ref_call *c, const fa_ref_team *team) {
  const fa_want *o = &c->out->t[FA_T_O];
  fa_bound_amax p = {0, 0}, between = {0, 0};
  double amax_p = 0, amax_o = 0;
  if (c->out->t[FA_T_AMAX_O].n == 0) return;
  for (int i = 0; i < team->n; ++i) {
    amax_p = larger(amax_p, team->scratch[i].amax_p);
    if (!team->bound) continue;
    p.least = fmax(p.least, team->bound[i].amax.least);
    p.most = fmax(p.most, team->bound[i].amax.most);
  }
  for (int64_t e = 0; e < o->n; ++e) {
    const double x = fabs(o->value[e]), bound = o->accum ? fa_want_bound(o, e) : 0;
    amax_o = larger(amax_o, x);
    between.least = fmax(between.least, x - bound);
    between.most = fmax(between.most, x + bound);
  }
  fa_ref_amax_set(&c->out->t[FA_T_AMAX_P], amax_p, p);
  fa_ref_amax_set(&c->out->t[FA_T_AMAX_O], amax_o, between);
}

/* It may be taken before or after the last rounding. */
void fa_ref_amax_o_of(fa_dtype o, double scale, double amax, bool zero, fa_want *w) {
  const double h = zero ? 0 : fa_half_ulp(o, amax);
  fa_ref_amax_set(w, amax / scale, (fa_bound_amax){(amax - h) / scale, (amax + h) / scale});
}

void fa_ref_amax_of_given(const fa_problem *p, const fa_tensors *in, const fa_tensor *o, fa_wants *forward) {
  const fa_want *right = &forward->t[FA_T_O];
  const int64_t n = fa_tensor_count(o);
  double amax = 0;
  const fa_want *reference = &forward->t[FA_T_AMAX_O];
  if (reference->n == 0 || n != right->n || !isfinite(reference->value[0])) return;
  for (int64_t e = 0; e < n; ++e) {
    int64_t index[FA_MAX_RANK];
    if (isnan(right->value[e])) continue; /* of a row without a visible key, which may hold anything */
    fa_tensor_unravel(o, e, index);
    amax = larger(amax, fabs(fa_tensor_get(o, index)));
  }
  const bool zero = amax == 0 && reference->value[0] == 0 && reference->accum && reference->accum[0] == 0;
  /* an O that was rounded to 0 was not */
  if (right->saturates && amax >= fa_dtype_max(right->dtype)) return; /* what O was is not in it any more */
  if (isfinite(amax)) fa_ref_amax_o_of(right->dtype, fa_o_scale(p, in), amax, zero, &forward->t[FA_T_AMAX_O]);
}
