/* What is done another way for the fewest rows, up to 8, of which half of an MMA's first operand would be empty: over caches of 8
 * and 4 bits, where the work on a tile is as long as its way from memory. */
#ifndef FA_GPU_KERNELS_CACHE_FEWEST_CUH
#define FA_GPU_KERNELS_CACHE_FEWEST_CUH

#include "gpu/kernels/cache/eight.cuh"

namespace fa {

/* Q: a fragment has two runs of 16 columns, the second where rows 8..15 would be. */
template <class C> struct q_pairs {
  uint32_t a[C::D / 32][4];
  uint32_t at; /* or in shared memory, for all warps, whose rows are the same */
  FA_DEVICE q_pairs(int, int lane) : at(shared_base() + C::Q_AT + lane * 16) {}
  FA_DEVICE void set(int kk, const uint32_t (&from)[4]) {
    uint32_t(&to)[4] = a[kk / 2];
    to[kk % 2] = from[0];
    to[kk % 2 + 2] = from[2];
    if (C::Q_OF_BLOCK && kk % 2 == 1) store_shared16(at + kk / 2 * 512, vec4{to[0], to[1], to[2], to[3]});
  }
  FA_DEVICE void get(uint32_t (&to)[4], int k) const {
    const vec4 v = C::Q_OF_BLOCK ? load_shared16(at + k * 512) : vec4{a[k][0], a[k][1], a[k][2], a[k][3]};
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  }
};

/* With each fragment of Q for both of its runs of columns: a product with K's first run is in its first 8 rows, one with K's
 * second run in the others, and what the rest of both holds is nobody's. */
template <class C> FA_DEVICE void cache_gemm_qk(float (&s)[C::KEYS / 8][4], const q_pairs<C> &q, uint32_t k_first) {
  float part[2][C::KEYS / 8][4] = {};
  FA_UNROLL
  for (int k = 0; k < C::D / 32; ++k) {
    uint32_t a[4];
    q.get(a, k);
    FA_UNROLL
    for (int n = 0; n < C::KEYS / 16; ++n) {
      uint32_t b[2][4];
      if constexpr (C::EIGHT) {
        load_b_of_bytes<C>(b, k_first, n, k);
      } else {
        load_b<C::D>(b[0], k_first, n, 2 * k);
        load_b<C::D>(b[1], k_first, n, 2 * k + 1);
      }
      FA_UNROLL
      for (int h = 0; h < 2; ++h) {
        mma(part[h][2 * n], a, b[h], typename C::T());
        mma(part[h][2 * n + 1], a, b[h] + 2, typename C::T());
      }
    }
  }
  FA_UNROLL
  for (int n = 0; n < C::KEYS / 8; ++n) {
    FA_UNROLL
    for (int e = 0; e < 2; ++e) s[n][e] = part[0][n][e] + part[1][n][e + 2];
  }
}

/* o += P V of 16 keys, as V^T P^T, whose tiles are 16 columns by 8 rows, so that no half of them is of rows that are not there.
 * A lane's P of a row, p[0] and p[2], are as they are its part of P^T. */
template <class C>
FA_DEVICE void cache_add_pv_transposed(float (&o)[C::O_TILES][4], const uint32_t (&p)[4], uint32_t v_first, int kk) {
  typename C::T t;
  FA_UNROLL
  for (int m = 0; m < C::O_TILES; m += 2) {
    uint32_t v[2][4];
    if constexpr (C::EIGHT) {
      load_b_trans_of_bytes<C>(v, v_first, kk, m / 2);
    } else {
      load_b_trans<C::D>(v[0], v_first, kk, m);
      load_b_trans<C::D>(v[1], v_first, kk, m + 1);
    }
    FA_UNROLL
    for (int h = 0; h < 2; ++h) {
      const uint32_t a[4] = {v[h][0], v[h][2], v[h][1], v[h][3]}, b[2] = {p[0], p[2]};
      mma(o[m + h], a, b, t);
    }
  }
}

/* From a lane's row of S to its two rows of O. */
FA_DEVICE void factors_of_columns(float (&to)[2], float of_row, int lane) {
  FA_UNROLL
  for (int r = 0; r < 2; ++r) to[r] = of_lane(of_row, lane % 4 * 8 + r * 4);
}

} // namespace fa

#endif
