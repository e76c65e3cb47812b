/* The row loops that make bounds: the same bits from every instruction set, and what their headers say,
 * element by element. */
#include "cases/base/rng.h"
#include "ref/math/rows.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

enum { N = 203, OUTPUTS = 8 };

static int builds(const fa_rows *out[3]) {
  int n = 0;
  out[n++] = &fa_rows_base;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2")) out[n++] = &fa_rows_avx2;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) out[n++] = &fa_rows_avx512;
#endif
  return n;
}

typedef struct data {
  double p[N], dp[N], z[N], x[N];
  float e[N], d[N], cap[N], cap_err[N];
} data;

/* P from 1 to far below every float, some of them 0. */
static void make(data *t, uint64_t seed) {
  fa_rng r = fa_rng_make(seed, 3);
  for (int j = 0; j < N; ++j) {
    t->x[j] = fa_rng_chance(&r, 0.1) ? -INFINITY : 40 * fa_rng_normal(seed, 4, (uint64_t)j);
    t->p[j] = fa_rng_chance(&r, 0.1) ? 0 : exp(-200 * fa_rng_next_uniform(&r) * fa_rng_chance(&r, 0.9));
    t->dp[j] = 9 * fa_rng_normal(seed, 5, (uint64_t)j);
    t->z[j] = fa_rng_chance(&r, 0.3) ? 0 : 1.25;
    t->e[j] = (float)(1e-5 * fa_rng_next_uniform(&r));
    t->d[j] = (float)fa_rng_next_uniform(&r);
    t->cap[j] = (float)fa_rng_next_uniform(&r);
    t->cap_err[j] = 1e-4f * t->cap[j];
  }
}

static void check_gradient(const fa_rows *const *rows, int n_rows, const data *t, uint64_t seed) {
  float first[OUTPUTS][N], out[OUTPUTS][N];
  double first_sum = 0, sum = 0;
  for (int k = 0; k < n_rows; ++k) {
    memset(out, 0, sizeof out);
    fa_row_gradient r = {.p = t->p,
                         .dp = t->dp,
                         .z = seed & 1 ? t->z : NULL,
                         .e = t->e,
                         .d = t->d,
                         .cap = seed & 2 ? t->cap : NULL,
                         .cap_err = seed & 2 ? t->cap_err : NULL,
                         .delta = 0.7,
                         .per_unit = 0.125,
                         .k_d = 1e-5f,
                         .e_delta = 1e-6f,
                         .u_dp = 0x1p-22f,
                         .floor_p = 0x1p-14f,
                         .floor_ds = 0x1p-14f,
                         .per_u_p = 2048,
                         .per_u_ds = 2048,
                         .squares = true,
                         .one_is_exact = !(seed & 1),
                         .w = out[0],
                         .w2 = out[1],
                         .we = out[2],
                         .g = out[3],
                         .g2 = out[4],
                         .ge = out[5],
                         .terms = out[6],
                         .exact = out[7]};
    rows[k]->gradient(&r, N);
    if (k == 0) memcpy(first, out, sizeof first), first_sum = r.sum_terms;
    CHECK(memcmp(first, out, sizeof out) == 0 && r.sum_terms == first_sum);
  }
  for (int j = 0; j < N; ++j) {
    const double z = seed & 1 ? t->z[j] : 1, slope = seed & 2 ? t->cap[j] : 1;
    const double ds = t->p[j] * fabs(z * t->dp[j] - 0.7) * 0.125 * slope;
    CHECK(first[0][j] >= t->p[j] * z * (1 - 1e-6) && first[3][j] >= ds * (1 - 1e-6));
    CHECK(t->p[j] > 0x1p-90 || first[3][j] <= 1e-20);
    CHECK((first[3][j] == 0) == (t->p[j] == 0));
    sum += first[6][j];
  }
  CHECK(fabs(sum - first_sum) <= 1e-6 * sum);
}

static void check_logit_error(const fa_rows *const *rows, int n_rows, const data *t) {
  float first[N], out[N];
  for (int k = 0; k < n_rows; ++k) {
    memcpy(out, t->e, sizeof out);
    const float most = rows[k]->logit_error(out, t->x, N, 3, 1e-7, 2e-7, 5e-7);
    float largest = 0;
    for (int j = 0; j < N; ++j) {
      const double want = t->e[j] + (1e-7 * fabs(t->x[j] - 3) + 2e-7 * fabs(t->x[j]) + 5e-7);
      CHECK(out[j] == (t->x[j] == -INFINITY ? 0 : (float)want));
      largest = out[j] > largest ? out[j] : largest;
    }
    CHECK(most == largest && most > 0);
    if (k == 0) memcpy(first, out, sizeof first);
    CHECK(memcmp(first, out, sizeof out) == 0);
  }
}

static void check_small_loops(const fa_rows *rows, const data *t) {
  float e[N], to[N], to2[N], largest = 0, error[N];
  memcpy(e, t->e, sizeof e);
  const float most = rows->grow(e, N);
  for (int j = 0; j < N; ++j) {
    CHECK(e[j] == t->e[j] + t->e[j] * t->e[j] && e[j] >= expm1f(t->e[j]) * (1 - 0x1p-22f));
    largest = e[j] > largest ? e[j] : largest;
  }
  CHECK(most == largest && rows->greatest(e, N) == largest && rows->greatest(e, 0) == 0);
  for (int j = 0; j < N; ++j) {
    float alone[N] = {0};
    alone[j] = 2;
    CHECK(rows->greatest(alone, N) == 2);
  }
  memcpy(error, t->e, sizeof error);
  rows->product_error(error, t->dp, N, 0.5, 1e-7, 1e-9);
  rows->magnitudes(t->p, N, 0.25, to, to2);
  for (int j = 0; j < N; ++j) {
    CHECK(error[j] == (float)(0.5 * t->e[j] + 1e-7 * fabs(t->dp[j]) + 1e-9));
    const float x = to[j] > 0 && to[j] < FA_LEAST_OPERAND ? FA_LEAST_OPERAND : to[j];
    CHECK(to[j] == (float)(t->p[j] * 0.25) && to2[j] == x * x);
  }
  rows->magnitudes(t->dp, N, 1, to, NULL);
  for (int j = 0; j < N; ++j) CHECK(to[j] == fabsf((float)t->dp[j]));
}

static void check_weights(const fa_rows *const *rows, int n_rows, const data *t, bool dropout) {
  float first[3][N], out[3][N];
  double first_sum = 0;
  for (int k = 0; k < n_rows; ++k) {
    memset(out, 0, sizeof out);
    const fa_row_probabilities r = {.p = t->p,
                                    .z = dropout ? t->z : NULL,
                                    .e = t->e,
                                    .floor = 0x1p-14f,
                                    .per_u = 2048,
                                    .top = 0.9f,
                                    .at_top = 0x1p-12f,
                                    .w = out[0],
                                    .w2 = out[1],
                                    .we = out[2]};
    const double sum = rows[k]->weights(&r, N, true);
    if (k == 0) memcpy(first, out, sizeof first), first_sum = sum;
    CHECK(memcmp(first, out, sizeof out) == 0 && sum == first_sum);
  }
}

/* One element as docs/reference/bounds.md has it. */
static double accum_of(const fa_row_settle *r, int j) {
  const double size = fabs(r->value[j]), l1 = r->worst[j] * r->terms.unit;
  double g = l1;
  if (r->squares) g = fmin(l1, size + 4 * sqrt(r->squares[j] + r->terms.exact) * r->terms.unit);
  if (r->worst[j] == 0 && r->errors[j] == 0 && size == 0 && r->terms.zero == 0) return 0;
  return r->errors[j] * r->terms.by_errors + r->terms.gamma * g + size * r->terms.by_value + r->terms.add;
}

static void check_settle(const fa_rows *const *rows, int n_rows, data *t, bool squares, bool zero_is_exact) {
  float squared[N], first[3][N], out[3][N];
  for (int j = 0; j < N; ++j) squared[j] = t->d[j] * t->d[j] / 9;
  for (int j = 0; j < N; j += 7) t->x[j] = t->e[j] = t->d[j] = squared[j] = 0;
  for (int j = 0; j < N; ++j) t->x[j] = isfinite(t->x[j]) ? t->x[j] / 100 : 0;
  for (int k = 0; k < n_rows; ++k) {
    const fa_row_settle r = {.value = t->x,
                             .worst = t->d,
                             .squares = squares ? squared : NULL,
                             .errors = t->e,
                             .terms = {.unit = 3,
                                       .lambda = 4,
                                       .exact = 0.01,
                                       .u_narrow = 0x1p-11,
                                       .u_noise = 0x1p-12,
                                       .by_errors = 5,
                                       .gamma = 1e-6,
                                       .by_value = 1e-7,
                                       .add = 1e-9,
                                       .zero = zero_is_exact ? 0 : 1},
                             .quant = out[0],
                             .noise = out[1],
                             .accum = out[2]};
    rows[k]->settle(&r, N);
    for (int j = 0; j < N; ++j) {
      const double l1 = t->d[j] * 3.0, l2 = squares ? sqrt((double)squared[j]) * 3.0 : l1;
      CHECK(out[0][j] == (float)(0x1p-11 * fmin(l1, 4 * l2)) && out[1][j] == (float)(0x1p-12 * l2));
      CHECK(out[2][j] == (float)accum_of(&r, j));
      CHECK(j % 7 || (out[2][j] == 0) == zero_is_exact);
    }
    if (k == 0) memcpy(first, out, sizeof first);
    CHECK(memcmp(first, out, sizeof out) == 0);
  }
}

int main(void) {
  const fa_rows *rows[3];
  const int n = builds(rows);
  for (uint64_t seed = 0; seed < 40; ++seed) {
    data t;
    make(&t, seed);
    check_gradient(rows, n, &t, seed);
    check_logit_error(rows, n, &t);
    for (int k = 0; k < n; ++k) check_small_loops(rows[k], &t);
    check_weights(rows, n, &t, seed & 1);
    check_settle(rows, n, &t, seed & 1, seed & 2);
  }
  return check_done();
}
