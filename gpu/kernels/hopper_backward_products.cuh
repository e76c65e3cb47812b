/* The products of a step, and where dS and dQ go. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_PRODUCTS_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_PRODUCTS_CUH

#include "gpu/kernels/hopper_backward_config.cuh"

namespace fa {

/* x[64 x BM] = A B^T over D: rows of the group's 64 keys, B the rows of a query block. */
template <class C>
FA_DEVICE void hopper_backward_scores(float (&x)[C::BM / 8][4], uint32_t keys_tile, uint32_t rows_tile) {
  hopper_multiply<C::D, C::KV_PANEL, C::Q_PANEL>(x, keys_tile, rows_tile, typename C::T());
}

/* x[64 x D] += A B, A from registers, B the rows of a query block. */
template <class C>
FA_DEVICE void hopper_backward_add(float (&x)[C::D / 8][4], const uint32_t (&a)[C::BM / 16][4],
                                   uint32_t rows_tile) {
  hopper_add<C::Q_PANEL>(x, a, rows_tile, typename C::T());
}

/* The group's part of dQ = dS K. */
template <class C, int TILES>
FA_DEVICE void hopper_backward_dq(float (&dq)[TILES][4], uint32_t ds_tile, uint32_t k_tile, int group) {
  const uint32_t a_at = C::BM == 64 ? 0 : group * C::DS_PANEL,
                 b_at = C::BM == 64 ? (C::D == 64 ? group * 64 : group * C::KV_PANEL) : 0;
  const uint64_t a = matrix_descriptor(ds_tile + a_at, C::DS_PANEL, 1024, FA_SWIZZLE_128),
                 b = matrix_descriptor(k_tile + b_at, C::KV_PANEL, 1024, FA_SWIZZLE_128);
  FA_UNROLL
  for (int i = 0; i < C::BN / 16; ++i)
    wgmma_ss<1, 1>(dq, descriptor_at(a, i * 16 * 128), descriptor_at(b, i * 16 * 128), i > 0,
                   typename C::T());
  wgmma_commit();
}

/* Adds it to the accumulator, whose tiles lie as registers do. */
template <class C, int TILES>
FA_DEVICE void hopper_backward_add_dq(const fa_flash_backward_params &p, const float (&dq)[TILES][4],
                                      int batch, int head, int row0, int group, int thread) {
  const int row = row0 + (C::BM == 64 ? 0 : 64 * group) + thread / 32 * 16;
  const int chunk = C::BM == 64 ? group * (C::DQ_FIRST / 8) : 0;
  float *to = p.dq_accum + (C::ORDERED ? own_accumulator(p) : 0) +
              workspace_row<C::D>(p, batch, head, row) * C::D + chunk * 128 + thread % 32 * 4;
  FA_UNROLL
  for (int n = 0; n < TILES; ++n) atomic_add4(to + n * 128, dq[n]);
}

/* dS^T of the group's keys, rows being keys. */
template <class C>
FA_DEVICE void hopper_store_ds(uint32_t tile, const uint32_t (&ds)[C::BM / 16][4], int key, int lane) {
  FA_UNROLL
  for (int i = 0; i < C::BM / 16; ++i) {
    FA_UNROLL
    for (int j = 0; j < 4; ++j) { /* registers 0, 1: keys l/4, l/4 + 8 of rows 0..7; 2, 3: of rows 8..15 */
      const int row = key + j % 2 * 8, chunk = 2 * i + j / 2;
      store_shared4(tile + chunk / 8 * C::DS_PANEL + row * 128 + ((chunk % 8 ^ row % 8) << 4) + lane % 4 * 4,
                    ds[i][j]);
    }
  }
}

} // namespace fa

#endif
