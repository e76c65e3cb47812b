/* What a sum of products of 8 bits loses in an accumulator of 13 fraction bits, term by term, against a plain loop. */
#include "cases/base/rng.h"
#include "ref/bounds/narrow.h"
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
  return check_done();
}
