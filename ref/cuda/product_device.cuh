/* Part of product.cuh: a tile by the 256 threads of a block, float64 in the matrix units (mma.sync, m16n8k16 or the same by
 * m8n8k4), float32 by fma. Operands are staged through shared memory in pieces of STAGED along k; no other kernel of the
 * judge has barriers. What is along k in memory is known when this is compiled. */

enum { STAGED = 16, TILE_THREADS = 256 };

/* Rows and columns of a tile that a warp, or a thread, sums. float64: warps are 4 by 2, of fragments of 16 x 8; float32: threads
 * are 16 by 16, of 4 rows and columns in each 64. */
template <typename T, int M, int N> struct fa_judge_sums {
  enum { COUNT = M * N / TILE_THREADS, DOWN = sizeof(T) == 8 ? M / 64 : M / 16, ACROSS = COUNT / DOWN };
  T sum[COUNT]; /* [DOWN][ACROSS]; float64: [DOWN] fragments of [ACROSS / 4][4] */
};
template <typename T, int M, int N> FA_DEVICE void clear_sums(fa_judge_sums<T, M, N> *s) {
#pragma unroll
  for (int i = 0; i < fa_judge_sums<T, M, N>::COUNT; ++i) s->sum[i] = 0;
}

/* How a piece of one operand, STAGED along k and SIDE along i, comes into shared memory: neighbours in memory by neighbouring
 * threads. The matrix units read four k and eight i at once, without two of a bank either way. */
template <typename T, int SIDE, bool ALONG_K> struct fa_judge_side {
  enum {
    BY_ROW = ALONG_K && sizeof(T) == 8,
    STEP_I = BY_ROW ? STAGED + 4 : 1,
    STEP_K = BY_ROW ? 1 : SIDE + 4,
    SIZE = BY_ROW ? SIDE * (STAGED + 4) : STAGED * (SIDE + 4),
    EACH = SIDE * STAGED / TILE_THREADS,
    ROWS_APART = ALONG_K ? TILE_THREADS / STAGED : 0, /* two elements of one thread */
    KS_APART = ALONG_K ? 0 : TILE_THREADS / SIDE
  };
  const T *from;
  int64_t step, piece; /* to the thread's next element, and to the next piece */
  uint32_t valid;      /* a bit for each of its rows */
  int i, k;
  T held[EACH];
};

template <typename T, int SIDE, bool ALONG_K>
FA_DEVICE void begin_side(fa_judge_side<T, SIDE, ALONG_K> *s, const T *from, int64_t by_i, int64_t by_k,
                          int first_i, int m, int64_t first) {
  typedef fa_judge_side<T, SIDE, ALONG_K> side;
  s->i = ALONG_K ? (int)threadIdx.x / STAGED : (int)threadIdx.x % SIDE;
  s->k = ALONG_K ? (int)threadIdx.x % STAGED : (int)threadIdx.x / SIDE;
  s->from = from + s->i * by_i + (first + s->k) * by_k;
  s->step = side::ROWS_APART * by_i + side::KS_APART * by_k;
  s->piece = STAGED * by_k;
  s->valid = 0;
#pragma unroll
  for (int u = 0; u < side::EACH; ++u) {
    const int i = s->i + u * side::ROWS_APART;
    s->valid |= (uint32_t)(i >= first_i && i < m) << u;
  }
}
/* left: how many k there are from this piece on. */
template <typename T, int SIDE, bool ALONG_K>
FA_DEVICE void fetch(fa_judge_side<T, SIDE, ALONG_K> *s, int left) {
  typedef fa_judge_side<T, SIDE, ALONG_K> side;
#pragma unroll
  for (int u = 0; u < side::EACH; ++u)
    s->held[u] = s->k + u * side::KS_APART < left && (s->valid >> u & 1) ? s->from[u * s->step] : (T)0;
  s->from += s->piece;
}
template <typename T, int SIDE, bool ALONG_K>
FA_DEVICE void stage(const fa_judge_side<T, SIDE, ALONG_K> *s, T *to) {
  typedef fa_judge_side<T, SIDE, ALONG_K> side;
#pragma unroll
  for (int u = 0; u < side::EACH; ++u)
    to[(s->i + u * side::ROWS_APART) * side::STEP_I + (s->k + u * side::KS_APART) * side::STEP_K] =
        s->held[u];
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

template <int M, int N, bool A_K, bool B_K>
FA_DEVICE void multiply_piece(fa_judge_sums<double, M, N> *s, const double *a, const double *b) {
  typedef fa_judge_side<double, M, A_K> A;
  typedef fa_judge_side<double, N, B_K> B;
  enum { DOWN = M / 64, ACROSS = N / 16 }; /* fragments */
  const int warp = (int)threadIdx.x / WARP, g = lane() / 4, t = lane() % 4;
  const double *const row = a + (warp / 2 * (M / 4) + g) * A::STEP_I + t * A::STEP_K,
                      *const column = b + (warp % 2 * (N / 2) + g) * B::STEP_I + t * B::STEP_K;
  double left[DOWN][8], right[4];
#pragma unroll
  for (int n = 0; n < 8 * DOWN; ++n)
    left[n / 8][n % 8] = row[(n / 8 * 16 + n % 2 * 8) * A::STEP_I + n % 8 / 2 * 4 * A::STEP_K];
#pragma unroll
  for (int part = 0; part < ACROSS; ++part) {
#pragma unroll
    for (int n = 0; n < 4; ++n) right[n] = column[part * 8 * B::STEP_I + n * 4 * B::STEP_K];
#pragma unroll
    for (int down = 0; down < DOWN; ++down)
      multiply_fragments(s->sum + (down * ACROSS + part) * 4, left[down], right);
  }
}
template <int M, int N, bool A_K, bool B_K>
FA_DEVICE void multiply_piece(fa_judge_sums<float, M, N> *s, const float *a, const float *b) {
  enum { DOWN = M / 16, ACROSS = N / 16, A_ROW = M + 4, B_ROW = N + 4 };
  const int i = (int)threadIdx.x / 16 * 4, j = (int)threadIdx.x % 16 * 4;
#pragma unroll
  for (int k = 0; k < STAGED; ++k) {
    float left[DOWN], right[ACROSS];
#pragma unroll
    for (int n = 0; n < DOWN; n += 4) *(float4 *)(left + n) = *(const float4 *)(a + k * A_ROW + n * 16 + i);
#pragma unroll
    for (int n = 0; n < ACROSS; n += 4)
      *(float4 *)(right + n) = *(const float4 *)(b + k * B_ROW + n * 16 + j);
#pragma unroll
    for (int n = 0; n < DOWN * ACROSS; ++n) s->sum[n] = fmaf(left[n / ACROSS], right[n % ACROSS], s->sum[n]);
  }
}

/* The next piece is fetched while this one is multiplied. */
template <bool A_K, bool B_K, typename T, int M, int N>
FA_DEVICE void add_products(fa_judge_sums<T, M, N> *s, const fa_judge_operands<T> *o, int64_t first,
                            int64_t end) {
  typedef fa_judge_side<T, M, A_K> A;
  typedef fa_judge_side<T, N, B_K> B;
  __shared__ __align__(16) T left[A::SIZE], right[B::SIZE];
  A a;
  B b;
  begin_side(&a, o->a, o->a_i, o->a_k, o->first_i, o->m, first);
  begin_side(&b, o->b, o->b_j, o->b_k, 0, o->n, first);
  fetch(&a, (int)(end - first));
  fetch(&b, (int)(end - first));
  for (int left_k = (int)(end - first); left_k > 0; left_k -= STAGED) {
    __syncthreads();
    stage(&a, left);
    stage(&b, right);
    __syncthreads();
    fetch(&a, left_k - STAGED);
    fetch(&b, left_k - STAGED);
    multiply_piece<M, N, A_K, B_K>(s, left, right);
  }
}

/* Where sum n of this thread is in the tile. */
template <int M, int N>
FA_DEVICE void place_of_sum(const fa_judge_sums<double, M, N> *, int n, int *i, int *j) {
  const int warp = (int)threadIdx.x / WARP, g = lane() / 4, t = lane() % 4, part = n / 4;
  *i = warp / 2 * (M / 4) + part / (N / 16) * 16 + g + 8 * (n % 4 / 2);
  *j = warp % 2 * (N / 2) + part % (N / 16) * 8 + 2 * t + n % 2;
}
template <int M, int N>
FA_DEVICE void place_of_sum(const fa_judge_sums<float, M, N> *, int n, int *i, int *j) {
  const int down = n / (N / 16), across = n % (N / 16);
  *i = down / 4 * 64 + (int)threadIdx.x / 16 * 4 + down % 4;
  *j = across / 4 * 64 + (int)threadIdx.x % 16 * 4 + across % 4;
}
template <typename T, int M, int N>
FA_DEVICE void store_sums(const fa_judge_sums<T, M, N> *s, int m, int n, T alpha, bool add, T *c,
                          int64_t ldc) {
#pragma unroll
  for (int x = 0; x < M * N / TILE_THREADS; ++x) {
    int i, j;
    place_of_sum(s, x, &i, &j);
    if (i >= m || j >= n) continue;
    T *to = c + i * ldc + j;
    *to = alpha * s->sum[x] + (add ? *to : (T)0);
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
