/* The bias in the main backward kernels for sm_90a: a step's comes by bulk copies, is read transposed, as the scores are, and
 * makes place for its gradient dS, which goes to memory from there. A warp writes where it has read, and nobody else does. Where
 * the gradient is a sum over sequences or heads, dS is added to that in memory, from registers. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_BIAS_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_BIAS_CUH

#include "gpu/kernels/hopper_backward/config.cuh"

namespace fa {

/* Loads that of a step. An axis that is broadcast has one element. */
template <class C>
FA_DEVICE void hopper_backward_load_bias(const fa_tensor_map *map, const fa_attention_params &f,
                                         pipeline_state<C::STAGES> pipe, const hopper_key_tile &t, int head, int tile) {
  typedef hopper_backward_all_barriers<C> bar;
  mbarrier_wait(bar::bias_empty(pipe.stage()), pipe.phase() ^ 1);
  hopper_load_panels<C::BN / 64, C::BIAS_PANEL, 1>(
      shared_base() + C::BIAS_AT + pipe.stage() * C::BIAS_BYTES, map, bar::bias_full(pipe.stage()), t.key0 / 64,
      tile * C::BM, f.bias_stride.head ? head : 0, f.bias_stride.batch ? t.batch : 0);
}

/* Where a lane finds its row of the first of the fragments that belong to the warp's 16 keys and 64 rows; the next are 16 rows
 * further. */
template <class C>
FA_DEVICE uint32_t hopper_bias_fragment(pipeline_state<C::STAGES> pipe, int group, int thread) {
  const int lane = thread % 32, chunk = thread / 32 * 2 + lane / 8 % 2;
  return shared_base() + C::BIAS_AT + pipe.stage() * C::BIAS_BYTES + group * C::BIAS_PANEL +
         (lane / 16 * 8 + lane % 8) * 128 + ((chunk ^ lane % 8) << 4);
}

/* Scores become logits. last: nobody will write a gradient in the place of the bias. */
template <class C>
FA_DEVICE void hopper_add_bias_to(float (&s)[C::BM / 8][4], float scale, pipeline_state<C::STAGES> pipe, bool last,
                                  int group, int thread) {
  typedef hopper_backward_all_barriers<C> bar;
  typename C::T t;
  const uint32_t first = hopper_bias_fragment<C>(pipe, group, thread);
  mbarrier_wait(bar::bias_full(pipe.stage()), pipe.phase());
  FA_UNROLL
  for (int i = 0; i < C::BM / 16; ++i) {
    uint32_t pairs[4];
    ldmatrix_x4_trans(pairs, first + i * 16 * 128);
    hopper_add_bias_matrices(s, 2 * i, pairs, scale, t); /* of keys l/4, l/4 + 8 and rows 0..7, then 8..15 */
  }
  if (last) hopper_release(bar::bias_empty(pipe.stage()), thread);
}

/* Leaves a warp's dS in the place of its bias. hopper_commit_ds tells whoever stores it. */
template <class C>
FA_DEVICE void hopper_leave_dbias(const uint32_t (&ds)[C::BM / 16][4], pipeline_state<C::STAGES> pipe, int group,
                                  int thread) {
  const uint32_t first = hopper_bias_fragment<C>(pipe, group, thread);
  FA_UNROLL
  for (int i = 0; i < C::BM / 16; ++i) stmatrix_x4_trans(first + i * 16 * 128, ds[i]);
}

/* Adds a warp's dS to the sums of dS. Its 16 keys of 64 rows lie there together, in the order of the registers. */
template <class C>
FA_DEVICE void hopper_add_dbias(const fa_backward_params &p, const float (&ds)[C::BM / 8][4], const hopper_key_tile &t,
                                const hopper_row_tile &at, int group, int thread) {
  const fa_kernel_strides stride = p.dbias_accum_stride;
  float *to = p.dbias_accum + t.batch * stride.batch + at.head * stride.head + at.row0 / 16 * stride.row +
              (t.key0 / 16 + 4 * group + thread / 32) * (16ll * FA_DBIAS_STRIP) + thread % 32 * 4;
  static_assert(C::BM == FA_DBIAS_STRIP && C::BN == 64 * C::GROUPS, "a step has the rows of a strip, a warp 16 keys");
  static_assert(FA_DBIAS_PADDED % C::BN == 0 && FA_DBIAS_PADDED % C::BM == 0, "sums have whole tiles");
  FA_UNROLL
  for (int n = 0; n < C::BM / 8; ++n) atomic_add4(to + n * 128, ds[n]);
}

/* Stores a group's dS of step n, by a warp, and gives its place back. */
template <class C>
FA_DEVICE void hopper_store_dbias(const fa_tensor_map *map, const hopper_key_tile &t, int head, int tile, unsigned n,
                                  int group, int lane) {
  typedef hopper_backward_all_barriers<C> bar;
  const pipeline_state<C::STAGES> pipe = {n};
  const int key = t.key0 + 64 * group;
  mbarrier_wait(bar::ds_full(pipe.stage()), pipe.phase());
  if (lane == 0 && key < t.seq.len_k) {
    tma_store(map, shared_base() + C::BIAS_AT + pipe.stage() * C::BIAS_BYTES + group * C::BIAS_PANEL, key, tile * C::BM,
              head, t.batch);
    tma_store_commit();
    tma_store_wait_read<0>();
  }
  sync_warp();
  if (lane == 0) mbarrier_arrive(bar::bias_empty(pipe.stage()));
}

/* Zeros in the gradient of what the block does not visit, by all threads. */
template <class C> FA_DEVICE void hopper_clear_dbias(const fa_backward_params &p, int thread) {
  const hopper_key_tile t = hopper_load_key_tile<C>(p, hopper_key_blocks<C>().block(p));
  clear_dbias<C>(p, t.seq, t.batch, t.kv_head, t.key0, t.blocks, thread);
}

} // namespace fa

#endif
