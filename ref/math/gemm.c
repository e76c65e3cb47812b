/* Decides which products gemm.h computes. */
#include "ref/math/gemm.h"

bool fa_gemm_fits(int m, int n, int k) {
#if defined(__x86_64__)
  /* Below this size the library uses other kernels, and it sums columns beyond a multiple of 8 in another
   * order. */
  const bool large = (double)m * n * k > 1e6 && n % 8 == 0;
  __builtin_cpu_init();
  return large && k <= FA_GEMM_MOST_K && __builtin_cpu_supports("avx512f");
#else
  (void)m, (void)n, (void)k;
  return false;
#endif
}
