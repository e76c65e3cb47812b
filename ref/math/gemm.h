/* Products of one tile by AVX-512, straight from row-major operands: the library would copy both into an
 * order of its own first, and multiply all the zeros that a mask leaves.
 *
 * The same bits as OpenBLAS's kernels for these processors give from a million products on: every element
 * is one chain of fma over k in rising order, from 0, and then fma(alpha, chain, beta c). Leaving out
 * products with a zero of A changes nothing, for chains never are -0. */
#ifndef FA_REF_MATH_GEMM_H
#define FA_REF_MATH_GEMM_H

#include <stdbool.h>
#include <stdint.h>

enum { FA_GEMM_MOST_K = 256 };

/* Where row i of C gets something from: k in first[i] .. end[i] - 1; elsewhere A is 0. Empty: end <= first.
 */
typedef struct fa_gemm_spans {
  const int64_t *first, *end;
} fa_gemm_spans;

/* Row-major C[m x n] = alpha op(A) B + beta C; a_row and a_k are the steps between op(A)'s rows and along k,
 * of which one is 1. beta: 0 or 1. spans: NULL: all of k. */
#define FA_GEMM_ARGUMENTS(real)                                                                              \
  int m, int n, int k, real alpha, const real *a, int64_t a_row, int64_t a_k, const real *b, int ldb,        \
      real beta, real *c, int ldc, const fa_gemm_spans *spans
void fa_gemm_f64(FA_GEMM_ARGUMENTS(double));
void fa_gemm_f32(FA_GEMM_ARGUMENTS(float));

/* Whether these are for this processor and this product. */
bool fa_gemm_fits(int m, int n, int k);

#endif
