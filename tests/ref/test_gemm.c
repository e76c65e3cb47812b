/* The products for AVX-512 give the library's bits, also with spans; other processors do not use them. */
#include "ref/math/blas.h"

#include "tests/support/check.h"

#include <cblas.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST = 256 };

static double a64[MOST * MOST], b64[MOST * MOST], c64[MOST * MOST], d64[MOST * MOST];
static float a32[MOST * MOST], b32[MOST * MOST], c32[MOST * MOST], d32[MOST * MOST];

/* What the library is asked for. */
static int n_f64, n_f32;
__typeof__(cblas_dgemm) __real_cblas_dgemm, __wrap_cblas_dgemm;
void __wrap_cblas_dgemm(CBLAS_ORDER order, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, blasint m, blasint n,
                        blasint k, double alpha, const double *a, blasint lda, const double *b, blasint ldb,
                        double beta, double *c, blasint ldc) {
  ++n_f64;
  __real_cblas_dgemm(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
__typeof__(cblas_sgemm) __real_cblas_sgemm, __wrap_cblas_sgemm;
void __wrap_cblas_sgemm(CBLAS_ORDER order, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, blasint m, blasint n,
                        blasint k, float alpha, const float *a, blasint lda, const float *b, blasint ldb,
                        float beta, float *c, blasint ldc) {
  ++n_f32;
  __real_cblas_sgemm(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/* The library has the products that do not fit, and no others. */
static void check_who(int m, int n, int k) {
  const int asked = !fa_gemm_fits(m, n, k);
  n_f64 = n_f32 = 0;
  fa_blas_dgemm_part(FA_BLAS_N, m, n, k, 1, a64, k, b64, n, 0, c64, n, NULL);
  fa_blas_sgemm_part(FA_BLAS_N, m, n, k, 1, a32, k, b32, n, 0, c32, n, NULL);
  CHECK_MSG(n_f64 == asked && n_f32 == asked, "%d %d %d: %d, %d", m, n, k, n_f64, n_f32);
}

/* A [m, k] (turned: stored [k, m]) is 0 outside of the spans of its rows. */
static void fill(int m, int n, int k, bool turned, const fa_gemm_spans *s) {
  for (int i = 0; i < m; ++i)
    for (int x = 0; x < k; ++x) {
      const bool in = x >= s->first[i] && x < s->end[i];
      a64[turned ? x * m + i : i * k + x] = in ? drand48() - 0.5 : 0;
    }
  for (int i = 0; i < k * n; ++i) b64[i] = drand48() - 0.5;
  for (int i = 0; i < m * n; ++i) c64[i] = d64[i] = drand48() - 0.5;
  for (int i = 0; i < m * k; ++i) a32[i] = (float)a64[i];
  for (int i = 0; i < k * n; ++i) b32[i] = (float)b64[i];
  for (int i = 0; i < m * n; ++i) c32[i] = d32[i] = (float)c64[i];
}

static void one_product(int m, int n, int k, bool turned, double alpha, double beta, int shift) {
  int64_t first[MOST], end[MOST];
  const fa_gemm_spans spans = {first, end};
  const fa_blas_op ta = turned ? FA_BLAS_T : FA_BLAS_N;
  const int lda = turned ? m : k;
  for (int i = 0; i < m; ++i) {
    first[i] = shift < 0 && i + shift > 0 ? i + shift : 0;
    end[i] = shift > 0 && i + shift < k ? i + shift : k;
    if (i % 50 == 49 || first[i] >= end[i]) first[i] = end[i] = 0;
  }
  fill(m, n, k, turned, &spans);
  fa_blas_dgemm(ta, FA_BLAS_N, m, n, k, alpha, a64, lda, b64, n, beta, c64, n);
  fa_blas_dgemm_part(ta, m, n, k, alpha, a64, lda, b64, n, beta, d64, n, &spans);
  fa_blas_sgemm(ta, FA_BLAS_N, m, n, k, (float)alpha, a32, lda, b32, n, (float)beta, c32, n);
  fa_blas_sgemm_part(ta, m, n, k, (float)alpha, a32, lda, b32, n, (float)beta, d32, n, &spans);
  const size_t elements = (size_t)m * (size_t)n;
  CHECK_MSG(memcmp(c64, d64, elements * sizeof *c64) == 0, "f64 %d %d %d turned %d", m, n, k, turned);
  CHECK_MSG(memcmp(c32, d32, elements * sizeof *c32) == 0, "f32 %d %d %d turned %d", m, n, k, turned);
}

/* The library uses its kernels for these processors; others may add in another order. */
static bool library_is_alike(void) {
  return strcasecmp(fa_blas_core(), "SkylakeX") == 0 || strcasecmp(fa_blas_core(), "Cooperlake") == 0 ||
         strcasecmp(fa_blas_core(), "SapphireRapids") == 0;
}

int main(int argc, char **argv) {
  (void)argc;
  fa_blas_startup(argv);
  CHECK(!fa_gemm_fits(8, 8, 8) && !fa_gemm_fits(256, 100, 256) && !fa_gemm_fits(256, 256, 257));
  check_who(8, 8, 8);
  check_who(MOST, MOST, MOST);
  if (!library_is_alike()) return check_done();
  srand48(5);
  for (int round = 0; round < 60; ++round) {
    const int m = 100 + (int)(lrand48() % 157), n = 8 * (8 + (int)(lrand48() % 25)),
              k = 200 + (int)(lrand48() % 57);
    const int shift = round % 3 == 0 ? 0 : (round % 3 == 1 ? 1 : -1) * (int)(lrand48() % 200);
    one_product(m, n, k, round & 1, round % 5 ? 1 : 0.1, round & 2 ? 1 : 0, shift);
    one_product(MOST, n, MOST, round & 1, 1, 1, shift);
  }
  return check_done();
}
