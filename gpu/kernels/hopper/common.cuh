/* What the kernels for sm_90a share: pipeline states, TMA loads and stores of tiles in panels of 64 columns
 * (128 bytes a row, 128-byte swizzle), the two forms of their GEMMs, and accumulators on their way to memory. */
#ifndef FA_GPU_KERNELS_HOPPER_COMMON_CUH
#define FA_GPU_KERNELS_HOPPER_COMMON_CUH

#include "gpu/kernels/machine/prim_sm90.cuh"

namespace fa {

/* The state of a pipeline: n counts the stages used so far, which gives the next stage and the phase of its
 * barriers. */
template <int STAGES> struct pipeline_state {
  unsigned n = 0;
  FA_DEVICE int stage() const { return static_cast<int>(n % STAGES); }
  FA_DEVICE int phase() const { return static_cast<int>(n / STAGES % 2); }
  FA_DEVICE void next() { ++n; }
  FA_DEVICE pipeline_state before() const { return pipeline_state{n - 1}; }
  FA_DEVICE pipeline_state after() const { return pipeline_state{n + 1}; }
};

/* Each warp releases what it has read: one lane arrives. */
FA_DEVICE void hopper_release(uint32_t bar, int thread) {
  if (thread % 32 == 0) mbarrier_arrive(bar);
}

/* Adds four matrices of a bias to two tiles of eight columns (of the bias or, read transposed, of its rows), times the scale: those
 * of lines l/4 and l/4 + 8 of the first, then of the second. */
template <int N8, class T>
FA_DEVICE void hopper_add_bias_matrices(float (&s)[N8][4], int first, const uint32_t (&pairs)[4], float scale, T t) {
  FA_UNROLL
  for (int j = 0; j < 4; ++j) {
    float(&x)[4] = s[first + j / 2];
    x[j % 2 * 2] = fmaf(x[j % 2 * 2], scale, low_half(pairs[j], t));
    x[j % 2 * 2 + 1] = fmaf(x[j % 2 * 2 + 1], scale, high_half(pairs[j], t));
  }
}

/* Loads a box of a map into shared memory, panel by panel. */
template <int PANELS, int PANEL_BYTES>
FA_DEVICE void hopper_load(uint32_t shared, const fa_tensor_map *map, uint32_t bar, int row, int head,
                           int batch) {
  mbarrier_arrive_expect(bar, PANELS * PANEL_BYTES);
  FA_UNROLL
  for (int i = 0; i < PANELS; ++i) tma_load(shared + i * PANEL_BYTES, map, bar, 64 * i, row, head, batch);
}

/* The release for both blocks of a cluster of two, one lane for each. All lanes must have waited before. */
FA_DEVICE void hopper_release_both(uint32_t bar, int thread) {
  if (thread % 32 < 2) mbarrier_arrive_at(cluster_address(bar, opaque(thread) % 32)); /* not kept */
}

/* hopper_load for both blocks of a cluster of two; both blocks call it. A box has half the tile's rows: the
 * block of rank 0 loads the first half into both, the block of rank 1 the second. */
template <int PANELS, int PANEL_BYTES>
FA_DEVICE void hopper_load_multicast(uint32_t shared, const fa_tensor_map *map, uint32_t bar, int row, int half,
                                int head, int batch) {
  const int rank = cluster_rank();
  mbarrier_arrive_expect(bar, PANELS * PANEL_BYTES); /* both halves arrive here */
  FA_UNROLL
  for (int i = 0; i < PANELS; ++i)
    tma_load_both(shared + i * PANEL_BYTES + rank * (PANEL_BYTES / 2), map, bar, 64 * i, row + rank * half,
                  head, batch);
}

/* Both of them, for PANELS from one on, and for clusters of RANKS blocks. rows: of the whole tile. */
template <int PANELS, int PANEL_BYTES, int RANKS>
FA_DEVICE void hopper_load_panels(uint32_t shared, const fa_tensor_map *map, uint32_t bar, int panel, int row,
                                  int head, int batch) {
  const int rank = RANKS == 2 ? cluster_rank() : 0;
  mbarrier_arrive_expect(bar, PANELS * PANEL_BYTES);
  FA_UNROLL
  for (int i = 0; i < PANELS; ++i) {
    const uint32_t to = shared + i * PANEL_BYTES + rank * (PANEL_BYTES / RANKS);
    const int first = row + rank * (PANEL_BYTES / 128 / RANKS);
    if (RANKS == 2)
      tma_load_both(to, map, bar, 64 * (panel + i), first, head, batch);
    else
      tma_load(to, map, bar, 64 * (panel + i), first, head, batch);
  }
}

/* Issues x = A B^T over D columns; A and B are rows of two tiles. */
template <int D, int A_PANEL, int B_PANEL, int TILES, class T>
FA_DEVICE void hopper_gemm_ss(float (&x)[TILES][4], uint32_t a_tile, uint32_t b_tile, T t) {
  const uint64_t a = matrix_descriptor(a_tile, 16, 1024, FA_SWIZZLE_128),
                 b = matrix_descriptor(b_tile, 16, 1024, FA_SWIZZLE_128);
  FA_UNROLL
  for (int i = 0; i < D / 16; ++i)
    wgmma_ss<0, 0>(x, descriptor_at(a, i / 4 * A_PANEL + i % 4 * 32),
                   descriptor_at(b, i / 4 * B_PANEL + i % 4 * 32), i > 0, t);
  wgmma_commit();
}

/* Issues x += A B; A in registers, B the rows of a tile. */
template <int B_PANEL, int TILES, int STEPS, class T>
FA_DEVICE void hopper_gemm_rs(float (&x)[TILES][4], const uint32_t (&a)[STEPS][4], uint32_t b_tile, T t) {
  const uint64_t b = matrix_descriptor(b_tile, B_PANEL, 1024, FA_SWIZZLE_128);
  FA_UNROLL
  for (int i = 0; i < STEPS; ++i) wgmma_rs<1>(x, a[i], descriptor_at(b, i * 16 * 128), 1, t);
  wgmma_commit();
}

/* Copies a quad's row of an accumulator into a tile: elements 2r, 2r + 1 of each, times factor; zeros in the
 * rest of the last panel. */
template <int PANEL, int TILES, class T>
FA_DEVICE void hopper_store_row(uint32_t tile, const float (&x)[TILES][4], float factor, int r, int lane,
                                T t) {
  const int row = lane / 4 + 8 * r;
  FA_UNROLL
  for (int n = 0; n < TILES; ++n)
    store_shared4(tile + n / 8 * PANEL + row * 128 + ((n % 8 ^ row % 8) << 4) + lane % 4 * 4,
                  pack2(x[n][2 * r] * factor, x[n][2 * r + 1] * factor, t));
  FA_UNROLL
  for (int n = TILES; n % 8 != 0; ++n)
    store_shared4(tile + n / 8 * PANEL + row * 128 + ((n % 8 ^ row % 8) << 4) + lane % 4 * 4, 0);
}

/* Lane l of a quad has words 2l, 2l + 1 of four 16-byte chunks, one register each; afterwards it has all of
 * chunk l. */
FA_DEVICE void hopper_transpose(uint32_t (&w)[4], int lane) {
  FA_UNROLL
  for (int bit = 0; bit < 2; ++bit) {
    const bool high = lane >> bit & 1;
    FA_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int low_at = bit == 0 ? 2 * i : i, high_at = low_at + 1 + bit;
      const uint32_t other = float_bits(shfl_xor(as_float(high ? w[low_at] : w[high_at]), 1 + bit));
      if (high)
        w[low_at] = other;
      else
        w[high_at] = other;
    }
  }
}

} // namespace fa

#endif
