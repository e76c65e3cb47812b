/* The producers of the f32 backward kernels for sm_90a: of every step's rows they load Q and dO twice, split every float, and
 * lay both parts out for warpgroup MMAs, as they are and transposed. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_TF32_PRODUCE_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_TF32_PRODUCE_CUH

#include "gpu/kernels/hopper_backward/tf32_config.cuh"

namespace fa {

/* How a thread takes part in a batch of 32 rows and 64 columns: four rows of one parity by four columns, which are a chunk of
 * each of four rows of a tile either way. Of eight rows transposed l % 4 is row l % 4 * 2, and l % 4 + 4 the next, as
 * accumulators_as_a has them. Eight neighbouring lanes have eight chunks of a transposed row and, since their columns differ
 * with their rows, eight banks of the tile as it is too; a warp loads 64 bytes of every row. */
template <class C> struct hopper_tf32_share {
  int row, col, as_it_is, transposed; /* the latter two: where the first chunk is in a tile */
  FA_DEVICE explicit hopper_tf32_share(int thread) {
    const int lane = thread % 32, warp = thread / 32, chunk = lane % 8, panel = warp / 2,
              quad = (chunk & 6) ^ (lane / 8 + warp % 2 * 4);
    row = chunk / 2 * 8 + chunk % 2;
    col = 32 * panel + 4 * quad;
    as_it_is = panel * C::ROW_PANEL + row * 128 + ((quad ^ chunk % 2) << 4);
    transposed = col * 128 + ((chunk ^ quad % 2 * 4) << 4);
  }
};

/* Loads the thread's share of a batch of rows from row0 on. */
template <class C>
FA_DEVICE void hopper_tf32_load(vec4 (&x)[4], const memeff_rows &rows, int row0, int batch,
                                const hopper_tf32_share<C> &share) {
  constexpr int HALVES = C::D / 64;
  const hopper_tf32_rows from = hopper_tf32_rows_from(rows, row0 + batch / HALVES * 32 + share.row,
                                                      batch % HALVES * 64 + share.col);
  FA_UNROLL
  for (int e = 0; e < 4; ++e) x[e] = hopper_load_floats(from, 2 * e);
}

template <class C>
FA_DEVICE void hopper_tf32_store_rows(uint32_t tile, const vec4 (&x)[4], int batch, const hopper_tf32_share<C> &share) {
  constexpr int HALVES = C::D / 64;
  const uint32_t to = tile + share.as_it_is + batch / HALVES * 32 * 128 + batch % HALVES * 2 * C::ROW_PANEL;
  FA_UNROLL
  for (int e = 0; e < 4; ++e)
    hopper_store_split<C::PART_BYTES>((to ^ e << 5) + e * 256, x[e].x, x[e].y, x[e].z, x[e].w);
}

template <class C>
FA_DEVICE void hopper_tf32_store_transposed(uint32_t tile, const vec4 (&x)[4], int batch,
                                            const hopper_tf32_share<C> &share) {
  constexpr int HALVES = C::D / 64;
  const uint32_t to = tile + share.transposed + batch / HALVES * C::COL_PANEL + batch % HALVES * 64 * 128;
  hopper_store_split<C::PART_BYTES>(to, x[0].x, x[1].x, x[2].x, x[3].x);
  hopper_store_split<C::PART_BYTES>((to ^ 16) + 128, x[0].y, x[1].y, x[2].y, x[3].y);
  hopper_store_split<C::PART_BYTES>((to ^ 32) + 256, x[0].z, x[1].z, x[2].z, x[3].z);
  hopper_store_split<C::PART_BYTES>((to ^ 48) + 384, x[0].w, x[1].w, x[2].w, x[3].w);
}

/* Loads a batch of one of a step's tiles: of Q, dO, dO, Q. */
template <class C>
FA_DEVICE void hopper_tf32_load_of(vec4 (&x)[4], const fa_memeff_backward_params &p, memeff_coord t, const walk &at,
                                   int tile, int batch, const hopper_tf32_share<C> &share) {
  t.head = at.head;
  hopper_tf32_load<C>(x, tile == 0 || tile == 3 ? q_rows(p.forward, t) : do_rows(p, t), at.m * C::BN, batch, share);
}

template <class C>
FA_DEVICE float hopper_tf32_value(const fa_memeff_backward_params &p, memeff_coord t, const walk &at, int thread) {
  t.head = at.head;
  return load_row_value<C>(p, t, at.m * C::BN, thread);
}

/* While one batch is split and stored, the loads of the next are in flight. */
template <class C>
FA_DEVICE void hopper_tf32_backward_produce(const fa_memeff_backward_params &p, const memeff_coord &t,
                                            const hopper_tf32_steps &steps, int thread) {
  constexpr int N = 4 * C::BATCHES;
  const hopper_tf32_share<C> share(thread);
  pipeline_state<C::SLOTS> slot;
  vec4 x[2][4];
  walk at = steps.first();
  if (!steps.has(at)) return;
  float value = hopper_tf32_value<C>(p, t, at, thread);
  hopper_tf32_load_of<C>(x[0], p, t, at, 0, 0, share);
  FA_NO_UNROLL
  for (unsigned step = 0; steps.has(at); ++step) {
    const walk next = next_of(at, steps.blocks);
    FA_UNROLL
    for (int i = 0; i < N; ++i) {
      const int tile = i / C::BATCHES, batch = i % C::BATCHES;
      if (i + 1 < N)
        hopper_tf32_load_of<C>(x[(i + 1) % 2], p, t, at, (i + 1) / C::BATCHES, (i + 1) % C::BATCHES, share);
      else if (steps.has(next))
        hopper_tf32_load_of<C>(x[0], p, t, next, 0, 0, share);
      if (batch == 0) mbarrier_wait(C::empty(slot.stage()), slot.phase() ^ 1);
      if (tile < 2)
        hopper_tf32_store_rows<C>(C::slot(slot.stage()), x[i % 2], batch, share);
      else
        hopper_tf32_store_transposed<C>(C::slot(slot.stage()), x[i % 2], batch, share);
      if (batch + 1 < C::BATCHES) continue;
      if (tile == 0) { /* the step before the last has been read: consumers have released what came after it */
        if (thread < 2 * C::BN) store_shared4(C::values(step) + thread * 4, float_bits(value));
        if (steps.has(next)) value = hopper_tf32_value<C>(p, t, next, thread);
      }
      fence_async();
      mbarrier_arrive(C::full(slot.stage()));
      slot.next();
    }
    at = next;
  }
}

} // namespace fa

#endif
