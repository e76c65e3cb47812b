/* What a sum of products of 8 bits loses in an accumulator of 13 fraction bits, term by term, against a plain loop; the largest P, and O
 * in 8 bits, element by element. */
#include "cases/base/rng.h"
#include "ref/bounds/narrow.h"
#include "ref/bounds/narrow_formula.h"
#include "ref/bounds/stored.h"
#include "tests/support/check.h"

#include <math.h>

/* Exponent of a factor; subnormals have the least. */
static int exponent(double x, int least) {
  const int e = ilogb(x);
  return e < least ? least : e;
}

enum { ROWS = 3, KEYS = 4, FROM = 2, WIDEST = 70 };

/* Powers of two of few bits, some of them 0. */
static float drawn(uint64_t at) {
  const double x = fa_rng_uniform(5, 6, at);
  return at % 7 == 3 ? 0 : (float)ldexp(rint(x * 16) / 16, (int)(at * 5 % 13) - 6);
}

/* What a number between low and high may lose towards 0, to both sides. */
typedef struct range {
  double low, high;
} range;

static range cut(range x, double most) {
  return (range){x.low - (x.high > 0 ? fmin(most, x.high) : 0),
                 x.high + (x.low < 0 ? fmin(most, -x.low) : 0)};
}

/* Of a block with this largest exponent, beside a sum between two. cuts: whether some such sum is cut. */
static range block_of(const float *q, const float *k, int n, range x, int largest, bool cuts) {
  const double quantum = ldexp(1, largest - 13);
  if (cuts) x = cut(x, quantum);
  for (int d = 0; d < n; ++d) {
    const double whole = trunc((double)q[d] * k[d] / quantum) * quantum;
    x.low += whole, x.high += whole;
  }
  const double size = fmax(fabs(x.low), fabs(x.high));
  return size > 0 && ilogb(size) > largest ? cut(x, ldexp(1, ilogb(size) - 13) - quantum) : x;
}

/* 32 products at a time: of every largest exponent that there may be, the least and the most that the sum may then be. */
static double error_of(const float *q, const float *k, int n) {
  double sum = 0;
  range x = {0, 0};
  for (int from = 0; from < n; from += 32) {
    const int end = from + 32 < n ? from + 32 : n;
    int most = -1000;
    for (int d = from; d < end; ++d) {
      sum += (double)q[d] * k[d];
      if (q[d] != 0 && k[d] != 0) most = (int)fmax(most, exponent(q[d], -6) + exponent(k[d], -6));
    }
    if (most == -1000) continue;
    const double near = x.low <= 0 && x.high >= 0 ? 0 : fmin(fabs(x.low), fabs(x.high));
    const double far = fmax(fabs(x.low), fabs(x.high));
    range all = {INFINITY, -INFINITY};
    for (int largest = most; largest < 40; ++largest) {
      const bool below = near == 0 || ilogb(near)<largest, above = far> 0 && ilogb(far) >= largest;
      const bool here = near > 0 && ilogb(near) == largest;
      if (largest == most ? !below && !here : !above || (!below && !here)) continue;
      const range one = block_of(q + from, k + from, end - from, x, largest, below);
      all = (range){fmin(all.low, one.low), fmax(all.high, one.high)};
    }
    x = all;
  }
  return fmax(fabs(x.low - sum), fabs(x.high - sum));
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

static void test_terms(int width) {
  static float q[ROWS * WIDEST], k[(FROM + KEYS) * WIDEST], error[ROWS * KEYS];
  static int q_exponent[ROWS * WIDEST], k_exponent[(FROM + KEYS) * WIDEST];
  static double k_descale[FROM + KEYS], s[ROWS * KEYS];
  static fa_bound_scratch b;
  static fa_ref_rows r = {.n = ROWS};
  const fa_problem p = {.scale = -0.5};
  const fa_ref_call c = {.p = &p, .d = width};
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
          s[i * KEYS + j] < 0 ? 0 : by * error_of(q + i * width, k + (FROM + j) * width, width);
      CHECK_MSG(fabs(error[i * KEYS + j] - want) <= 2e-4 * want + 1e-12, "D %d, row %d, key %d: %g, not %g",
                width, i, j, error[i * KEYS + j], want);
    }
}

/* Subnormal numbers have the exponent of the least normal one, and 0 has none. */
static void test_exponents(void) {
  CHECK(fa_bound_stored_exponent(FA_E4M3, -0x1.8p-5) == -5 &&
        fa_bound_stored_exponent(FA_E4M3, 0x1p-6) == -6 && fa_bound_stored_exponent(FA_E4M3, 0x1p-9) == -6);
  CHECK(fa_bound_stored_exponent(FA_E5M2, 0x1p-13) == -13 &&
        fa_bound_stored_exponent(FA_E5M2, 0x1p-14) == -14 &&
        fa_bound_stored_exponent(FA_E5M2, -0x1p-16) == -14);
  CHECK(fa_bound_stored_exponent(FA_E4M3, 0) == FA_NO_EXPONENT);
}

/* A sum that may have either sign beside products smaller than it: whether it is cut depends on what it is. */
static void test_either_sign(void) {
  enum { N = 96 };
  static float q[N], k[N];
  static int q_exponent[N], k_exponent[N];
  q[0] = k[0] = 1, q[1] = k[1] = 0x1p-3; /* 1 + 2^-6 */
  /* The sum loses up to 2^-5 beside 256, and becomes 2^-6. */
  q[32] = k[32] = q[33] = 16, k[33] = -16;
  q[34] = 1, k[34] = -1;
  q[64] = 0x1p-4, k[64] = 0x1p-5;
  for (int d = 0; d < N; ++d)
    q_exponent[d] = fa_bound_stored_exponent(FA_E4M3, q[d]),
    k_exponent[d] = fa_bound_stored_exponent(FA_E4M3, k[d]);
  const double want = 1.0001 * error_of(q, k, N);
  const float got =
      fa_bound_narrow_score((fa_bound_stored){q, q_exponent}, (fa_bound_stored){k, k_exponent}, N, 1);
  CHECK_MSG(fabs(got - want) <= 1e-7 * want && want > 0x1p-5, "%.9g, not %.9g", got, want);
}

/* A sum that is a whole number of quanta beside smaller products loses nothing, whatever its sign. */
static void test_nothing_lost(void) {
  enum { N = 64 };
  static const float first[] = {0.5f, -0.5f};
  for (int i = 0; i < 2; ++i) {
    float q[N] = {first[i]}, k[N] = {1};
    int q_exponent[N], k_exponent[N];
    q[32] = 0x1p-4f, k[32] = 0x1p-5f;
    for (int d = 0; d < N; ++d)
      q_exponent[d] = fa_bound_stored_exponent(FA_E4M3, q[d]),
      k_exponent[d] = fa_bound_stored_exponent(FA_E4M3, k[d]);
    CHECK(fa_bound_narrow_score((fa_bound_stored){q, q_exponent}, (fa_bound_stored){k, k_exponent}, N, 1) ==
          0);
  }
}

/* Errors of the largest P, of which one is independent from pair to pair. */
static void test_largest(void) {
  static fa_bound_scratch b;
  static const fa_problem p = {.quantized = {.amax = true}};
  const fa_ref_call c = {.p = &p, .lambda = 5};
  const double prob[] = {0.125, 0.5};
  float e[] = {9, 0.25f, 0.25f}, e_score[] = {9, 0, 0.125f};
  b.e_logit = e, b.e_score = e_score;
  fa_bound_amax_begin(&b, 1);
  fa_bound_amax_add(&b, &c, 0, 1, prob, 2);
  const fa_bound_largest *x = &b.row_amax[0];
  CHECK(x->p == 0.5 && x->e == 0.25 + 5 * 0.125 && x->summed == 0.25 && x->most == 0.5 * 1.875);
  b.e_score = NULL;
  fa_bound_amax_begin(&b, 1);
  fa_bound_amax_add(&b, &c, 0, 1, prob, 2);
  CHECK(x->most == 0.5 * 1.25);
}

/* Elements of O in e4m3, which ends at 448, times a scale of 1/2. */
static void test_stored(void) {
  static const fa_problem p = {.quantized = {.o = FA_E4M3}};
  float by = 0.5f, quant[] = {80, 80, 80, 8}, accum[] = {40, 40, 40, 4}, noise[] = {1, 1, 1, 1};
  double value[] = {-1000, 880, 2000, 100};
  fa_tensors in = {0};
  in.t[FA_T_O_SCALE] =
      (fa_tensor){.dtype = FA_F32, .rank = 1, .shape = {1}, .stride = {1}, .data = (char *)&by};
  fa_want o = {.dtype = FA_BF16,
               .n = 4,
               .rank = 1,
               .shape = {4},
               .value = value,
               .quant = quant,
               .accum = accum,
               .noise = noise};
  fa_bound_store_o(&p, &in, &o);
  CHECK(o.dtype == FA_E4M3 && o.saturates && value[0] == -448 && value[1] == 440 && value[2] == 448 &&
        value[3] == 50);
  CHECK(quant[3] == 4 && noise[3] == 0.5f && noise[0] == 896 && noise[1] == 896 && noise[2] == 896);
  CHECK_MSG(fabsf(quant[0] - 40 * 8 / 60.f) < 1e-2f && fabsf(accum[0] - 20 * 8 / 60.f) < 1e-2f, "%g, %g",
            quant[0], accum[0]);
  CHECK(quant[1] == 40 && quant[2] == 0 && accum[2] == 0);
}

/* A single element without bounds; and an O that nobody asks for. */
static void test_stored_alone(void) {
  static const fa_problem p = {.quantized = {.o = FA_E4M3}};
  float by = 0.5f;
  double value[] = {100};
  fa_tensors in = {0};
  in.t[FA_T_O_SCALE] =
      (fa_tensor){.dtype = FA_F32, .rank = 1, .shape = {1}, .stride = {1}, .data = (char *)&by};
  fa_want o = {.dtype = FA_BF16, .n = 1, .rank = 1, .shape = {1}, .value = value};
  fa_bound_store_o(&p, &in, &o);
  CHECK(o.dtype == FA_E4M3 && value[0] == 50);
  o.n = 0, o.dtype = FA_BF16;
  fa_bound_store_o(&p, &in, &o);
  CHECK(o.dtype == FA_BF16 && value[0] == 50);
}

int main(void) {
  test_exponents();
  test_either_sign();
  test_nothing_lost();
  test_largest();
  test_stored();
  test_stored_alone();
  for (int width = 1; width <= WIDEST; ++width) test_terms(width);
  return check_done();
}
