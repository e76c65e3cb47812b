/* Included once per type, with REAL, VECTOR, LANES and the names of the intrinsics defined. */

/* A block of R rows and V vectors of C, the last vector masked: R V sums stay in registers, and a row of B is
 * loaded once for R rows. */
static inline __attribute__((always_inline)) void NAME(block)(int rows, int vectors, int64_t k, REAL alpha,
                                                              const REAL *a, int64_t a_row, int64_t a_k,
                                                              const REAL *b, int64_t ldb, REAL beta, REAL *c,
                                                              int64_t ldc, MASK last) {
  VECTOR sum[ROWS][VECTORS];
  const MASK all = (MASK)-1;
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) sum[r][v] = ZERO();
  for (int64_t x = 0; x < k; ++x) {
    VECTOR line[VECTORS];
    for (int v = 0; v < vectors; ++v) line[v] = LOAD(v == vectors - 1 ? last : all, b + x * ldb + v * LANES);
    for (int r = 0; r < rows; ++r) {
      const VECTOR one = SET1(a[r * a_row + x * a_k]);
      for (int v = 0; v < vectors; ++v) sum[r][v] = FMA(one, line[v], sum[r][v]);
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) {
      const MASK mask = v == vectors - 1 ? last : all;
      REAL *to = c + r * ldc + v * LANES;
      STORE(to, mask, FMA(SET1(alpha), sum[r][v], beta == 0 ? ZERO() : LOAD(mask, to)));
    }
}

#define CASE(r)                                                                                              \
  case r:                                                                                                    \
    if (vectors == 3)                                                                                        \
      NAME(block)(r, 3, k, alpha, a, a_row, a_k, b, ldb, beta, c, ldc, last);                                \
    else if (vectors == 2)                                                                                   \
      NAME(block)(r, 2, k, alpha, a, a_row, a_k, b, ldb, beta, c, ldc, last);                                \
    else                                                                                                     \
      NAME(block)(r, 1, k, alpha, a, a_row, a_k, b, ldb, beta, c, ldc, last);                                \
    break

/* All columns of a strip of at most ROWS rows. */
static void NAME(strip)(int rows, int n, int64_t k, REAL alpha, const REAL *a, int64_t a_row, int64_t a_k,
                        const REAL *b, int64_t ldb, REAL beta, REAL *c, int64_t ldc) {
  const int n_vectors = (n + LANES - 1) / LANES;
  int left = n_vectors;
  while (left > 0) {
    /* 2 and 2 rather than 3 and 1: two equal blocks share their rows' loads better. */
    const int vectors = left == 4 || left == 2 ? 2 : left < 3 ? left : 3;
    const MASK last = left == vectors && n % LANES ? (MASK)((1u << n % LANES) - 1) : (MASK)-1;
    switch (rows) {
      CASE(1);
      CASE(2);
      CASE(3);
      CASE(4);
      CASE(5);
      CASE(6);
      CASE(7);
      CASE(8);
    }
    left -= vectors;
    b += vectors * LANES;
    c += vectors * LANES;
  }
}
#undef CASE

/* Copies columns of A, LANES at a time, to consecutive memory. If rows of A are far apart, each is in a cache
 * line of its own, and these lines compete for the same cache sets. */
static void NAME(gather)(const REAL *a, int64_t step, int columns, int64_t k, REAL *to) {
  const MASK mask = columns < LANES ? (MASK)((1u << columns) - 1) : (MASK)-1;
  for (int64_t x = 0; x < k; ++x) STORE(to + x * LANES, (MASK)-1, LOAD(mask, a + x * step));
}

void NAME(fa_gemm)(FA_GEMM_ARGUMENTS(REAL)) {
  REAL columns[FA_GEMM_MOST_K * LANES] __attribute__((aligned(64)));
  const int width = a_row == 1 ? LANES : ROWS;
  for (int i = 0; i < m; i += width) {
    const int some = m - i < width ? m - i : width;
    int64_t first = 0, end = k;
    if (spans) span_of(spans, i, some, &first, &end);
    const REAL *from = a + i * a_row + first * a_k;
    if (a_row == 1) NAME(gather)(from, a_k, some, end - first, columns);
    for (int r = 0; r < some; r += ROWS) NAME(strip)
    (some - r < ROWS ? some - r : ROWS, n, end - first, alpha, a_row == 1 ? columns + r : from, a_row,
     a_row == 1 ? LANES : a_k, b + first * ldb, ldb, beta, c + (int64_t)(i + r) * ldc, ldc);
  }
}
