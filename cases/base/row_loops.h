/* Loops over one row of a tensor's elements, built once per instruction set (row_loops_base.c,
 * row_loops_avx2.c, row_loops_avx512.c) and chosen at run time. All give the same bits: nothing is summed,
 * and multiply-adds are not contracted. */
#ifndef FA_CASES_BASE_ROW_LOOPS_H
#define FA_CASES_BASE_ROW_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fa_row_loops {
  /* out[i] = fa_rng_key_normal(key, first + i step) */
  void (*normals)(uint64_t key, uint64_t first, uint64_t step, int64_t n, double *out);
  /* out[i] = fa_f64_to_f16(in[i]), or fa_f64_to_bf16; out need not be aligned */
  void (*narrow)(const double *in, int64_t n, bool bf16, void *out);
} fa_row_loops;

extern const fa_row_loops fa_row_loops_base, fa_row_loops_avx2, fa_row_loops_avx512;
const fa_row_loops *fa_row_loops_best(void);

#endif
