/* Part of product.cuh: a tile by the 256 threads of a block in the matrix units, float64 as it is, float32 in three products of
 * operands that are cut into two parts. Operands come through shared memory in pieces (tile/piece.cuh); no other kernel of the
 * judge has barriers. */
#include "ref/cuda/tile/piece.cuh"
#include "ref/cuda/tile/units.cuh"

/* What a warp sums of a tile: warps are 4 by 2, of fragments of 16 x 8. */
template <typename T, int M, int N> struct fa_judge_sums {
  enum { DOWN = M / 64, ACROSS = N / 16, COUNT = DOWN * ACROSS * 4 };
  T sum[COUNT]; /* [DOWN][ACROSS] fragments of 4 */
};
template <typename T, int M, int N> FA_DEVICE void clear_sums(fa_judge_sums<T, M, N> *s) {
  FA_UNROLL
  for (int i = 0; i < fa_judge_sums<T, M, N>::COUNT; ++i) s->sum[i] = 0;
}

/* A warp's first row and column of the tile. */
template <int M> FA_DEVICE int first_row() {
  return (int)threadIdx.x / WARP / 2 * (M / 4);
}
template <int N> FA_DEVICE int first_column() {
  return (int)threadIdx.x / WARP % 2 * (N / 2);
}

template <bool A_K, bool B_K, int M, int N>
FA_DEVICE void multiply_piece(fa_judge_sums<double, M, N> *s, const double *a, const double *b) {
  typedef fa_judge_sums<double, M, N> sums;
  double left[sums::DOWN][4], right[2];
  FA_UNROLL
  for (int down = 0; down < sums::DOWN; ++down)
    take_left<M, A_K>(a, first_row<M>() + down * 16, 0, left[down]);
  FA_UNROLL
  for (int across = 0; across < sums::ACROSS; ++across) {
    take_right<N, B_K>(b, first_column<N>() + across * 8, right);
    FA_UNROLL
    for (int down = 0; down < sums::DOWN; ++down)
      multiply_fragments(s->sum + (down * sums::ACROSS + across) * 4, left[down], right);
  }
}

/* Float32 is of magnitudes alone: no term is negative. Of x = high + low + rest, low is below 2^-10 x and rest below 2^-20 x; what is
 * left out of a product, low low and the rests, is below 3 2^-20 of it. The units cut what is below a sum's 24 bits: of the
 * nine terms of each of the two large sums of a piece less than 2^-23 of it, 18 2^-23 together. So the sum of a piece, which
 * begins with 0, is too small by less than 2^-17, however many pieces there are: they are added up by additions that round,
 * one for 16 terms. That is inside of the 2^-16 + n 2^-24 that the judges' bounds may differ by, and what is cut makes a bound
 * smaller, never larger. (Seen: 7e-7 for n = 2,048 and like terms, 1.3e-6 for terms of 40 binades.) Low parts and products
 * below the smallest normal number are lost: a sum of nothing but terms within 2^10 of it may be too small by 2^-10. */
template <bool A_K, bool B_K, int M, int N>
FA_DEVICE void multiply_piece(fa_judge_sums<float, M, N> *s, const float *a, const float *b) {
  typedef fa_judge_sums<float, M, N> sums;
  fa_judge_parts<4> left[sums::DOWN][2];
  float x[4];
  FA_UNROLL
  for (int n = 0; n < sums::DOWN * 2; ++n) {
    take_left<M, A_K>(a, first_row<M>() + n / 2 * 16, n % 2, x);
    split(x, &left[n / 2][n % 2]);
  }
  FA_UNROLL
  for (int across = 0; across < sums::ACROSS; ++across) {
    fa_judge_parts<4> right;
    take_right<N, B_K>(b, first_column<N>() + across * 8, x);
    split(x, &right);
    FA_UNROLL
    for (int down = 0; down < sums::DOWN; ++down) {
      float piece[4] = {0, 0, 0, 0}, *sum = s->sum + (down * sums::ACROSS + across) * 4;
      FA_UNROLL
      for (int step = 0; step < 2; ++step) {
        multiply_fragments(piece, left[down][step].low, right.high + 2 * step);
        multiply_fragments(piece, left[down][step].high, right.low + 2 * step);
      }
      FA_UNROLL
      for (int step = 0; step < 2; ++step)
        multiply_fragments(piece, left[down][step].high, right.high + 2 * step);
      FA_UNROLL
      for (int n = 0; n < 4; ++n) sum[n] += piece[n];
    }
  }
}

/* Pieces are copied while others are multiplied; one barrier a piece, behind which nobody reads the one before it. */
template <bool A_K, bool B_K, typename T, int M, int N>
FA_DEVICE void add_products(fa_judge_sums<T, M, N> *s, const fa_judge_operands<T> *o, int64_t first,
                            int64_t end) {
  typedef fa_judge_side<T, M, A_K> A;
  typedef fa_judge_side<T, N, B_K> B;
  enum { K = fa_judge_piece<T>::K, STAGES = fa_judge_piece<T>::STAGES };
  __shared__ __align__(16) T left[STAGES][A::SIZE], right[STAGES][B::SIZE];
  A a;
  B b;
  int ahead = (int)(end - first); /* elements that no copy was begun of */
  begin_side(&a, o->a, o->a_i, o->a_k, o->first_i, o->m, first);
  begin_side(&b, o->b, o->b_j, o->b_k, 0, o->n, first);
  __syncthreads();
  FA_UNROLL
  for (int n = 0; n < STAGES - 1; ++n, ahead -= K) {
    if (ahead > 0) copy_piece(&a, left[n], ahead), copy_piece(&b, right[n], ahead);
    end_copies();
  }
  for (int n = 0, next = STAGES - 1; ahead > -(STAGES - 1) * K; ahead -= K) {
    await_copies<STAGES - 2>();
    __syncthreads();
    if (ahead > 0) copy_piece(&a, left[next], ahead), copy_piece(&b, right[next], ahead);
    end_copies();
    multiply_piece<A_K, B_K>(s, left[n], right[n]);
    n = n == STAGES - 1 ? 0 : n + 1;
    next = next == STAGES - 1 ? 0 : next + 1;
  }
}

/* Two neighbours, which are read and written together where their address allows it. */
template <typename T> struct alignas(2 * sizeof(T)) fa_judge_pair { T x, y; };
template <typename T, int M, int N>
FA_DEVICE void store_sums(const fa_judge_sums<T, M, N> *s, int m, int n, T alpha, bool add, T *c,
                          int64_t ldc) {
  typedef fa_judge_sums<T, M, N> sums;
  const bool in_pairs = (uintptr_t)c % (2 * sizeof(T)) == 0 && ldc % 2 == 0;
  FA_UNROLL
  for (int part = 0; part < 2 * sums::DOWN; ++part) {
    const int i = first_row<M>() + part * 8 + lane() / 4;
    if (i >= m) continue;
    FA_UNROLL
    for (int across = 0; across < sums::ACROSS; ++across) {
      const int j = first_column<N>() + across * 8 + lane() % 4 * 2;
      const T *sum = s->sum + (part / 2 * sums::ACROSS + across) * 4 + part % 2 * 2;
      T *to = c + i * ldc + j;
      fa_judge_pair<T> both = {alpha * sum[0], alpha * sum[1]};
      if (j >= n) continue;
      if (in_pairs && j + 1 < n) {
        const fa_judge_pair<T> had = add ? *(fa_judge_pair<T> *)to : fa_judge_pair<T>{0, 0};
        *(fa_judge_pair<T> *)to = {both.x + had.x, both.y + had.y};
        continue;
      }
      to[0] = both.x + (add ? to[0] : (T)0);
      if (j + 1 < n) to[1] = both.y + (add ? to[1] : (T)0);
    }
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
