/* Products of one tile with AVX-512, straight from row-major operands. The library would first copy both into
 * its own order, and would multiply all the zeros that a mask leaves.
 *
 * From a million products on, the bits equal those of OpenBLAS's kernels for these processors: every element
 * is one chain of fma over k in ascending order, from 0, followed by fma(alpha, chain, beta c). Skipping
 * products with a zero of A changes nothing, because a chain is never -0. */
#ifndef FA_REF_MATH_GEMM_H
#define FA_REF_MATH_GEMM_H

#include <stdbool.h>
#include <stdint.h>

enum { FA_GEMM_MOST_K = 256 };

/* The k that contribute to row i of C: first[i] .. end[i] - 1; elsewhere A is 0. None: end <= first. */
typedef struct fa_gemm_spans {
  const int64_t *first, *end;
} fa_gemm_spans;

/* Row-major C[m x n] = alpha op(A) B + beta C. a_row and a_k are op(A)'s strides between rows and along k;
 * one of them is 1. beta: 0 or 1. spans: NULL: all of k. */
#define FA_GEMM_ARGUMENTS(real)                                                                              \
  int m, int n, int k, real alpha, const real *a, int64_t a_row, int64_t a_k, const real *b, int ldb,        \
      real beta, real *c, int ldc, const fa_gemm_spans *spans
void fa_gemm_f64(FA_GEMM_ARGUMENTS(double));
void fa_gemm_f32(FA_GEMM_ARGUMENTS(float));

/* True if this processor has the instructions and the product has a suitable shape. */
bool fa_gemm_fits(int m, int n, int k);

#endif
