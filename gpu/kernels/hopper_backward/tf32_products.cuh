/* The products of the f32 backward kernels for sm_90a, and where their operands come from. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_TF32_PRODUCTS_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_TF32_PRODUCTS_CUH

#include "gpu/kernels/hopper_backward/tf32_config.cuh"

namespace fa {

/* The A operands of two batches: one is multiplied by while the other is made. Every product has an even number of batches, so
 * that the next product may begin with the first. */
template <class C> struct hopper_tf32_operands { tf32_a v[2][C::BATCH]; };

/* d = A B, or d += A B, over EIGHTS * 8 of depth. from: where A's eights are loaded from, which is done while the products of
 * the eights before them run. b: the tile of big parts, whose panels are PANEL bytes and whose small parts PART bytes on.
 * after_first(): called when all products issued before these are complete. On return the last batch is in flight. */
template <class C, int EIGHTS, int PANEL, int PART, bool ADDS, int TILES, class FROM, class AFTER>
FA_DEVICE void hopper_tf32_products(float (&d)[TILES][4], hopper_tf32_operands<C> &a, uint32_t b_tile,
                                    const FROM &from, const AFTER &after_first) {
  static_assert(EIGHTS % (2 * C::BATCH) == 0, "an even number of batches");
  const uint64_t b = matrix_descriptor(in_uniform_register(b_tile), 16, 1024, FA_SWIZZLE_128);
  typename FROM::loaded loaded[C::BATCH];
  FA_UNROLL
  for (int j = 0; j < C::BATCH; ++j) from.load(loaded[j], j);
  FA_UNROLL
  for (int i = 0; i < EIGHTS; i += C::BATCH) {
    tf32_a(&x)[C::BATCH] = a.v[i / C::BATCH % 2];
    FA_UNROLL
    for (int j = 0; j < C::BATCH; ++j) from.make(x[j], loaded[j], i + j);
    wgmma_fence();
    FA_UNROLL
    for (int j = 0; j < C::BATCH; ++j) {
      const uint64_t big = descriptor_at(b, (i + j) / 4 * PANEL + (i + j) % 4 * 32),
                     small = descriptor_at(big, PART);
      wgmma_rs<0>(d, x[j].small, big, ADDS || i + j > 0, f32());
      wgmma_rs<0>(d, x[j].big, small, 1, f32());
      wgmma_rs<0>(d, x[j].big, big, 1, f32());
    }
    wgmma_commit();
    FA_UNROLL
    for (int j = 0; j < C::BATCH; ++j)
      if (i + C::BATCH < EIGHTS) from.load(loaded[j], i + C::BATCH + j);
    wgmma_wait_operands<1>();
    if (i == 0) after_first();
  }
}

/* A out of shared memory: a lane's four numbers of an eight. */
struct hopper_tf32_loaded {
  typedef uint32_t loaded[4];
  FA_DEVICE static void make(tf32_a &a, const loaded &x, int) {
    FA_UNROLL
    for (int i = 0; i < 4; ++i) set_a(a, i, as_float(x[i]));
  }
};

/* K or V as A: rows are keys, the depth columns. */
template <class C> struct hopper_tf32_key_rows : hopper_tf32_loaded {
  uint32_t at;
  FA_DEVICE hopper_tf32_key_rows(uint32_t tile, int thread) {
    const int lane = thread % 32, row = thread % 128 / 32 * 16 + lane % 16;
    at = tile + row * 128 + ((lane / 16 ^ row % 8) << 4);
  }
  FA_DEVICE void load(loaded &x, int i) const { ldmatrix_x4(x, (at ^ i % 4 << 5) + i / 4 * C::KEY_PANEL); }
};

/* K as A the other way: rows are 64 columns of K, the depth keys. Of a warp's 16 rows l / 4 is column l / 4 * 2 and l / 4 + 8
 * the next; of eight keys l % 4 is key l % 4 * 2 and l % 4 + 4 the next. So a lane's columns are neighbours, and a warp's
 * loads in 32 banks. */
template <class C> struct hopper_tf32_key_cols : hopper_tf32_loaded {
  uint32_t even, odd; /* keys */
  FA_DEVICE hopper_tf32_key_cols(uint32_t tile, int first_col, int thread) {
    const int lane = thread % 32, col = first_col + thread % 128 / 32 * 16 + lane / 4 * 2, key = lane % 4 * 2;
    even = tile + col / 32 * C::KEY_PANEL + key * 128 + ((col / 4 % 8 ^ key) << 4) + col % 4 * 4;
    odd = (even ^ 16) + 128;
  }
  FA_DEVICE void load(loaded &x, int i) const {
    const vec2 y = load_shared8(even + i * 1024), z = load_shared8(odd + i * 1024);
    x[0] = y.x;
    x[1] = y.y;
    x[2] = z.x;
    x[3] = z.y;
  }
};

/* A out of accumulators. */
struct hopper_tf32_accumulated {
  struct loaded {};
  FA_DEVICE static void load(loaded &, int) {}
};

/* P^T as A. */
template <class C> struct hopper_tf32_weights : hopper_tf32_accumulated {
  const typename C::score_tile &p;
  FA_DEVICE explicit hopper_tf32_weights(const typename C::score_tile &x) : p(x) {}
  FA_DEVICE void make(tf32_a &a, loaded, int i) const { accumulators_as_a(a, p[i]); }
};

/* dS^T likewise, which on its way is stored as B of dQ: a tile's rows are query rows, its columns keys in the order of
 * hopper_tf32_key_cols. */
template <class C> struct hopper_tf32_gradients : hopper_tf32_accumulated {
  const typename C::score_tile &ds;
  uint32_t at;
  FA_DEVICE hopper_tf32_gradients(const typename C::score_tile &x, uint32_t tile, int thread) : ds(x) {
    const int lane = thread % 32, warp = thread % 128 / 32, row = lane % 4 * 2,
              chunk = warp % 2 * 4 + lane / 4 % 2; /* of the lane's first key */
    at = tile + warp / 2 * C::DS_PANEL + row * 128 + ((chunk ^ row) << 4) + lane / 8 * 4;
  }
  FA_DEVICE void make(tf32_a &a, loaded, int i) const {
    accumulators_as_a(a, ds[i]);
    FA_UNROLL
    for (int e = 0; e < 2; ++e) { /* rows */
      FA_UNROLL
      for (int r = 0; r < 2; ++r) { /* keys 8 apart */
        const uint32_t to = (at ^ (e << 4 | r << 5)) + i * 1024 + e * 128;
        store_shared4(to, a.big[2 * e + r]);
        store_shared4(to + C::DS_PART, a.small[2 * e + r]);
      }
    }
  }
};

} // namespace fa

#endif
