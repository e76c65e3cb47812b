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

/* Where the thread's share of a step begins in Q and dO: its first row and column. Made anew for every step out of what the
 * compiler must not keep parts of, for which the producers have no registers. */
struct hopper_tf32_source {
  const float *q, *d_o;
  int left; /* rows from the first on */
};

FA_DEVICE const float *hopper_tf32_source_in(const void *base, const fa_kernel_strides &s,
                                             const memeff_coord &t, int row, int col) {
  return static_cast<const float *>(base) + row_at(s, t, row) + col;
}

template <class C>
FA_DEVICE hopper_tf32_source hopper_tf32_source_of(const fa_memeff_backward_params &p, memeff_coord t,
                                                   const walk &at, const hopper_tf32_share<C> &share) {
  const int row = at.m * C::BN + share.row, left = t.seq.len_q - row,
            first = left > 0 ? row : 0; /* a stride that no row follows may be anything */
  t.head = at.head;
  t.batch = opaque(t.batch);
  t.seq.q_row = opaque(t.seq.q_row);
  return hopper_tf32_source{hopper_tf32_source_in(p.forward.q, p.forward.q_stride, t, first, share.col),
                            hopper_tf32_source_in(p.d_o, p.do_stride, t, first, share.col), left};
}

/* Loads the thread's share of a batch of a tensor; zeros behind the last row. load_written and opaque stay where they
 * are: the compiler would have all addresses and loads of a step at once, in registers that are not there. */
template <class C>
FA_DEVICE void hopper_tf32_load(vec4 (&x)[4], const float *from, int64_t stride, int left, int batch) {
  constexpr int HALVES = C::D / 64;
  const int row = batch / HALVES * 32;
  FA_UNROLL
  for (int e = 0; e < 4; ++e)
    x[e] = row + 2 * e < left ? load_written(reinterpret_cast<const vec4 *>(
                                    from + opaque(row + 2 * e) * stride + batch % HALVES * 64))
                              : vec4{0, 0, 0, 0};
}

template <class C>
FA_DEVICE void hopper_tf32_store_rows(uint32_t tile, const vec4 (&x)[4], int batch,
                                      const hopper_tf32_share<C> &share) {
  constexpr int HALVES = C::D / 64;
  const uint32_t to =
      tile + opaque(share.as_it_is) + batch / HALVES * 32 * 128 + batch % HALVES * 2 * C::ROW_PANEL;
  FA_UNROLL
  for (int e = 0; e < 4; ++e)
    hopper_store_split<C::PART_BYTES>((to ^ e << 5) + e * 256, x[e].x, x[e].y, x[e].z, x[e].w);
}

template <class C>
FA_DEVICE void hopper_tf32_store_transposed(uint32_t tile, const vec4 (&x)[4], int batch,
                                            const hopper_tf32_share<C> &share) {
  constexpr int HALVES = C::D / 64;
  const uint32_t to =
      tile + opaque(share.transposed) + batch / HALVES * C::COL_PANEL + batch % HALVES * 64 * 128;
  hopper_store_split<C::PART_BYTES>(to, x[0].x, x[1].x, x[2].x, x[3].x);
  hopper_store_split<C::PART_BYTES>((to ^ 16) + 128, x[0].y, x[1].y, x[2].y, x[3].y);
  hopper_store_split<C::PART_BYTES>((to ^ 32) + 256, x[0].z, x[1].z, x[2].z, x[3].z);
  hopper_store_split<C::PART_BYTES>((to ^ 48) + 384, x[0].w, x[1].w, x[2].w, x[3].w);
}

/* Loads a batch of one of a step's tiles: of Q, dO, dO, Q. */
template <class C>
FA_DEVICE void hopper_tf32_load_of(vec4 (&x)[4], const fa_memeff_backward_params &p,
                                   const hopper_tf32_source &from, int tile, int batch) {
  if (tile == 0 || tile == 3)
    hopper_tf32_load<C>(x, from.q, p.forward.q_stride.row, from.left, batch);
  else
    hopper_tf32_load<C>(x, from.d_o, p.do_stride.row, from.left, batch);
}

template <class C>
FA_DEVICE float hopper_tf32_value(const fa_memeff_backward_params &p, memeff_coord t, const walk &at,
                                  int thread) {
  t.head = at.head;
  t.batch = opaque(t.batch);
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
  hopper_tf32_source from = hopper_tf32_source_of<C>(p, t, at, share);
  hopper_tf32_load_of<C>(x[0], p, from, 0, 0);
  FA_NO_UNROLL
  while (steps.has(at)) {
    FA_UNROLL
    for (int i = 0; i < N; ++i) {
      const int tile = i / C::BATCHES, batch = i % C::BATCHES;
      if (i + 1 == N) {
        at = next_of(at, steps.blocks);
        if (steps.has(at))
          from = hopper_tf32_source_of<C>(p, t, at, share);
        else
          from.left = 0; /* nothing is read any more */
      }
      hopper_tf32_load_of<C>(x[(i + 1) % 2], p, from, (i + 1) % N / C::BATCHES, (i + 1) % C::BATCHES);
      if (batch == 0) mbarrier_wait(C::empty(slot.stage()), slot.phase() ^ 1);
      if (tile < 2)
        hopper_tf32_store_rows<C>(C::slot(slot.stage()), x[i % 2], batch, share);
      else
        hopper_tf32_store_transposed<C>(C::slot(slot.stage()), x[i % 2], batch, share);
      if (batch + 1 < C::BATCHES) continue;
      if (tile == 0 && thread < 2 * C::BN)
        store_shared4(C::values(slot.n / 4) + thread * 4, float_bits(value));
      if (i + 1 == N && steps.has(at)) value = hopper_tf32_value<C>(p, t, at, thread);
      fence_async();
      mbarrier_arrive(C::full(slot.stage()));
      slot.next();
    }
  }
}

} // namespace fa

#endif
