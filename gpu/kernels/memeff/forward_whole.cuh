/* The memeff forward of float32 problems whose head dims are up to D: like gpu/kernels/memeff/forward.cuh,
 * but with whole rows in shared memory. Q stays there, K and V are double-buffered; one barrier per key
 * block. */
#ifndef FA_GPU_KERNELS_MEMEFF_FORWARD_WHOLE_CUH
#define FA_GPU_KERNELS_MEMEFF_FORWARD_WHOLE_CUH

#include "gpu/kernels/memeff/forward.cuh"
#include "gpu/kernels/memeff/gemm.cuh"

namespace fa {

template <int D_> struct memeff_whole_config {
  typedef f32 T;
  static constexpr int D = D_, VC = D, BM = 128, BN = 64, WARPS = BM / 16, THREADS = 32 * WARPS;
  static constexpr int Q_BYTES = BM * memeff_row<D>::BYTES, KEY_BYTES = BN * memeff_row<D>::BYTES;
  static constexpr int Q_AT = 0, STAGE_AT = Q_BYTES, V_IN_STAGE = KEY_BYTES, STAGE_BYTES = 2 * KEY_BYTES;
  static constexpr int SHARED_BYTES = STAGE_AT + 2 * STAGE_BYTES;
  static_assert(SHARED_BYTES <= 227 * 1024, "devices of compute capability 9.0 have no more");
  typedef float score_tile[BN / 8][4];
  typedef float output_tile[VC / 8][4]; /* columns in the order of gemm_tile_rows */
  FA_DEVICE static uint32_t stage(int buffer) { return shared_base() + STAGE_AT + buffer * STAGE_BYTES; }
};

/* Starts copying a key block. */
template <class C>
FA_DEVICE void fetch_keys(const fa_attention_params &p, const memeff_coord &t, int key0, int buffer, int thread) {
  load_memeff_tile<f32, C::BN, C::D, C::THREADS>(C::stage(buffer), k_rows(p, t), key0, 0, p.aligned, thread);
  load_memeff_tile<f32, C::BN, C::D, C::THREADS>(C::stage(buffer) + C::V_IN_STAGE, v_rows(p, t), key0, 0, p.aligned,
                                          thread);
  cp_async_commit();
}

/* A warp's work on one key block of which some of its rows sees some key. first_row: the warp's first row. */
template <class C>
FA_DEVICE void whole_step(typename C::output_tile &o, row_state (&rows)[2], const fa_attention_params &p,
                          const memeff_coord &t, int first_row, int key0, int buffer, int thread) {
  const int lane = thread % 32, row = first_row + lane / 4, key = key0 + lane % 4 * 2;
  typename C::score_tile s = {};
  gemm_tiles<C::D>(s, first_tile_a<C::D>(shared_base() + C::Q_AT, thread / 32 * 16, lane),
                       first_tile_b<C::D>(C::stage(buffer), lane));
  if (p.bias ||
      keys_need_mask<true>(p, t.seq, first_row, min_int(first_row + 16, t.seq.len_q), key0, key0 + C::BN)) {
    make_logits<f32>(s, p, t, row, key);
  } else {
    scale_scores(s, p.scale * p.score_sign);
  }
  memeff_softmax<C>(s, o, rows);
  if (p.dropout_linear) drop_linear(s, p, t, row, key0, lane);
  gemm_tile_rows<C::D>(o, s, first_tile_rows<C::D>(C::stage(buffer) + C::V_IN_STAGE, 0, lane));
}

/* Grid: x over row blocks, y over query heads, z over the batch. */
template <class C> FA_DEVICE void memeff_forward_whole(const fa_attention_params &p) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const grid_place place = longest_first_coord(p);
  const memeff_coord t = load_memeff_coord(p, place.batch, place.head);
  /* under a causal mask the last rows see the most keys */
  const int row0 = (static_cast<int>(gridDim.x) - 1 - place.block) * C::BM,
            first_row = row0 + thread / 32 * 16;
  store_dropout_used(p, thread);
  if (row0 >= t.seq.len_q) return;
  const int n_rows = min_int(16, t.seq.len_q - first_row); /* of the warp */
  const block_range blocks = visible_blocks<C::BN, true>(p, t.seq, row0, min_int(row0 + C::BM, t.seq.len_q));
  block_range seen = {0, 0};
  if (n_rows > 0) seen = visible_blocks<C::BN, true>(p, t.seq, first_row, first_row + n_rows);

  typename C::output_tile o = {};
  row_state rows[2];
  int buffer = 0;
  if (blocks.begin < blocks.end) {
    load_memeff_tile<f32, C::BM, C::D, C::THREADS>(shared_base() + C::Q_AT, q_rows(p, t), row0, 0, p.aligned,
                                            thread);
    fetch_keys<C>(p, t, blocks.begin * C::BN, 0, thread);
  }
  FA_NO_UNROLL
  for (int block = blocks.begin; block < blocks.end; ++block) {
    cp_async_wait<0>();
    sync_block(); /* K and V have arrived for all; all are done with the other buffer */
    if (block + 1 < blocks.end) fetch_keys<C>(p, t, (block + 1) * C::BN, buffer ^ 1, thread);
    if (block >= seen.begin && block < seen.end)
      whole_step<C>(o, rows, p, t, first_row, block * C::BN, buffer, thread);
    buffer ^= 1;
  }
  float inverse[2];
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const finished_row end = finish_row(p, t.head, rows[r].max, quad_sum(rows[r].sum), p.dropout_scale);
    const int row = first_row + lane / 4 + 8 * r;
    inverse[r] = end.factor;
    if (lane % 4 == 0 && row < t.seq.len_q) store_lse(p, t, row, end.lse);
  }
  write_tile(reinterpret_cast<float *>(p.o) + t.batch * p.o_stride.batch + t.head * p.o_stride.head +
                 t.seq.q_row * p.o_stride.row,
             p.o_stride.row, o, inverse, first_row + lane / 4, t.seq.len_q, p.head_dim_v, p.aligned, lane);
}

} // namespace fa

#endif
