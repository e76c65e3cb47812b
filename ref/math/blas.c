/* Makes OpenBLAS use one thread and the kernels that fit this processor. */
#include "ref/math/blas.h"

#include <cblas.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static void single_thread(void) {
  openblas_set_num_threads(1);
}

static void blas_ready(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, single_thread);
}

const char *fa_blas_core(void) {
  return openblas_get_corename();
}

bool fa_blas_core_is_generic(void) {
  /* Kernels without AVX, which the library selects when it does not know the processor. */
  static const char *const generic[] = {
      "Prescott", "Generic", "Core2",     "Penryn", "Dunnington", "Nehalem",   "Atom",   "Nano",
      "Athlon",   "Opteron", "Barcelona", "Katmai", "Coppermine", "Northwood", "Banias", "Unknown"};
  const char *core = fa_blas_core();
  for (size_t i = 0; i < sizeof generic / sizeof *generic; ++i)
    if (strncasecmp(core, generic[i], strlen(generic[i])) == 0) return true;
  return false;
}

/* The best core type whose instructions this processor has; NULL if there is none. */
static const char *better_core(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return "SKYLAKEX";
  if (avx2) return "HASWELL";
#endif
  return NULL;
}

void fa_blas_startup(char **argv) {
  blas_ready();
  const char *wish = getenv("FA_VERIFY_BLAS_CORE");
  if (wish && strcmp(wish, "keep") == 0) return;
  /* A choice in the environment is ours, from before the restart, or the user's: keep it. */
  if (getenv("OPENBLAS_CORETYPE")) return;
  const char *core = better_core();
  if (!core || !fa_blas_core_is_generic()) return;
  if (setenv("OPENBLAS_CORETYPE", core, 1) != 0) return;
  execv("/proc/self/exe", argv);
  unsetenv("OPENBLAS_CORETYPE"); /* exec failed: continue slowly */
}

void fa_blas_dgemm(fa_blas_op ta, fa_blas_op tb, int m, int n, int k, double alpha, const double *a, int lda,
                   const double *b, int ldb, double beta, double *c, int ldc) {
  blas_ready();
  cblas_dgemm(CblasRowMajor, ta == FA_BLAS_T ? CblasTrans : CblasNoTrans,
              tb == FA_BLAS_T ? CblasTrans : CblasNoTrans, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void fa_blas_sgemm(fa_blas_op ta, fa_blas_op tb, int m, int n, int k, float alpha, const float *a, int lda,
                   const float *b, int ldb, float beta, float *c, int ldc) {
  blas_ready();
  cblas_sgemm(CblasRowMajor, ta == FA_BLAS_T ? CblasTrans : CblasNoTrans,
              tb == FA_BLAS_T ? CblasTrans : CblasNoTrans, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void fa_blas_dgemm_part(fa_blas_op ta, int m, int n, int k, double alpha, const double *a, int lda,
                        const double *b, int ldb, double beta, double *c, int ldc,
                        const fa_gemm_spans *spans) {
  const bool turned = ta == FA_BLAS_T;
  if (fa_gemm_fits(m, n, k))
    fa_gemm_f64(m, n, k, alpha, a, turned ? 1 : lda, turned ? lda : 1, b, ldb, beta, c, ldc, spans);
  else
    fa_blas_dgemm(ta, FA_BLAS_N, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void fa_blas_sgemm_part(fa_blas_op ta, int m, int n, int k, float alpha, const float *a, int lda,
                        const float *b, int ldb, float beta, float *c, int ldc, const fa_gemm_spans *spans) {
  const bool turned = ta == FA_BLAS_T;
  if (fa_gemm_fits(m, n, k))
    fa_gemm_f32(m, n, k, alpha, a, turned ? 1 : lda, turned ? lda : 1, b, ldb, beta, c, ldc, spans);
  else
    fa_blas_sgemm(ta, FA_BLAS_N, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
