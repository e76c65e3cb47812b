#include "tests/mutants/rules.h"

#include <math.h>

typedef struct limits {
  double times, slack; /* fa2x; times 0 = the rule does not judge */
  bool compares_cache; /* fa2x: uses tolerances, and unwritten elements must be unchanged */
  double atol[COSINE], rtol[COSINE];
} limits;

static limits limits_of(const fa_problem *p, fa_tensor_id id) {
  static const struct {
    double atol, rtol, gradient_atol, loosened_atol, gradient_rtol;
  } xformers[] = {[FA_F16] = {4e-3, 4e-4, 9e-2, 0.2, 2e-2},
                  [FA_BF16] = {2e-2, 5e-3, 0.7, 0.9, 0.1},
                  [FA_F32] = {3e-4, 2e-5, 5e-4, 5e-4, 1e-4}};
  const bool cache = id == FA_T_K || id == FA_T_V;
  limits l = {.times = p->dtype == FA_F32 ? 0 : 2}; /* FlashAttention has no f32 */
  l.atol[ALLCLOSE] = l.rtol[ALLCLOSE] = 1e-2;
  l.atol[ALLCLOSE_EIGHT] = l.rtol[ALLCLOSE_EIGHT] = 5e-2;
  l.atol[XFORMERS] = xformers[p->dtype].atol;
  l.rtol[XFORMERS] = xformers[p->dtype].rtol;
  if (id == FA_T_LSE) {
    l.times = 0;
    l.atol[XFORMERS] = 2e-4;
    l.rtol[XFORMERS] = 0;
  }
  if (p->kvcache
          .present) { /* FlashAttention's own test of its cache: 3, 5, and fixed tolerances for the cache */
    l.times = l.times == 0 || cache ? 0 : p->alibi.present ? 5 : 3;
    l.slack = 1e-5;
    l.compares_cache = cache;
    l.atol[FA2X] = l.rtol[FA2X] = id == FA_T_K ? 1e-3 : 0;
  }
  l.atol[XFORMERS2] = l.atol[XFORMERS];
  l.rtol[XFORMERS2] = l.rtol[XFORMERS];
  if (id == FA_T_O || id == FA_T_LSE || cache) return l;
  if (l.times > 0 && (p->heads_q != p->heads_kv || fa_problem_is_varlen(p))) l.times = 3;
  if (l.times > 0 && p->alibi.present) l.times = 8;
  l.atol[XFORMERS] = xformers[p->dtype].gradient_atol;
  l.atol[XFORMERS2] = xformers[p->dtype].loosened_atol;
  l.rtol[XFORMERS] = l.rtol[XFORMERS2] = xformers[p->dtype].gradient_rtol;
  return l;
}

static bool is_near(double got, double exact, double atol, double rtol) {
  return got == exact || (isnan(exact) && isnan(got)) || fabs(got - exact) <= atol + rtol * fabs(exact);
}

/* A tensor and what is exact, as vectors. */
typedef struct vectors {
  double product, got, exact, apart; /* sums of products and squares */
} vectors;

static void add_element(vectors *v, double got, double exact) {
  if ((got == exact && isinf(exact)) || (isnan(got) && isnan(exact))) return; /* no numbers, and right */
  v->product += got * exact;
  v->got += got * got;
  v->exact += exact * exact;
  v->apart += (got - exact) * (got - exact);
}

void fa_rules_judge(const fa_problem *p, fa_tensor_id id, const fa_tensor *got, const double *exact,
                    const double *rounded, const bool *ignore, bool *rejects) {
  const limits l = limits_of(p, id);
  const int64_t n = fa_tensor_count(got);
  double worst_got = 0, worst_rounded = 0;
  vectors v = {0};
  for (int64_t e = 0; e < n; ++e) {
    if (ignore && ignore[e]) continue;
    int64_t index[FA_MAX_RANK];
    fa_tensor_unravel(got, e, index);
    const double x = fa_tensor_get(got, index);
    for (int rule = l.compares_cache ? FA2X : ALLCLOSE; rule < COSINE; ++rule)
      rejects[rule] |= !is_near(x, exact[e], l.atol[rule], l.rtol[rule]);
    add_element(&v, x, exact[e]);
    if (l.times == 0) continue;
    const double err = fabs(x - exact[e]);
    worst_got = isnan(worst_got) || err <= worst_got ? worst_got : err; /* NaN stays */
    worst_rounded = fmax(worst_rounded, fabs(rounded[e] - exact[e]));
  }
  rejects[COSINE] |= !(v.product >= 0.99 * sqrt(v.got * v.exact));
  rejects[RELATIVE_NORM] |= !(sqrt(v.apart) <= 5e-2 * sqrt(v.exact));
  if (l.times > 0) rejects[FA2X] |= !(worst_got <= l.times * worst_rounded + l.slack);
}
