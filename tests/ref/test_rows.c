/* The row loops that replace element-wise code: the same verdicts, statistics and values, from every
 * instruction set of this processor, bit for bit. */
#include "cases/base/bits.h"
#include "cases/base/dtype.h"
#include "cases/base/rng.h"
#include "ref/compare/internal.h"
#include "ref/math/rows.h"
#include "tests/support/check.h"

enum { N = 203 };

static int builds(const fa_rows *out[3]) {
  int n = 0;
  out[n++] = &fa_rows_base;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2")) out[n++] = &fa_rows_avx2;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) out[n++] = &fa_rows_avx512;
#endif
  return n;
}

static void check_widen(const fa_rows *rows) {
  static uint16_t bits[1 << 16];
  static double out[1 << 16];
  for (int i = 0; i < 1 << 16; ++i) bits[i] = (uint16_t)i;
  for (int bf16 = 0; bf16 < 2; ++bf16) {
    rows->widen(bits, 1 << 16, bf16, out);
    for (int i = 0; i < 1 << 16; ++i) {
      const double want = bf16 ? fa_bf16_to_f32(bits[i]) : fa_f16_to_f32(bits[i]);
      CHECK(want != want ? out[i] != out[i] : fa_f64_bits(want) == fa_f64_bits(out[i]));
    }
  }
}

typedef struct data {
  double got[N], want[N];
  float quant[N], accum[N], noise[N];
} data;

/* Errors from none to slightly more than allowed; tiny, zero, huge and infinite values among them. */
static void make(data *d, uint64_t seed, fa_dtype type, bool bad) {
  fa_rng r = fa_rng_make(seed, 1);
  for (int j = 0; j < N; ++j) {
    const int kind = (int)fa_rng_below(&r, 12);
    const double size = kind == 0   ? 0
                        : kind == 1 ? 1e-40
                        : kind == 2 ? 6e4
                                    : 1,
                 u = fa_rng_normal(seed, 2, (uint64_t)j);
    d->want[j] = u * size;
    d->quant[j] = kind == 3 ? 0 : (float)(1e-3 * size * (1 + fabs(u)));
    d->noise[j] = d->quant[j] / (float)(1 + fa_rng_below(&r, 6));
    d->accum[j] = kind == 4 ? 0 : (float)(1e-4 * size);
    const fa_want w = {.dtype = type, .n = N, .value = d->want, .quant = d->quant, .accum = d->accum};
    d->got[j] = d->want[j] + (fa_rng_below(&r, 2001) / 1000.0 - 1) * fa_want_bound(&w, j);
  }
  if (!bad) return;
  const int j = (int)fa_rng_below(&r, N);
  const int what = (int)fa_rng_below(&r, 4);
  const fa_want w = {.dtype = type, .n = N, .value = d->want, .quant = d->quant, .accum = d->accum};
  if (what == 0) d->got[j] = NAN;
  if (what == 1) d->got[j] = INFINITY;
  if (what == 2) d->want[j] = -INFINITY;
  if (what == 3) d->got[j] = d->want[j] + 1.02 * fa_want_bound(&w, j) + 1e-300;
}

static fa_row_check row_of(const data *d, fa_dtype t) {
  const int fraction = t == FA_F16 ? 10 : t == FA_BF16 ? 7 : 23, bias = t == FA_F16 ? 15 : 127;
  return (fa_row_check){.got = d->got,
                        .want = d->want,
                        .quant = d->quant,
                        .accum = d->accum,
                        .noise = d->noise,
                        .ulp = {1024 - bias, 1023 + bias, fraction + 1},
                        .accept = 1 + FA_DEFAULT_SLACK};
}

static bool near(double a, double b) {
  return fabs(a - b) <= 1e-12 * (1 + fabs(b));
}

static void check_one(const fa_rows *const *rows, int n_rows, uint64_t seed, fa_dtype type, bool bad) {
  data d;
  make(&d, seed, type, bad);
  const fa_want w = {.dtype = type, .n = N, .value = d.want, .quant = d.quant, .accum = d.accum};
  fa_stats_row s = {0};
  double worst = 0, widest = 0;
  int64_t n_odd = 0;
  for (int j = 0; j < N; ++j) {
    const double bound = fa_want_bound(&w, j), err = fabs(d.got[j] - d.want[j]);
    const bool finite = isfinite(d.got[j]) && isfinite(d.want[j]);
    if (isfinite(d.want[j]) && bound > widest) widest = bound;
    if (!(finite && err <= bound * (1 + FA_DEFAULT_SLACK))) {
      ++n_odd;
      continue;
    }
    if (bound > 0 && err / bound > worst) worst = err / bound;
    if (bound > 0)
      fa_stats_add(&s, d.got[j] - d.want[j], fa_half_ulp(type, d.want[j]), d.noise[j], d.quant[j],
                   d.accum[j]);
  }
  CHECK(bad ? n_odd == 1 : n_odd == 0);
  fa_row_check first = row_of(&d, type);
  for (int k = 0; k < n_rows; ++k) {
    fa_row_check r = row_of(&d, type);
    rows[k]->check(&r, N);
    CHECK_MSG(r.n_odd == n_odd && r.worst_ratio == worst, "%d odd, not %d; worst %g, not %g", (int)r.n_odd,
              (int)n_odd, r.worst_ratio, worst);
    CHECK(r.n == s.n && r.n_diffuse == s.n_diffuse);
    CHECK(near(r.sum, s.sum) && near(r.sum_squares, s.sum_squares) &&
          near(r.diffuse_squares, s.diffuse_squares));
    if (k == 0) first = r;
    CHECK(r.sum == first.sum && r.sum_squares == first.sum_squares &&
          r.diffuse_squares == first.diffuse_squares);
    CHECK(rows[k]->widest_bound(&r, N) == widest && widest > 0);
    r.noise = NULL;
    rows[k]->check(&r, N);
    CHECK(r.n_odd == n_odd && r.worst_ratio == worst);
  }
}

/* Every build draws what the first does; test_dropout.c compares one with single elements. */
static void check_dropout(const fa_rows *const *rows, int n_rows, uint64_t seed) {
  const fa_row_dropout r = {.seed = seed * 0x9e3779b97f4a7c15u,
                            .lane = UINT64_MAX - 3 * seed, /* its counter wraps */
                            .row_block = (uint32_t)seed,
                            .shift = seed & 1 ? 16 : 0,
                            .threshold = (int)(seed % 256),
                            .scale = 1.5};
  const int64_t j0 = (int64_t)(seed % 97), n = (int64_t)(seed * 7 % 600);
  double first[601], other[601];
  rows[0]->flash_dropout(&r, j0, n, first);
  for (int k = 0; k < n_rows; ++k) {
    other[n] = -7;
    rows[k]->flash_dropout(&r, j0, n, other);
    CHECK(memcmp(first, other, (size_t)n * sizeof *first) == 0 && other[n] == -7);
  }
}

/* Where nothing is added and nothing may be off, there is no bound. */
static void check_nothing(const fa_rows *rows) {
  static const double zero[3];
  static const float none[3];
  const fa_row_check r = {
      .want = zero, .got = zero, .quant = none, .accum = none, .ulp = {1024 - 127, 1023 + 127, 24}};
  CHECK(rows->widest_bound(&r, 3) == 0);
  fa_row_check empty = r;
  rows->check(&empty, 0);
  CHECK(empty.n_odd == 0 && empty.worst_ratio == 0);
}

/* What is infinite is looked at again, even where a bound is infinite too; where nothing is wanted a bound may be that of sums alone. */
static void check_infinite(const fa_rows *rows) {
  static const double one[] = {1}, zero[] = {0}, infinite[] = {INFINITY};
  static const float none[1], unknown[] = {INFINITY}, some[] = {1};
  fa_row_check r = {
      .want = one, .got = infinite, .quant = none, .accum = unknown, .ulp = {1024 - 127, 1023 + 127, 24}};
  r.accept = 1;
  rows->check(&r, 1);
  CHECK(r.n_odd == 1);
  r.want = infinite, r.got = one;
  rows->check(&r, 1);
  CHECK(r.n_odd == 1);
  r.want = zero, r.accum = some;
  CHECK(rows->widest_bound(&r, 1) == 1 + 0x1p-24);
}

int main(void) {
  static const fa_dtype types[] = {FA_F16, FA_BF16, FA_F32};
  const fa_rows *rows[3];
  const int n = builds(rows);
  for (int k = 0; k < n; ++k) check_widen(rows[k]), check_nothing(rows[k]), check_infinite(rows[k]);
  for (uint64_t seed = 0; seed < 600; ++seed) check_one(rows, n, seed, types[seed % 3], seed % 2);
  for (uint64_t seed = 0; seed < 200; ++seed) check_dropout(rows, n, seed);
  return check_done();
}
