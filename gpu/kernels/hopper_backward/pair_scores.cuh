/* From the transposed scores of gpu/kernels/hopper_backward/pair.cuh to P, which one warpgroup makes, and dS, which the
 * other makes of it. P goes from thread to the same thread of the other group, in f32: of softcap P times the
 * derivative of tanh, of dropout P with the sign bit set where the pair is dropped. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_PAIR_SCORES_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_PAIR_SCORES_CUH

#include "gpu/kernels/hopper_backward/dropout.cuh"
#include "gpu/kernels/hopper_backward/scores.cuh"
#include "gpu/kernels/hopper_backward/pair_config.cuh"

namespace fa {

/* Where a thread leaves P of its tile n, 16 bytes. */
template <class C> FA_DEVICE uint32_t hopper_wide_p(int n, int thread) {
  return shared_base() + C::P_AT + (128 * n + thread) * 16;
}

template <class C> FA_DEVICE void hopper_wide_store_p(const float (&p)[C::BM / 8][4], int thread) {
  FA_UNROLL
  for (int n = 0; n < C::BM / 8; ++n)
    store_shared16(hopper_wide_p<C>(n, thread),
                   vec4{float_bits(p[n][0]), float_bits(p[n][1]), float_bits(p[n][2]), float_bits(p[n][3])});
}

/* dp -> dS. rows: shared address of the block's delta. */
template <class C>
FA_DEVICE void hopper_wide_score_gradients(float (&dp)[C::BM / 8][4], float dropout_scale, uint32_t rows,
                                           int thread) {
  FA_UNROLL
  for (int n = 0; n < C::BM / 8; ++n) {
    const vec4 p = load_shared16(hopper_wide_p<C>(n, thread));
    const uint32_t words[4] = {p.x, p.y, p.z, p.w};
    FA_UNROLL
    for (int e = 0; e < 2; ++e) {
      const float delta = as_float(load_shared4(rows + 32 * n + 4 * e));
      FA_UNROLL
      for (int r = 0; r < 2; ++r) {
        const uint32_t word = words[2 * r + e];
        float &x = dp[n][2 * r + e];
        if (C::DROPOUT)
          x = fabsf(as_float(word)) * fmaf(static_cast<int32_t>(word) < 0 ? 0.0f : x, dropout_scale, -delta);
        else
          x = as_float(word) * (x - delta);
      }
    }
  }
}

/* The thread's word of hopper_wide_drop. */
template <class C> FA_DEVICE uint32_t hopper_wide_take_drop(hopper_ring<C::STAGES> ring, int thread) {
  typedef hopper_wide_barriers<C> bar;
  mbarrier_wait(bar::drop_full(ring.stage()), ring.parity());
  const uint32_t kept = load_shared4(shared_base() + C::DROP_AT + ring.stage() * C::DROP_BYTES + thread * 4);
  sync_warp();
  hopper_release(bar::drop_empty(ring.stage()), thread);
  return kept;
}

/* P, >= 0, and its 16 bits. */
template <class C>
FA_DEVICE void hopper_wide_drop_weights(float (&p)[C::BM / 8][4], uint32_t (&weights)[C::BM / 16][4],
                                        uint32_t kept) {
  hopper_drop_weights<C>(weights, kept);
  FA_UNROLL
  for (int n = 0; n < C::BM / 8; ++n) {
    FA_UNROLL
    for (int i = 0; i < 4; ++i)
      p[n][i] =
          as_float(float_bits(p[n][i]) | (~kept << (31 - hopper_drop_bit(n, i / 2, i % 2)) & 0x80000000u));
  }
}

/* s -> P, handed over, and in 16 bits. */
template <class C>
FA_DEVICE void hopper_wide_weigh(const fa_flash_backward_params &p, uint32_t (&weights)[C::BM / 16][4],
                                 float (&s)[C::BM / 8][4], hopper_ring<C::STAGES> ring,
                                 hopper_wide_keys<C> keys, int head, int row0, int thread) {
  typedef hopper_wide_barriers<C> bar;
  constexpr bool CHANGED =
      C::ALIBI || C::SOFTCAP || C::DROPOUT;                /* the weights are not P, or are made first */
  const hopper_keys t = hopper_wide_load_keys<C>(p, keys); /* cheaper than kept */
  const int lane = thread % 32, key = t.key0 + thread / 32 * 16 + lane / 4, row = row0 + lane % 4 * 2;
  const uint32_t rows = shared_base() + C::ROWS_AT + ring.stage() * (2 * C::ROW_BYTES) + lane % 4 * 8;
  const hopper_alibi alibi = hopper_load_alibi<C>(p.forward, t.seq, t.batch, head, key, row);
  const bool mask =
      keys_need_mask(p.forward, t.seq, row0, min_int(row0 + C::BM, t.seq.len_q), t.key0, t.key0 + C::BN);
  if (CHANGED && mask)
    hopper_weigh<C, true>(weights, s, p, alibi, rows, rows_of_keys<C>(p.forward, t.seq, key, row));
  else if (CHANGED)
    hopper_weigh<C, false>(weights, s, p, alibi, rows, hopper_rows());
  else if (mask)
    hopper_probabilities<C, true>(s, p.scale_log2, rows, rows_of_keys<C>(p.forward, t.seq, key, row));
  else
    hopper_probabilities<C, false>(s, p.scale_log2, rows, hopper_rows());
  if constexpr (C::DROPOUT) hopper_wide_drop_weights<C>(s, weights, hopper_wide_take_drop<C>(ring, thread));
  hopper_wide_store_p<C>(s, thread);
  named_arrive<64>(HOPPER_WIDE_P_FULL + thread / 32);
  sync_warp();
  hopper_release(bar::rows_empty(ring.stage()), thread);
  if (!CHANGED) hopper_pack<C>(weights, s);
}

} // namespace fa

#endif
