#include "ref/math/gemm.h"

enum { ROWS = 8, VECTORS = 3 };

#if defined(__AVX512F__)
#include <immintrin.h>

/* The union of the spans of some rows. */
static void span_of(const fa_gemm_spans *s, int i, int some, int64_t *first, int64_t *end) {
  *end = 0;
  for (int r = i; r < i + some; ++r) {
    if (s->end[r] <= s->first[r]) continue;
    *first = *end == 0 || s->first[r] < *first ? s->first[r] : *first;
    *end = s->end[r] > *end ? s->end[r] : *end;
  }
  if (*end == 0) *first = 0;
}

#define REAL double
#define VECTOR __m512d
#define MASK __mmask8
#define LANES 8
#define NAME(x) x##_f64
#define ZERO _mm512_setzero_pd
#define SET1 _mm512_set1_pd
#define FMA _mm512_fmadd_pd
#define LOAD _mm512_maskz_loadu_pd
#define STORE _mm512_mask_storeu_pd
#include "ref/math/gemm_body.h"
#undef REAL
#undef VECTOR
#undef MASK
#undef LANES
#undef NAME
#undef ZERO
#undef SET1
#undef FMA
#undef LOAD
#undef STORE
#define REAL float
#define VECTOR __m512
#define MASK __mmask16
#define LANES 16
#define NAME(x) x##_f32
#define ZERO _mm512_setzero_ps
#define SET1 _mm512_set1_ps
#define FMA _mm512_fmadd_ps
#define LOAD _mm512_maskz_loadu_ps
#define STORE _mm512_mask_storeu_ps
#include "ref/math/gemm_body.h"
#else
void fa_gemm_f64(FA_GEMM_ARGUMENTS(double)) {
  (void)m, (void)n, (void)k, (void)alpha, (void)a, (void)a_row, (void)a_k, (void)b, (void)ldb, (void)beta;
  (void)c, (void)ldc, (void)spans;
}
void fa_gemm_f32(FA_GEMM_ARGUMENTS(float)) {
  (void)m, (void)n, (void)k, (void)alpha, (void)a, (void)a_row, (void)a_k, (void)b, (void)ldb, (void)beta;
  (void)c, (void)ldc, (void)spans;
}
#endif
