/* Part of product.cuh: a tile by the 256 threads of a block, float64 in the matrix units (mma.sync, m16n8k16 or the same by
 * m8n8k4), float32 by fma. Operands are staged through shared memory in pieces of STAGED along k; no other kernel of the
 * judge has barriers. */

enum {
  STAGED = 16,
  STAGE_ROW = FA_STRIP + 4,
  TILE_THREADS = 256,
  PER_THREAD = STAGED * FA_STRIP / TILE_THREADS
};

template <typename T> struct fa_judge_sums {
  T sum[4]
       [4]; /* f32: rows 4 y .., columns 4 x ..; f64: fragments of four 16 x 8 products of a warp's 16 x 32 */
};
template <typename T> FA_DEVICE void clear_sums(fa_judge_sums<T> *s) {
#pragma unroll
  for (int i = 0; i < 16; ++i) s->sum[i / 4][i % 4] = 0;
}

/* Which element of a piece, [STAGED][FA_STRIP], a thread moves: neighbours in memory by neighbouring threads. */
FA_DEVICE int staged_k(int u, bool along_k) {
  const int at = (int)threadIdx.x + u * TILE_THREADS;
  return along_k ? at % STAGED : at / FA_STRIP;
}
FA_DEVICE int staged_i(int u, bool along_k) {
  const int at = (int)threadIdx.x + u * TILE_THREADS;
  return along_k ? at / STAGED : at % FA_STRIP;
}

template <typename T>
FA_DEVICE void fetch(const T *from, int64_t by_i, int64_t by_k, int first_i, int m, int64_t k0, int64_t end,
                     T *to) {
  const bool along_k = by_k == 1;
#pragma unroll
  for (int u = 0; u < PER_THREAD; ++u) {
    const int64_t k = k0 + staged_k(u, along_k);
    const int i = staged_i(u, along_k);
    to[u] = k < end && i >= first_i && i < m ? from[i * by_i + k * by_k] : (T)0;
  }
}
template <typename T> FA_DEVICE void stage(T (*to)[STAGE_ROW], bool along_k, const T *from) {
#pragma unroll
  for (int u = 0; u < PER_THREAD; ++u) to[staged_k(u, along_k)][staged_i(u, along_k)] = from[u];
}

/* c += a b of 16 x 8 x 16. Lane 4 g + t has a[2 n + half] at row g + 8 half, k = t + 4 n; b[n] at k = t + 4 n, column g;
 * c[2 half + n] at row g + 8 half, column 2 t + n. */
FA_DEVICE void multiply_fragments(double *c, const double *a, const double *b) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, "
      "{%12,%13,%14,%15}, {%0,%1,%2,%3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]),
        "d"(b[1]), "d"(b[2]), "d"(b[3]));
#else
#pragma unroll
  for (int n = 0; n < 4; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
          : "+d"(c[2 * half]), "+d"(c[2 * half + 1])
          : "d"(a[2 * n + half]), "d"(b[n]));
#endif
}

/* Warps are 4 by 2, of 16 rows and 32 columns. */
FA_DEVICE void multiply_piece(fa_judge_sums<double> *s, const double (*a)[STAGE_ROW],
                              const double (*b)[STAGE_ROW]) {
  const int warp = (int)threadIdx.x / WARP, g = lane() / 4, t = lane() % 4, i = warp / 2 * 16 + g,
            j = warp % 2 * 32 + g;
  double left[8], right[4];
#pragma unroll
  for (int n = 0; n < 8; ++n) left[n] = a[t + 4 * (n / 2)][i + 8 * (n % 2)];
#pragma unroll
  for (int part = 0; part < 4; ++part) {
#pragma unroll
    for (int n = 0; n < 4; ++n) right[n] = b[t + 4 * n][j + 8 * part];
    multiply_fragments(s->sum[part], left, right);
  }
}
FA_DEVICE void multiply_piece(fa_judge_sums<float> *s, const float (*a)[STAGE_ROW],
                              const float (*b)[STAGE_ROW]) {
  const int i = (int)threadIdx.x / 16 * 4, j = (int)threadIdx.x % 16 * 4;
#pragma unroll
  for (int k = 0; k < STAGED; ++k) {
    const float4 left = *(const float4 *)&a[k][i], right = *(const float4 *)&b[k][j];
    const float l[4] = {left.x, left.y, left.z, left.w}, r[4] = {right.x, right.y, right.z, right.w};
#pragma unroll
    for (int n = 0; n < 16; ++n) s->sum[n / 4][n % 4] = fmaf(l[n / 4], r[n % 4], s->sum[n / 4][n % 4]);
  }
}

/* The next piece is fetched while this one is multiplied. */
template <typename T>
FA_DEVICE void add_products(fa_judge_sums<T> *s, const fa_judge_operands<T> *o, int64_t first, int64_t end) {
  __shared__ __align__(16) T left[STAGED][STAGE_ROW], right[STAGED][STAGE_ROW];
  T a[PER_THREAD], b[PER_THREAD];
  fetch(o->a, o->a_i, o->a_k, o->first_i, o->m, first, end, a);
  fetch(o->b, o->b_j, o->b_k, 0, o->n, first, end, b);
  for (int64_t k = first; k < end; k += STAGED) {
    __syncthreads();
    stage(left, o->a_k == 1, a);
    stage(right, o->b_k == 1, b);
    __syncthreads();
    fetch(o->a, o->a_i, o->a_k, o->first_i, o->m, k + STAGED, end, a);
    fetch(o->b, o->b_j, o->b_k, 0, o->n, k + STAGED, end, b);
    multiply_piece(s, left, right);
  }
}

FA_DEVICE void place_of_sum(double, int n, int *i, int *j) {
  const int warp = (int)threadIdx.x / WARP, g = lane() / 4, t = lane() % 4;
  *i = warp / 2 * 16 + g + 8 * (n % 4 / 2);
  *j = warp % 2 * 32 + 8 * (n / 4) + 2 * t + n % 2;
}
FA_DEVICE void place_of_sum(float, int n, int *i, int *j) {
  *i = (int)threadIdx.x / 16 * 4 + n / 4;
  *j = (int)threadIdx.x % 16 * 4 + n % 4;
}
template <typename T>
FA_DEVICE void store_sums(const fa_judge_sums<T> *s, int m, int n, T alpha, bool add, T *c, int64_t ldc) {
#pragma unroll
  for (int x = 0; x < 16; ++x) {
    int i, j;
    place_of_sum(alpha, x, &i, &j);
    if (i >= m || j >= n) continue;
    T *to = c + i * ldc + j;
    *to = alpha * s->sum[x / 4][x % 4] + (add ? *to : (T)0);
  }
}

/* Of n <= 256 ranges, a thread each: the smallest first and largest end; none: first >= end. Lengths fit 32 bits. */
template <typename F> FA_DEVICE void join_ranges(int64_t n, const F &range, int64_t *first, int64_t *end) {
  __shared__ int joined[2][TILE_THREADS / WARP];
  int64_t lo = INT32_MAX, hi = 0;
  if (threadIdx.x < n) range((int64_t)threadIdx.x, &lo, &hi);
  const bool any = lo < hi;
  const int low = __reduce_min_sync(~0u, any ? (int)lo : INT32_MAX),
            high = __reduce_max_sync(~0u, any ? (int)hi : 0);
  __syncthreads();
  if (lane() == 0) joined[0][threadIdx.x / WARP] = low, joined[1][threadIdx.x / WARP] = high;
  __syncthreads();
  *first = INT32_MAX, *end = 0;
  for (int w = 0; w < TILE_THREADS / WARP; ++w) {
    *first = joined[0][w] < *first ? joined[0][w] : *first;
    *end = joined[1][w] > *end ? joined[1][w] : *end;
  }
}
