/* The producers of the f32 forward kernels for sm_90a: they load K and V, split every float, and lay both parts out for
 * warpgroup MMAs. */
#ifndef FA_GPU_KERNELS_HOPPER_TF32_PRODUCE_CUH
#define FA_GPU_KERNELS_HOPPER_TF32_PRODUCE_CUH

#include "gpu/kernels/hopper/tf32_config.cuh"

namespace fa {

/* Stores a 16-byte chunk of a tile of big parts, and of that of small ones PART_BYTES on. */
template <int PART_BYTES>
FA_DEVICE void hopper_store_split(uint32_t at, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  const tf32_parts x = split(as_float(a)), y = split(as_float(b)), z = split(as_float(c)),
                   w = split(as_float(d));
  store_shared16(at, vec4{x.big, y.big, z.big, w.big});
  store_shared16(at + PART_BYTES, vec4{x.small, y.small, z.small, w.small});
}

/* Where a thread reads next: rows of a tensor from one on, four columns of each. */
struct hopper_tf32_rows {
  const float *next;
  int64_t stride;
  int left; /* rows from `next` on */
};

FA_DEVICE hopper_tf32_rows hopper_tf32_rows_from(const memeff_rows &x, int row, int col) {
  const int64_t at = row < x.n_rows ? row * x.stride : 0; /* a stride that no row follows may be anything */
  return hopper_tf32_rows{static_cast<const float *>(x.base) + x.first + at + col, x.stride, x.n_rows - row};
}
/* The row that is n rows on; zeros behind the last. */
FA_DEVICE vec4 hopper_load_floats(const hopper_tf32_rows &from, int n) {
  return n < from.left ? load_global(reinterpret_cast<const vec4 *>(from.next + n * from.stride))
                       : vec4{0, 0, 0, 0};
}
FA_DEVICE void hopper_skip_rows(hopper_tf32_rows &from, int n) {
  if (n < from.left) from.next += n * from.stride;
  from.left -= n;
}

/* How a thread takes part in a tile of K, which stays as it is: a load of a warp is of 4 rows and 32 columns. All rows of a
 * thread are ROWS apart. */
template <class C> struct hopper_tf32_k_share {
  static constexpr int PANELS = C::D / 32, ROWS = 16 / PANELS;
  int row, col, at; /* at: in the tile, of the first row */
  FA_DEVICE explicit hopper_tf32_k_share(int thread) {
    const int lane = thread % 32, warp = thread / 32, chunk = lane % 8, panel = warp % PANELS;
    row = warp / PANELS * 4 + lane / 8;
    col = panel * 32 + chunk * 4;
    at = panel * C::K_PANEL + row * 128 + ((chunk ^ row % 8) << 4);
  }
};

template <class C>
FA_DEVICE void hopper_produce_k(hopper_tf32_rows &k, uint32_t to, uint32_t empty, int phase) {
  constexpr int ROWS = hopper_tf32_k_share<C>::ROWS, N = C::BN / ROWS;
  FA_NO_UNROLL
  for (int i = 0; i < N; i += C::LOADS) {
    vec4 x[C::LOADS];
    FA_UNROLL
    for (int j = 0; j < C::LOADS; ++j) {
      x[j] = hopper_load_floats(k, 0);
      hopper_skip_rows(k, ROWS);
    }
    if (i == 0) mbarrier_wait(empty, phase);
    FA_UNROLL
    for (int j = 0; j < C::LOADS; ++j) /* rows 4 apart are in the two halves of a swizzle atom */
      hopper_store_split<C::PART_BYTES>((ROWS == 4 && j % 2 ? to ^ 64 : to) + j * ROWS * 128, x[j].x, x[j].y,
                                        x[j].z, x[j].w);
    to += C::LOADS * ROWS * 128;
  }
}

/* The same of V, which is transposed: a tile's rows are columns of V, and of every eight keys l % 4 is key l % 4 * 2,
 * l % 4 + 4 the next, as accumulators_as_a has them. A thread takes four keys of one parity by four columns; a warp, 32 keys
 * by 16 columns; the block, 32 keys by 64 columns. */
struct hopper_tf32_v_share {
  int key, col, at;
  uint32_t place; /* of the chunk in its row */
  FA_DEVICE explicit hopper_tf32_v_share(int thread) {
    const int lane = thread % 32, chunk = lane % 8;
    key = chunk / 2 * 8 + chunk % 2;
    col = thread / 32 * 16 + lane / 8 * 4;
    at = col * 128;
    place = static_cast<uint32_t>((chunk ^ col % 8) << 4);
  }
};

template <class C>
FA_DEVICE void hopper_produce_v(hopper_tf32_rows &v, uint32_t to, uint32_t place, uint32_t empty, int phase) {
  constexpr int HALVES = C::D / 64; /* 64 columns each: a panel of the tile, or half of one */
  static_assert(C::LOADS == 8, "two times four keys");
  FA_NO_UNROLL
  for (int i = 0; i < C::BN / 32 * HALVES; i += 2) {
    vec4 x[2][4];
    FA_UNROLL
    for (int e = 0; e < 4; ++e) {
      x[0][e] = hopper_load_floats(v, 0);
      if (HALVES == 2) x[1][e] = hopper_load_floats(hopper_tf32_rows{v.next + 64, v.stride, v.left}, 0);
      hopper_skip_rows(v, e < 3 ? 2 : 32 - 6);
    }
    FA_UNROLL
    for (int e = 0; e < 4 && HALVES == 1; ++e) {
      x[1][e] = hopper_load_floats(v, 0);
      hopper_skip_rows(v, e < 3 ? 2 : 32 - 6);
    }
    if (i == 0) mbarrier_wait(empty, phase);
    FA_UNROLL
    for (int j = 0; j < 2; ++j) {
      const vec4(&y)[4] = x[j];
      hopper_store_split<C::PART_BYTES>(to + place, y[0].x, y[1].x, y[2].x, y[3].x);
      hopper_store_split<C::PART_BYTES>(to + 128 + (place ^ 16), y[0].y, y[1].y, y[2].y, y[3].y);
      hopper_store_split<C::PART_BYTES>(to + 256 + (place ^ 32), y[0].z, y[1].z, y[2].z, y[3].z);
      hopper_store_split<C::PART_BYTES>(to + 384 + (place ^ 48), y[0].w, y[1].w, y[2].w, y[3].w);
      to += 64 * 128;
    }
  }
}

template <class C>
FA_DEVICE void hopper_tf32_produce(const fa_attention_params &p, const memeff_coord &t, block_range blocks,
                                   int thread) {
  typedef hopper_tf32_barriers<C> bar;
  const hopper_tf32_k_share<C> k_share(thread);
  const hopper_tf32_v_share v_share(thread);
  hopper_tf32_rows k = hopper_tf32_rows_from(k_rows(p, t), blocks.begin * C::BN + k_share.row, k_share.col),
                   v = hopper_tf32_rows_from(v_rows(p, t), blocks.begin * C::BN + v_share.key, v_share.col);
  pipeline_state<C::STAGES> at;
  FA_NO_UNROLL
  for (int block = blocks.begin; block < blocks.end; ++block, at.next()) {
    const int stage = at.stage(), free = at.phase() ^ 1;
    hopper_produce_k<C>(k, hopper_tf32_k<C>(stage) + k_share.at, bar::k_empty(stage), free);
    fence_async();
    mbarrier_arrive(bar::k_full(stage));
    hopper_produce_v<C>(v, hopper_tf32_v<C>(stage) + v_share.at, v_share.place, bar::v_empty(stage), free);
    fence_async();
    mbarrier_arrive(bar::v_full(stage));
  }
}

} // namespace fa

#endif
