/* Selects the row loops that this processor can run. */
#include "ref/math/rows.h"

const fa_rows *fa_rows_best(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool fma = __builtin_cpu_supports("fma");
  if (fma && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return &fa_rows_avx512;
  if (fma && __builtin_cpu_supports("avx2")) return &fa_rows_avx2;
#endif
  return &fa_rows_base;
}
