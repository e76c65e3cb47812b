/* Part of product.cuh, for a device: fragments of 16 x 8 x 8 in the matrix units. Lane 4 g + t of a warp has a[2 n + half] at row
 * g + 8 half, b[n] at column g, and c[2 half + n] at row g + 8 half, column 2 t + n. Slot n of a lane is k = t + 4 n. */
#ifndef FA_REF_CUDA_TILE_UNITS_CUH
#define FA_REF_CUDA_TILE_UNITS_CUH

#include "ref/cuda/tile/piece.cuh"

/* c += a b */
FA_DEVICE void multiply_fragments(double *c, const double *a, const double *b) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
  FA_UNROLL
  for (int n = 0; n < 4; ++n)
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(c[n % 2 * 2]), "+d"(c[n % 2 * 2 + 1])
        : "d"(a[n]), "d"(b[n / 2]));
#endif
}

/* c += a b, of operands of 11 bits: further ones are ignored. */
FA_DEVICE void multiply_fragments(float *c, const float *a, const float *b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(bits_of_float(a[0])), "r"(bits_of_float(a[1])), "r"(bits_of_float(a[2])),
        "r"(bits_of_float(a[3])), "r"(bits_of_float(b[0])), "r"(bits_of_float(b[1])));
}

/* A float32 in two parts of 11 bits, cut and not rounded: nothing overflows, and no part is negative if it is not. */
template <int N> struct fa_judge_parts { float high[N], low[N]; };
template <int N> FA_DEVICE void split(const float *x, fa_judge_parts<N> *to) {
  const uint32_t mask = ~0x1fffu;
  FA_UNROLL
  for (int n = 0; n < N; ++n) {
    to->high[n] = float_of_bits(bits_of_float(x[n]) & mask);
    to->low[n] = float_of_bits(bits_of_float(x[n] - to->high[n]) & mask);
  }
}

/* A lane's two slots in row i + lane / 4 of a piece, 8 along k from `step` times 8 on. Rows i are multiples of 8, and far from each
 * other by what is known when this is compiled: addresses differ by that. */
template <int SIDE, bool ALONG_K, typename T>
FA_DEVICE void take_slots(const T *piece, int i, int step, T *first, T *second) {
  typedef fa_judge_side<T, SIDE, ALONG_K> side;
  const int g = lane() / 4, k = step * 8 + lane() % 4, row = ALONG_K ? i * side::APART : i;
  *first = piece[side::place(g, k) + row];
  *second = piece[side::place(g, k + 4) + row];
}

/* Four times 8 rows of 16 bytes: lane 8 n + r says where row r of n is, and lane 4 g + t gets element t of row g of each. */
FA_DEVICE void take_rows(const float *row, float *to) {
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
  uint32_t bits[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(bits[0]), "=r"(bits[1]), "=r"(bits[2]), "=r"(bits[3])
               : "r"(at)
               : "memory");
  FA_UNROLL
  for (int n = 0; n < 4; ++n) to[n] = float_of_bits(bits[n]);
}

/* Fragments from row i of a piece on: of A, 8 along k; of B, 16 along k for float32, 8 for float64. */
template <int SIDE, bool ALONG_K, typename T>
FA_DEVICE void take_left(const T *piece, int i, int step, T *left) {
  if constexpr (sizeof(T) == 4 && ALONG_K) {
    enum { APART = fa_judge_side<T, SIDE, ALONG_K>::APART };
    take_rows(piece + (i + lane() % 16) * APART + step * 8 + lane() / 16 * 4, left);
  } else {
    take_slots<SIDE, ALONG_K>(piece, i, step, &left[0], &left[2]);
    take_slots<SIDE, ALONG_K>(piece, i + 8, step, &left[1], &left[3]);
  }
}
template <int SIDE, bool ALONG_K> FA_DEVICE void take_right(const double *piece, int j, double *right) {
  take_slots<SIDE, ALONG_K>(piece, j, 0, &right[0], &right[1]);
}
template <int SIDE, bool ALONG_K> FA_DEVICE void take_right(const float *piece, int j, float *right) {
  if constexpr (ALONG_K) {
    enum { APART = fa_judge_side<float, SIDE, ALONG_K>::APART };
    take_rows(piece + (j + lane() % 8) * APART + lane() / 8 * 4, right);
  } else {
    take_slots<SIDE, ALONG_K>(piece, j, 0, &right[0], &right[1]);
    take_slots<SIDE, ALONG_K>(piece, j, 1, &right[2], &right[3]);
  }
}

#endif
