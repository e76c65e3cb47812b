/* Selects the row loops that this processor can run. */
#include "cases/base/row_loops.h"

const fa_row_loops *fa_row_loops_best(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return &fa_row_loops_avx512;
  if (__builtin_cpu_supports("avx2")) return &fa_row_loops_avx2;
#endif
  return &fa_row_loops_base;
}
