/* Scores of 8 bits in an accumulator of 13 fraction bits: what such a unit makes of a pair is within the bound, and near it.
 * With one key a row's LSE is its score. */
#include "cases/arithmetic/fields.h"
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "ref/reference.h"
#include "tests/support/check.h"

#include <math.h>

/* To 13 fraction bits of 2^e, toward 0. */
static double cut(double x, int e) {
  const double step = ldexp(1, e - 13);
  return trunc(x / step) * step;
}

/* Exponent of a factor; subnormals have the least. */
static int exponent(double x, int least) {
  const int e = ilogb(x);
  return e < least ? least : e;
}

/* 32 products at a time, each with the sum of its factors' exponents, and the sum so far. */
static double narrow_sum(const fa_tensors *t, int64_t i, int64_t n, int least) {
  double sum = 0;
  for (int64_t from = 0; from < n; from += 32) {
    int most = sum == 0 ? -1000 : ilogb(sum);
    for (int64_t d = from; d < n && d < from + 32; ++d) {
      const double q = fa_tensor_get(&t->t[FA_T_Q], (int64_t[FA_MAX_RANK]){0, i, 0, d}),
                   k = fa_tensor_get(&t->t[FA_T_K], (int64_t[FA_MAX_RANK]){0, 0, 0, d});
      if (q == 0 || k == 0) continue;
      const int e = exponent(q, least) + exponent(k, least);
      most = e > most ? e : most;
    }
    if (most == -1000) continue;
    double total = cut(sum, most);
    for (int64_t d = from; d < n && d < from + 32; ++d)
      total += cut(fa_tensor_get(&t->t[FA_T_Q], (int64_t[FA_MAX_RANK]){0, i, 0, d}) *
                       fa_tensor_get(&t->t[FA_T_K], (int64_t[FA_MAX_RANK]){0, 0, 0, d}),
                   most);
    sum = total == 0 ? 0 : cut(total, ilogb(total));
  }
  return sum;
}

/* The worst row, in units of its bound. */
static double worst_of(const char *dtype, int head_dim, const char *fill, bool generic) {
  char text[400];
  fa_case c;
  fa_tensors t;
  fa_arithmetic a;
  fa_wants forward;
  fa_error err = {""};
  snprintf(text, sizeof text,
           "{\"dtype\":\"bf16\",\"seqlen_q\":256,\"seqlen_k\":1,\"head_dim\":%d,\"fill\":\"%s\","
           "\"quantized\":{\"dtype\":\"%s\"}}",
           head_dim, fill, dtype);
  REQUIRE(fa_case_from_text(text, &c, &err) == FA_OK && fa_case_build(&c, &t, &err) == FA_OK);
  REQUIRE(fa_arithmetic_named("fp8-sm90", FA_BF16, &a));
  fa_profile profile = fa_arithmetic_profile(&a, c.problem.quantized.dtype);
  fa_arithmetic_add_descales(&a, FA_BF16, true, false, &profile);
  const fa_ref_options opt = {.n_threads = 1, .generic = generic, .profile = &profile};
  REQUIRE(fa_ref_forward(&c.problem, &t, &opt, &forward, &err) == FA_OK);
  const int64_t one[FA_MAX_RANK] = {0};
  const double descale = fa_tensor_get(&t.t[FA_T_Q_DESCALE], one) * fa_tensor_get(&t.t[FA_T_K_DESCALE], one);
  const fa_want *w = &forward.t[FA_T_LSE];
  double worst = 0;
  for (int64_t i = 0; i < c.problem.seqlen_q; ++i) {
    const double got = narrow_sum(&t, i, head_dim, c.problem.quantized.dtype == FA_E4M3 ? -6 : -14) *
                       descale * c.problem.scale;
    worst = fmax(worst, fabs(got - w->value[i]) / fa_want_bound(w, i));
  }
  fa_wants_free(&forward);
  fa_tensors_free(&t);
  fa_case_free(&c);
  return worst;
}

int main(void) {
  static const char *const dtypes[] = {"e4m3", "e5m2"}, *const fills[] = {"normal", "edges", "heavy_tail",
                                                                          "outlier"};
  static const int dims[] = {8, 31, 32, 33, 64, 128, 256};
  for (int x = 0; x < 2; ++x)
    for (int f = 0; f < 4; ++f)
      for (int d = 0; d < 7; ++d) {
        const bool generic = f != 1;
        const double worst = worst_of(dtypes[x], dims[d], fills[f], generic);
        CHECK_MSG(worst <= 1 && worst > 0.5, "%s, %s, D %d: off by %g of the bound", dtypes[x], fills[f],
                  dims[d], worst);
        CHECK(worst_of(dtypes[x], dims[d], fills[f], false) <=
              worst); /* without generic data bounds are wider */
      }
  return check_done();
}
