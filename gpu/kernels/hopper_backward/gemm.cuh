/* The GEMMs of a step, what is cleared before them, and the stores of dS. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_GEMM_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_GEMM_CUH

#include "gpu/kernels/hopper_backward/config.cuh"

namespace fa {

/* Both groups meet, in one instruction where they run the same code: where dQ has as many columns for each. */
template <class C> FA_DEVICE void hopper_sync_groups(int id) {
  if constexpr (C::DQ_FIRST == C::DQ_SECOND)
    named_sync<256>(id);
  else
    named_sync_of_roles<256>(id);
}

/* Writes zeros to the ragged tails of two tiles, from row `first` on: these rows belong to the next sequence,
 * and 0 times a NaN there would reach sums. Called by all consumers, which may read the tiles afterwards. */
template <class C, int PANEL>
FA_DEVICE void hopper_clear_ragged_rows(uint32_t tile, uint32_t other, int first, int thread) {
  constexpr int ROWS = PANEL / 128;
  FA_NO_UNROLL
  for (int i = thread; i < C::PANELS * (ROWS - first) * 8; i += 256) {
    const int panel = i / ((ROWS - first) * 8), chunk = i % ((ROWS - first) * 8);
    store_shared16(tile + panel * PANEL + first * 128 + chunk * 16, vec4{0, 0, 0, 0});
    store_shared16(other + panel * PANEL + first * 128 + chunk * 16, vec4{0, 0, 0, 0});
  }
  fence_async();
  hopper_sync_groups<C>(2);
}

/* x[64 x BM] = A B^T over D; A: the rows of the group's 64 keys, B: the rows of a query block. */
template <class C>
FA_DEVICE void hopper_gemm_s_dp(float (&x)[C::BM / 8][4], uint32_t keys_tile, uint32_t rows_tile) {
  hopper_gemm_ss<C::D, C::KV_PANEL, C::Q_PANEL>(x, keys_tile, rows_tile, typename C::T());
}

/* With KV_IN_REGISTERS: the group's rows of K and V as register operands. */
template <class C> struct hopper_kv_fragments {
  typedef uint32_t tile[C::KV_IN_REGISTERS ? C::D / 16 : 1][4];
  tile k, v;
};
template <class C> FA_DEVICE void hopper_load_kv_fragments(hopper_kv_fragments<C> &x, int group, int thread) {
  const int row = 64 * group + thread / 32 * 16 + thread % 16, half = thread % 32 / 16;
  FA_UNROLL
  for (int i = 0; i < C::D / 16; ++i) {
    const uint32_t at = i / 4 * C::KV_PANEL + row * 128 + (((2 * i % 8 + half) ^ (row % 8)) << 4);
    ldmatrix_x4(x.k[i], shared_base() + C::K_AT + at);
    ldmatrix_x4(x.v[i], shared_base() + C::V_AT + at);
  }
}

/* hopper_gemm_s_dp with those. */
template <class C>
FA_DEVICE void hopper_gemm_s_dp_rs(float (&x)[C::BM / 8][4], const uint32_t (&a)[C::D / 16][4],
                                  uint32_t rows_tile) {
  const uint64_t b = matrix_descriptor(rows_tile, 16, 1024, FA_SWIZZLE_128);
  FA_UNROLL
  for (int i = 0; i < C::D / 16; ++i)
    wgmma_rs<0>(x, a[i], descriptor_at(b, i / 4 * C::Q_PANEL + i % 4 * 32), i > 0, typename C::T());
  wgmma_commit();
}

/* x[64 x D] += A B; A in registers, B the rows of a query block. */
template <class C>
FA_DEVICE void hopper_gemm_dkv(float (&x)[C::D / 8][4], const uint32_t (&a)[C::BM / 16][4],
                                   uint32_t rows_tile) {
  hopper_gemm_rs<C::Q_PANEL>(x, a, rows_tile, typename C::T());
}

/* The group's part of dQ = dS K. */
template <class C, int TILES>
FA_DEVICE void hopper_gemm_ds_k(float (&dq)[TILES][4], uint32_t ds_tile, uint32_t k_tile, int group) {
  const uint32_t a_at = C::BM == 64 ? 0 : group * C::DS_PANEL,
                 b_at = C::BM == 64 ? (C::D <= 64 ? group * C::D : group * C::KV_PANEL) : 0;
  const uint64_t a = matrix_descriptor(ds_tile + a_at, C::DS_PANEL, 1024, FA_SWIZZLE_128),
                 b = matrix_descriptor(k_tile + b_at, C::KV_PANEL, 1024, FA_SWIZZLE_128);
  FA_UNROLL
  for (int i = 0; i < C::BN / 16; ++i)
    wgmma_ss<1, 1>(dq, descriptor_at(a, i * 16 * 128), descriptor_at(b, i * 16 * 128), i > 0,
                   typename C::T());
  wgmma_commit();
}

/* Stores dS^T of a warp's 16 keys; rows are keys. Tiles begin on 1024 bytes, so that the swizzle is an exclusive or
 * of addresses. */
template <class C>
FA_DEVICE void hopper_store_ds(uint32_t tile, const uint32_t (&ds)[C::BM / 16][4], int key0, int lane) {
  const int key = key0 + lane % 16; /* registers 0, 1: keys l/4, l/4 + 8 of rows 0..7; 2, 3: of rows 8..15 */
  const uint32_t first = tile + key * 128 + ((lane / 16 ^ key % 8) << 4);
  FA_UNROLL
  for (int i = 0; i < C::BM / 16; ++i) stmatrix_x4((first ^ i % 4 * 32) + i / 4 * C::DS_PANEL, ds[i]);
}

} // namespace fa

#endif
