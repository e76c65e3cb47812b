/* OpenBLAS configured for our use: one thread, and the right kernels for this processor. */
#ifndef FA_REF_MATH_BLAS_H
#define FA_REF_MATH_BLAS_H

#include "ref/math/gemm.h"

#include <stdbool.h>

/* OpenBLAS chooses its kernels when the library is loaded, and falls back to generic ones on processors it
 * does not know (virtual machines above all). Call this first in main: if the chosen core is generic although
 * the processor has AVX2 or AVX-512, it sets OPENBLAS_CORETYPE and executes this program again (once); it
 * then does not return. FA_VERIFY_BLAS_CORE=keep disables it. */
void fa_blas_startup(char **argv);
const char *fa_blas_core(void); /* "Zen", "SkylakeX", "Prescott", ... */
bool fa_blas_core_is_generic(void);

/* Row-major C[m x n] = alpha * op(A) op(B) + beta * C, leading dimensions in elements. */
typedef enum fa_blas_op { FA_BLAS_N, FA_BLAS_T } fa_blas_op;
void fa_blas_dgemm(fa_blas_op ta, fa_blas_op tb, int m, int n, int k, double alpha, const double *a, int lda,
                   const double *b, int ldb, double beta, double *c, int ldc);
void fa_blas_sgemm(fa_blas_op ta, fa_blas_op tb, int m, int n, int k, float alpha, const float *a, int lda,
                   const float *b, int ldb, float beta, float *c, int ldc);

/* The same without a transposed B, for an A that is 0 outside spans (NULL: unknown). Large products use
 * gemm.h instead of the library where that is faster. */
void fa_blas_dgemm_part(fa_blas_op ta, int m, int n, int k, double alpha, const double *a, int lda,
                        const double *b, int ldb, double beta, double *c, int ldc,
                        const fa_gemm_spans *spans);
void fa_blas_sgemm_part(fa_blas_op ta, int m, int n, int k, float alpha, const float *a, int lda,
                        const float *b, int ldb, float beta, float *c, int ldc, const fa_gemm_spans *spans);

#endif
