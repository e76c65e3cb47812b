/* For whom the products of gemm.h are. */
#include "ref/math/gemm.h"

bool fa_gemm_fits(int m, int n, int k) {
#if defined(__x86_64__)
  /* Below that the library has other kernels, and columns beyond a multiple of 8 it works out in another
   * order. */
  const bool large = (double)m * n * k > 1e6 && n % 8 == 0;
  __builtin_cpu_init();
  return large && k <= FA_GEMM_MOST_K && __builtin_cpu_supports("avx512f");
#else
  (void)m, (void)n, (void)k;
  return false;
#endif
}
