/* Laws about numbers: powers of two commute with every rounding, and a constant in a row's scores cancels in
 * the softmax. */
#include "fuzz/laws/parts.h"

#include <math.h>
#include <string.h>

/* Multiplies a tensor by a power of two; false if that would overflow. */
static bool enlarge(const fa_tensor *t, double by) {
  int64_t index[FA_MAX_RANK], n = fa_tensor_count(t);
  const double most = fa_dtype_max(t->dtype) / by;
  bool fits = true;
  for (int pass = 0; pass < 2 && fits; ++pass)
    for (int64_t e = 0; e < n; ++e) {
      fa_tensor_unravel(t, e, index);
      const double x = fa_tensor_get(t, index);
      if (pass == 0)
        fits &= !(fabs(x) > most);
      else if (!isnan(x)) /* unused slots keep their pattern */
        fa_tensor_set(t, index, by * x);
    }
  return fits;
}

static bool twice(const fa_tensor *t) {
  return enlarge(t, 2);
}

static bool shares_memory(const fa_law_work *w, fa_tensor_id id) {
  const bool *e = w->c->strides[id].expand;
  return e[0] || e[1] || e[2];
}

static bool map_scale(const fa_law_work *w, const void *ctx, fa_tensor_id id, const int64_t *index,
                      fa_law_link *link) {
  (void)w, (void)ctx, (void)index;
  link->powers = true;
  if (id == FA_T_DQ)
    link->factor = 0.25; /* dS does not change, and the scale in dQ = scale dS K is a quarter */
  return true;
}

/* dS in f16 is often subnormal, where doubling rounds: use bounds then. */
static fa_law_modes modes_through_ds(const fa_law_work *w) {
  fa_law_modes modes = fa_law_modes_all(FA_LAW_BITS);
  for (int id = 0; id < FA_T_COUNT && w->base.p.dtype == FA_F16; ++id)
    if (modes.of[id] == FA_LAW_BITS && fa_tensor_is_through_ds((fa_tensor_id)id)) modes.of[id] = FA_LAW_BOUND;
  return modes;
}

/* Gradients are added up in memory in f16, where a part may be subnormal though the sum is not. */
static bool adds_in_f16(const fa_profile *p) {
  const fa_accumulator *a = p->accumulator;
  return a[FA_PRODUCT_DV] == FA_ACCUMULATOR_F16 || a[FA_PRODUCT_DQ] == FA_ACCUMULATOR_F16 ||
         a[FA_PRODUCT_DK] == FA_ACCUMULATOR_F16;
}

/* The number that is rounded to dS's type has the scale in it. */
static bool scales_ds(const fa_profile *p) {
  return p->ds_scaled || p->u_scores > 0;
}

/* By 4 and not by 2: some kernels multiply queries and keys by the scale's root each. */
fa_status fa_law_scale_power(fa_law_work *w, fa_error *err) {
  const fa_problem *p = &w->c->problem;
  FA_SKIP_IF(p->kvcache.rotary_dim > 0, "rotated queries are rounded again");
  FA_SKIP_IF(shares_memory(w, FA_T_Q), "queries share memory");
  FA_SKIP_IF(p->scale != 0 && fabs(p->scale) < 0x1p-60, "the scale is as small as it may be");
  FA_LAW_TRY(fa_law_make_base(w, err));
  FA_LAW_TRY(fa_law_run(w, &w->base, err));
  FA_LAW_TRY(fa_law_make_like(w, &w->other, &w->base, err));
  FA_SKIP_IF(!enlarge(&w->other.in.t[FA_T_Q], 4), "4 q overflows");
  w->other.p.scale /= 4;
  FA_LAW_TRY(fa_law_run(w, &w->other, err));
  const fa_law_modes modes = scales_ds(&w->base.profile) || adds_in_f16(&w->base.profile)
                                 ? modes_through_ds(w)
                                 : fa_law_modes_all(FA_LAW_BITS);
  return fa_law_compare_all(w, &w->other, modes, map_scale, NULL, err);
}

static bool map_value(const fa_law_work *w, const void *ctx, fa_tensor_id id, const int64_t *index,
                      fa_law_link *link) {
  (void)w, (void)ctx, (void)index;
  if (id == FA_T_O || fa_tensor_is_through_ds(id)) link->factor = 2;
  return true;
}

fa_status fa_law_value_power(fa_law_work *w, fa_error *err) {
  const fa_problem *p = &w->c->problem;
  FA_SKIP_IF(shares_memory(w, FA_T_V), "values share memory");
  FA_SKIP_IF(p->kvcache.v_in_k, "values are columns of the keys");
  FA_SKIP_IF(p->grad_lse, "dLSE would have to double too");
  FA_LAW_TRY(fa_law_make_base(w, err));
  FA_SKIP_IF(p->kvcache.n_new > 0, "new values are in a tensor of their own");
  FA_LAW_TRY(fa_law_run(w, &w->base, err));
  FA_LAW_TRY(fa_law_make_like(w, &w->other, &w->base, err));
  FA_SKIP_IF(!twice(&w->other.in.t[FA_T_V]), "2 v overflows");
  FA_LAW_TRY(fa_law_run(w, &w->other, err));
  const fa_law_modes modes = modes_through_ds(w);
  return fa_law_compare_all(w, &w->other, modes, map_value, NULL, err);
}

static bool map_grad(const fa_law_work *w, const void *ctx, fa_tensor_id id, const int64_t *index,
                     fa_law_link *link) {
  (void)w, (void)ctx, (void)index;
  if (fa_tensor_describe(id)->gradient) link->factor = 2;
  return true;
}

fa_status fa_law_grad_power(fa_law_work *w, fa_error *err) {
  const fa_problem *p = &w->c->problem;
  FA_SKIP_IF(!p->backward, "no backward pass");
  FA_SKIP_IF(shares_memory(w, FA_T_DO), "rows of dO share memory");
  FA_LAW_TRY(fa_law_make_base(w, err));
  FA_LAW_TRY(fa_law_run(w, &w->base, err));
  FA_SKIP_IF(!(w->passes & FA_PASS_BACKWARD), "the backend has no backward pass for it");
  FA_LAW_TRY(fa_law_make_like(w, &w->other, &w->base, err));
  FA_SKIP_IF(!twice(&w->other.in.t[FA_T_DO]), "2 dO overflows");
  if (p->grad_lse) twice(&w->other.in.t[FA_T_DLSE]);
  FA_LAW_TRY(fa_law_run(w, &w->other, err));
  fa_law_modes modes = modes_through_ds(w);
  /* A head's part of its group's dV may be subnormal where the sum is not, too. */
  const bool parts =
      (w->base.profile.gqa_partials_in_io && p->heads_q > p->heads_kv) || adds_in_f16(&w->base.profile);
  if (parts && p->dtype == FA_F16) modes.of[FA_T_DV] = FA_LAW_BOUND;
  return fa_law_compare_all(w, &w->other, modes, map_grad, NULL, err);
}

/* ---- a constant for each row of the bias ---- */

/* -4 .. 4, different in most rows. */
static double row_shift(const fa_problem *p, int64_t b, int64_t h, int64_t i) {
  const uint64_t x = (uint64_t)(p->bias.per_batch ? b : 0) * 7 + (uint64_t)(p->bias.per_head ? h : 0) * 5 +
                     (uint64_t)(p->bias.per_query ? i : 0) * 3;
  return (double)(x % 9) - 4;
}

/* Eighths in [-8, 8]: sums with a shift are exact in every type. -inf stays. */
static void make_coarse(const fa_tensor *t) {
  int64_t index[FA_MAX_RANK], n = fa_tensor_count(t);
  for (int64_t e = 0; e < n; ++e) {
    fa_tensor_unravel(t, e, index);
    const double x = fa_tensor_get(t, index);
    if (isfinite(x)) fa_tensor_set(t, index, fmax(-8, fmin(8, rint(x * 8) / 8)));
  }
}

static bool map_shift(const fa_law_work *w, const void *ctx, fa_tensor_id id, const int64_t *index,
                      fa_law_link *link) {
  (void)ctx;
  if (id == FA_T_LSE) link->shift = row_shift(&w->base.p, index[0], index[1], index[2]);
  if (id == FA_T_LSE && isinf(fa_tensor_get(&w->base.out.t[id], index))) link->shift = 0;
  /* No key, or a sum of exactly 1? They look the same. */
  if (id == FA_T_LSE && w->base.p.empty_lse == FA_EMPTY_ZERO && fa_tensor_get(&w->base.out.t[id], index) == 0)
    return false;
  return true;
}

fa_status fa_law_bias_shift(fa_law_work *w, fa_error *err) {
  const fa_law_modes bound = fa_law_modes_all(FA_LAW_BOUND);
  const fa_problem *p = &w->c->problem;
  FA_SKIP_IF(!p->bias.present, "no bias");
  FA_SKIP_IF(fa_problem_is_varlen(p), "of plain rows only");
  FA_SKIP_IF(shares_memory(w, FA_T_BIAS), "elements of the bias share memory");
  w->generic = false;
  FA_LAW_TRY(fa_law_make_base(w, err));
  make_coarse(&w->base.in.t[FA_T_BIAS]);
  FA_LAW_TRY(fa_law_run(w, &w->base, err));
  FA_LAW_TRY(fa_law_make_like(w, &w->other, &w->base, err));
  const fa_tensor *t = &w->other.in.t[FA_T_BIAS];
  int64_t index[FA_MAX_RANK], n = fa_tensor_count(t);
  for (int64_t e = 0; e < n; ++e) {
    fa_tensor_unravel(t, e, index);
    fa_tensor_set(t, index, fa_tensor_get(t, index) + row_shift(p, index[0], index[1], index[2]));
  }
  FA_LAW_TRY(fa_law_run(w, &w->other, err));
  return fa_law_compare_all(w, &w->other, bound, map_shift, NULL, err);
}
