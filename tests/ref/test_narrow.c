/* Scores of 8 bits in an accumulator of 13 fraction bits: what such a unit makes of a pair is within the bound, and near it.
 * With one key a row's LSE is its score. */
#include "cases/arithmetic/fields.h"
#include "cases/base/rng.h"
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "ref/bounds/narrow.h"
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

/* ---- the error of a sum, term by term ---- */

enum { ROWS = 3, KEYS = 4, FROM = 2, WIDEST = 70 };

/* Powers of two of few bits, some of them 0. */
static float drawn(uint64_t at) {
  const double x = fa_rng_uniform(5, 6, at);
  return at % 7 == 3 ? 0 : (float)ldexp(rint(x * 16) / 16, (int)(at * 5 % 13) - 6);
}

/* What 32 products at a time may lose: each that lies more than 7 below the largest exponent, at most itself and a quantum; the sum
 * so far, where it may lie lower; and the new sum's own cut. */
static double error_of(const float *q, const float *k, int n, bool generic) {
  double sum = 0, error = 0;
  for (int from = 0; from < n; from += 32) {
    const int end = from + 32 < n ? from + 32 : n;
    int most = -1000;
    for (int d = from; d < end; ++d)
      if (q[d] != 0 && k[d] != 0) most = (int)fmax(most, exponent(q[d], -6) + exponent(k[d], -6));
    if (most == -1000) continue;
    const double high = fabs(sum) + error, low = fabs(sum) - error;
    const int largest = high > 0 && ilogb(high) > most ? ilogb(high) : most;
    const double quantum = ldexp(1, largest - 13);
    double lost = 0, squares = 0;
    for (int d = from; d < end; ++d) {
      const double x = (double)q[d] * k[d];
      sum += x;
      if (x == 0 || exponent(q[d], -6) + exponent(k[d], -6) >= largest - 7) continue;
      lost += fmin(fabs(x), quantum);
      squares += fmin(fabs(x), quantum) * fmin(fabs(x), quantum);
    }
    if (high > 0 && !(low > 0 && ilogb(low) >= largest)) error += quantum;
    error += generic ? fmin(lost, 4 * sqrt(squares / 3)) : lost;
    if (fabs(sum) + error > 0) error += ldexp(1, ilogb(fabs(sum) + error) - 13);
  }
  return error;
}

static void fill(fa_bound_narrow *x, int width) {
  for (int at = 0; at < (FROM + KEYS) * width; ++at) {
    x->k[at] = drawn((uint64_t)(1000 + at));
    x->k_exponent[at] = x->k[at] == 0 ? -2000 : exponent(x->k[at], -6);
    if (at >= ROWS * width) continue;
    x->q[at] = drawn((uint64_t)at);
    x->q_exponent[at] = x->q[at] == 0 ? -2000 : exponent(x->q[at], -6);
  }
}

static void test_terms(int width, bool generic) {
  static float q[ROWS * WIDEST], k[(FROM + KEYS) * WIDEST], error[ROWS * KEYS];
  static int q_exponent[ROWS * WIDEST], k_exponent[(FROM + KEYS) * WIDEST];
  static double k_descale[FROM + KEYS], s[ROWS * KEYS];
  static fa_bound_scratch b;
  static fa_ref_rows r = {.n = ROWS};
  const fa_problem p = {.scale = -0.5};
  const fa_ref_call c = {.p = &p, .d = width, .generic = generic};
  b.narrow = (fa_bound_narrow){q, k, q_exponent, k_exponent, k_descale, {1, 2, 0.25}};
  b.e_logit = error;
  fill(&b.narrow, width);
  for (int j = 0; j < FROM + KEYS; ++j) k_descale[j] = j % 2 ? 3 : 1;
  s[KEYS + 1] = -INFINITY;
  fa_bound_narrow_scores(&b, &c, &r, FROM, KEYS, s);
  for (int i = 0; i < ROWS; ++i)
    for (int j = 0; j < KEYS; ++j) {
      const double by = 0.5 * b.narrow.q_descale[i] * k_descale[FROM + j];
      const double want =
          s[i * KEYS + j] < 0 ? 0 : by * error_of(q + i * width, k + (FROM + j) * width, width, generic);
      CHECK_MSG(fabs(error[i * KEYS + j] - want) <= 2e-4 * want, "D %d, row %d, key %d: %g, not %g", width, i,
                j, error[i * KEYS + j], want);
    }
}

int main(void) {
  for (int width = 1; width <= WIDEST; ++width) test_terms(width, false), test_terms(width, true);
  static const char *const dtypes[] = {"e4m3", "e5m2"}, *const fills[] = {"normal", "edges", "heavy_tail",
                                                                          "outlier"};
  static const int dims[] = {8, 31, 32, 33, 64, 128, 256};
  for (int x = 0; x < 2; ++x)
    for (int f = 0; f < 4; ++f)
      for (int d = 0; d < 7; ++d) {
        const bool generic = f != 1;
        const double worst = worst_of(dtypes[x], dims[d], fills[f], generic);
        /* A bound of numbers between 2^-16 and 57344 is far above what their sums lose. */
        CHECK_MSG(worst <= 1 && (worst > 0.1 || !generic), "%s, %s, D %d: off by %g of the bound", dtypes[x],
                  fills[f], dims[d], worst);
        CHECK(worst_of(dtypes[x], dims[d], fills[f], false) <=
              worst); /* without generic data bounds are wider */
      }
  return check_done();
}
