/* The bound of the largest P of a row, against kernels whose exponentials err as far as they may, each to the side that hurts. */
#include "cases/base/rng.h"
#include "ref/bounds/amax_formula.h"
#include "tests/support/check.h"

#include <math.h>

enum { MOST = 40 };

/* P of a row and how far a kernel's exponentials may be off, relative. */
typedef struct row {
  int n;
  double p[MOST], e[MOST];
} row;

/* sharpness: how far the scores are apart. */
static row draw(uint64_t at, double sharpness) {
  row r = {.n = 1 + (int)(at % MOST)};
  double sum = 0;
  for (int j = 0; j < r.n; ++j) {
    r.p[j] = exp(sharpness * fa_rng_uniform(7, at, (uint64_t)j));
    r.e[j] = 0x1p-8 * fa_rng_uniform(8, at, (uint64_t)j);
    sum += r.p[j];
  }
  for (int j = 0; j < r.n; ++j) r.p[j] /= sum;
  return r;
}

/* The largest P of a kernel whose key k errs upwards and all others down, or the reverse. */
static double erring(const row *r, int k, int sign) {
  double sum = 0, most = 0;
  for (int j = 0; j < r->n; ++j) sum += r->p[j] * (1 + (j == k ? sign : -sign) * r->e[j]);
  for (int j = 0; j < r->n; ++j) most = fmax(most, r->p[j] * (1 + (j == k ? sign : -sign) * r->e[j]) / sum);
  return most;
}

static fa_bound_amax bound_of(const row *r, const fa_profile *profile, bool swapped) {
  fa_bound_row t = {.n = r->n, .kept = true};
  fa_bound_largest largest = {0};
  const fa_ref_call c = {.profile = profile};
  for (int i = 0; i < r->n; ++i) {
    const int j = swapped ? r->n - 1 - i : i;
    fa_bound_largest_add(&largest, r->p[j], r->e[j], 0);
    t.error_sum += r->p[j] * r->e[j];
  }
  return fa_bound_largest_of_row(&c, &t, &largest, 0);
}

static int greatest(const row *r) {
  int at = 0;
  for (int j = 1; j < r->n; ++j) at = r->p[j] > r->p[at] ? j : at;
  return at;
}

/* Nothing but exponentials errs, so that the bound is what such a kernel reaches, but for 4u and where two keys are near. */
static void test_exponentials(void) {
  const fa_profile exact = {0};
  double reached = 0, idle = 0;
  for (uint64_t at = 0; at < 2000; ++at) {
    const row r = draw(at, 1 + (double)(at % 30));
    const fa_bound_amax one = bound_of(&r, &exact, false), other = bound_of(&r, &exact, true);
    const int k = greatest(&r);
    double least = 1, most = 0;
    for (int j = 0; j < r.n; ++j) most = fmax(most, erring(&r, j, 1));
    for (int j = 0; j < r.n; ++j) least = fmin(least, erring(&r, j, -1));
    CHECK_MSG(one.least <= least && most <= one.most, "%.9g .. %.9g in %.9g .. %.9g\n", least, most,
              one.least, one.most);
    CHECK(fabs(one.most - other.most) < 1e-15 && fabs(one.least - other.least) < 1e-15);
    if (r.p[k] * (1 - r.e[k]) < 0.6 || one.most - r.p[k] < 0x1p-18) continue;
    reached += (erring(&r, k, 1) - r.p[k]) / (one.most - r.p[k]);
    idle += 1;
  }
  CHECK_MSG(idle > 300 && reached / idle > 0.9, "%g of %g rows\n", reached / idle, idle);
}

/* One key has all: whatever its score is off by, its P is 1. */
static void test_one_key(void) {
  const fa_profile exact = {0};
  const row r = {.n = 1, .p = {1}, .e = {0.1}};
  const fa_bound_amax b = bound_of(&r, &exact, false);
  CHECK(b.least <= 1 && b.most >= 1 && b.most - b.least < 10 * FA_F32_UNIT);
}

/* What a way of its own costs: 1 / l of a maximum that is taken for 1, and exp(m - L) of an LSE that is one float. */
static void test_ways(void) {
  const fa_profile scaled = {.exp_scaled = true};
  const fa_ref_call c = {.profile = &scaled};
  const fa_bound_largest x = {.p = 0.5, .most = 0.5, .next = 0.25};
  for (int e = 0; e < 8; ++e) {
    const fa_bound_row t = {.n = 2, .kept = true, .max = ldexp(1, e), .log_l = log(2)};
    const fa_bound_amax b = fa_bound_largest_of_row(&c, &t, &x, 0);
    const double u = FA_F32_UNIT, l = 2 * (1 + u * t.max); /* its exponential is not quite 1 */
    const float lse = (float)(t.max + log(2));
    CHECK(1 / l >= b.least && 1 / (2 * (1 - u * t.max)) <= b.most);
    CHECK(exp(t.max - (double)lse) >= b.least && exp(t.max - (double)lse) <= b.most);
    CHECK(0.5 * exp(-u * t.max) > b.least && b.least > 0.5 * (1 - 24 * u * (1 + t.max)));
  }
}

/* A kernel adds many small exponentials to a large one, and each addition rounds up by as much as it adds. */
static void test_additions(void) {
  static const double errors[] = {0, 0.02, 0.1, 0.25};
  const fa_profile exact = {0};
  const fa_ref_call c = {.profile = &exact};
  for (int n = 100; n <= 10000; n *= 10) {
    for (int i = 0; i < 4; ++i) {
      const float other = (float)(1.001 * FA_F32_UNIT);
      const double small = other / (1 + errors[i]), p = 1 / (1 + n * small);
      fa_bound_row t = {.n = n + 1, .kept = true, .error_sum = n * p * small * errors[i]};
      fa_bound_largest x = {0};
      float sum = 1;
      fa_bound_largest_add(&x, p, 0, 0);
      for (int j = 0; j < n; ++j) fa_bound_largest_add(&x, p * small, errors[i], 0), sum += other;
      const fa_bound_amax b = fa_bound_largest_of_row(&c, &t, &x, n * FA_F32_UNIT);
      CHECK_MSG(1 / sum >= b.least && 1 / sum <= b.most, "%d, %g: %.9g in %.9g .. %.9g", n, errors[i],
                1 / sum, b.least, b.most);
    }
  }
}

static void test_unknown(void) {
  const fa_profile exact = {0};
  const fa_ref_call c = {.profile = &exact};
  const fa_bound_largest x = {.p = 0.5, .e = 0.1, .summed = 0.1, .most = 0.55};
  fa_bound_row t = {.n = 2, .error_sum = 0.1};
  CHECK(fa_bound_largest_of_row(&c, &t, &x, 0).least == 0 &&
        fa_bound_largest_of_row(&c, &t, &x, 0).most >= 1);
  t.kept = true, t.error_sum = 0.5; /* the row's sum may be off by half */
  CHECK(fa_bound_largest_of_row(&c, &t, &x, 0).least == 0 &&
        fa_bound_largest_of_row(&c, &t, &x, 0).most >= 1);
  const fa_bound_largest lost = {.p = 0.1, .e = 1.5, .summed = 1.5, .most = 0.25};
  t.error_sum = 0.15;
  CHECK(fa_bound_largest_of_row(&c, &t, &lost, 0).least == 0); /* its P may be 0 */
  t.overflows = true;
  CHECK(fa_bound_largest_of_row(&c, &t, &x, 0).most == INFINITY);
}

int main(void) {
  test_exponentials();
  test_one_key();
  test_ways();
  test_additions();
  test_unknown();
  return check_done();
}
