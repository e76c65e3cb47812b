/* Tiles of floats: the one GEMM that ref-f32 needs, conversions, rounding.
 *
 * The GEMM exists twice, as plain loops and for processors with AVX2 and FMA. Both give the same bits: every
 * step is one fmaf, and each element's chain runs in ascending k. */
#include "gpu/ref_f32/parts.h"

#include <math.h>
#include <string.h>

static void gemm_plain(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_col,
                       const float *b, int64_t ldb, float *c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t l = 0; l < k; ++l) {
      float x = a[i * a_row + l * a_col];
      for (int64_t j = 0; j < n; ++j) c[i * ldc + j] = fmaf(x, b[l * ldb + j], c[i * ldc + j]);
    }
}

#if defined(__x86_64__)
#include <immintrin.h>

/* R rows (a constant after inlining) x 16 columns of C in registers. */
__attribute__((target("avx2,fma"), always_inline)) static inline void
block_fma(const int R, int64_t k, const float *a, int64_t a_row, int64_t a_col, const float *b, int64_t ldb,
          float *c, int64_t ldc) {
  __m256 lo[4], hi[4];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) lo[r] = _mm256_loadu_ps(c + r * ldc), hi[r] = _mm256_loadu_ps(c + r * ldc + 8);
  for (int64_t l = 0; l < k; ++l) {
    __m256 b_lo = _mm256_loadu_ps(b + l * ldb), b_hi = _mm256_loadu_ps(b + l * ldb + 8);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      __m256 x = _mm256_set1_ps(a[r * a_row + l * a_col]);
      lo[r] = _mm256_fmadd_ps(x, b_lo, lo[r]);
      hi[r] = _mm256_fmadd_ps(x, b_hi, hi[r]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    _mm256_storeu_ps(c + r * ldc, lo[r]);
    _mm256_storeu_ps(c + r * ldc + 8, hi[r]);
  }
}

__attribute__((target("avx2,fma"))) static void gemm_fma(int64_t m, int64_t n, int64_t k, const float *a,
                                                         int64_t a_row, int64_t a_col, const float *b,
                                                         int64_t ldb, float *c, int64_t ldc) {
  for (int64_t j = 0; j < n; j += 16) {
    int64_t i = 0;
    for (; i + 4 <= m; i += 4) block_fma(4, k, a + i * a_row, a_row, a_col, b + j, ldb, c + i * ldc + j, ldc);
    for (; i < m; ++i) block_fma(1, k, a + i * a_row, a_row, a_col, b + j, ldb, c + i * ldc + j, ldc);
  }
}
#endif

void fa_f32_gemm(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_col,
                 const float *b, int64_t ldb, float *c, int64_t ldc) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    gemm_fma(m, n, k, a, a_row, a_col, b, ldb, c, ldc);
    return;
  }
#endif
  gemm_plain(m, n, k, a, a_row, a_col, b, ldb, c, ldc);
}

void fa_f32_transpose(int64_t rows, int64_t cols, const float *src, int64_t ld_src, float *dst, int64_t ld) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) dst[c * ld + r] = src[r * ld_src + c];
}

void fa_f32_load(fa_dtype t, const char *src, int64_t stride, int64_t n, float *dst) {
  for (int64_t i = 0; i < n; ++i) {
    uint16_t bits;
    if (t == FA_F32) {
      memcpy(&dst[i], src + i * stride * 4, 4);
      continue;
    }
    if (fa_dtype_size(t) == 1) {
      dst[i] = (float)fa_load(t, src + i * stride);
      continue;
    }
    memcpy(&bits, src + i * stride * 2, 2);
    dst[i] = t == FA_F16 ? fa_f16_to_f32(bits) : fa_bf16_to_f32(bits);
  }
}

void fa_f32_store(fa_dtype t, char *dst, int64_t stride, int64_t n, const float *src) {
  for (int64_t i = 0; i < n; ++i) {
    if (t == FA_F32) {
      memcpy(dst + i * stride * 4, &src[i], 4);
      continue;
    }
    if (fa_dtype_size(t) == 1) {
      fa_store(t, dst + i * stride, (double)src[i]);
      continue;
    }
    uint16_t bits = t == FA_F16 ? fa_f32_to_f16(src[i]) : fa_f32_to_bf16(src[i]);
    memcpy(dst + i * stride * 2, &bits, 2);
  }
}

void fa_f32_round(fa_dtype t, int64_t n, float *x) {
  if (t == FA_F16)
    for (int64_t i = 0; i < n; ++i) x[i] = fa_f16_to_f32(fa_f32_to_f16(x[i]));
  else if (t == FA_BF16)
    for (int64_t i = 0; i < n; ++i) x[i] = fa_bf16_to_f32(fa_f32_to_bf16(x[i]));
}
