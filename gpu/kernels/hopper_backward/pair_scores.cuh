/* From the transposed scores of gpu/kernels/hopper_backward/pair.cuh to P, by the dV group, and from P to dS,
 * by the dK group. P goes from a thread to the same thread of the other group, in f32: with softcap it is P
 * times the derivative of tanh, with dropout it has the sign bit set where the pair is dropped. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_PAIR_SCORES_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_PAIR_SCORES_CUH

#include "gpu/kernels/hopper_backward/dropout.cuh"
#include "gpu/kernels/hopper_backward/flex.cuh"
#include "gpu/kernels/hopper_backward/scores.cuh"
#include "gpu/kernels/hopper_backward/pair_config.cuh"

namespace fa {

/* Where a thread stores P of its tile n, 16 bytes. */
template <class C> FA_DEVICE uint32_t hopper_pair_p_address(int n, int thread) {
  return shared_base() + C::P_AT + (128 * n + thread) * 16;
}

template <class C> FA_DEVICE void hopper_pair_store_p(const float (&p)[C::BM / 8][4], int thread) {
  FA_UNROLL
  for (int n = 0; n < C::BM / 8; ++n)
    store_shared16(hopper_pair_p_address<C>(n, thread),
                   vec4{float_bits(p[n][0]), float_bits(p[n][1]), float_bits(p[n][2]), float_bits(p[n][3])});
}

/* dp -> dS. rows: shared address of the block's delta. */
template <class C>
FA_DEVICE void hopper_pair_compute_ds(float (&dp)[C::BM / 8][4], float dropout_scale, uint32_t rows,
                                           int thread) {
  FA_UNROLL
  for (int n = 0; n < C::BM / 8; ++n) {
    const vec4 p = load_shared16(hopper_pair_p_address<C>(n, thread));
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

/* The thread's word from hopper_pair_drop. */
template <class C> FA_DEVICE uint32_t hopper_pair_load_drop_bits(pipeline_state<C::STAGES> pipe, int thread) {
  typedef hopper_pair_barriers<C> bar;
  mbarrier_wait(bar::drop_full(pipe.stage()), pipe.phase());
  const uint32_t kept = load_shared4(shared_base() + C::DROP_AT + pipe.stage() * C::DROP_BYTES + thread * 4);
  sync_warp();
  hopper_release(bar::drop_empty(pipe.stage()), thread);
  return kept;
}

/* Drops elements of P, which are >= 0: by sign in p, as zeros in p_frag. */
template <class C>
FA_DEVICE void hopper_pair_drop_p(float (&p)[C::BM / 8][4], uint32_t (&p_frag)[C::BM / 16][4],
                                        uint32_t kept) {
  hopper_drop_p<C>(p_frag, kept);
  FA_UNROLL
  for (int n = 0; n < C::BM / 8; ++n) {
    FA_UNROLL
    for (int i = 0; i < 4; ++i)
      p[n][i] =
          as_float(float_bits(p[n][i]) | (~kept << (31 - hopper_drop_bit(n, i / 2, i % 2)) & 0x80000000u));
  }
}

/* s -> P, handed over to the other group, and in 16 bits. */
template <class C>
FA_DEVICE void hopper_pair_compute_p(const fa_backward_params &p, uint32_t (&p_frag)[C::BM / 16][4],
                                 float (&s)[C::BM / 8][4], pipeline_state<C::STAGES> pipe,
                                 hopper_pair_key_tiles<C> keys, const hopper_pair_tile &at, int thread) {
  typedef hopper_pair_barriers<C> bar;
  constexpr bool CHANGED =
      C::ALIBI || C::SOFTCAP || C::DROPOUT || C::FLEX;     /* p_frag is not just P rounded, or has to exist
                                                              before P is stored */
  const int row0 = at.block * C::BM;
  const hopper_key_tile t = hopper_pair_load_key_tile<C>(p, keys); /* cheaper than keeping it */
  const int lane = thread % 32, key = t.key0 + thread / 32 * 16 + lane / 4, row = row0 + lane % 4 * 2;
  const uint32_t rows = shared_base() + C::ROWS_AT + pipe.stage() * (2 * C::ROW_BYTES) + lane % 4 * 8;
  const hopper_alibi alibi = hopper_load_alibi<C>(p.forward, t.seq, t.batch, at.head, key, row);
  const bool mask =
      keys_need_mask(p.forward, t.seq, row0, min_int(row0 + C::BM, t.seq.len_q), t.key0, t.key0 + C::BN);
  if constexpr (C::FLEX) {
    const flex_pair first = {t.batch, at.head, row, key, t.seq.len_q, t.seq.len_k};
    const bool all = row0 + C::BM <= t.seq.len_q && !mask;
    hopper_flex_compute_p<C>(p_frag, s, p, first, hopper_flex_seen<C>(p.forward, t.seq, at.kind, first, all), rows);
  } else if constexpr (C::SEVERAL) {
    hopper_compute_several_p<C>(p_frag, s, p, alibi, rows);
    if (mask) hopper_hide_p<C>(p_frag, s, rows_of_keys<C>(p.forward, t.seq, key, row));
  } else if (CHANGED && mask)
    hopper_compute_p<C, true>(p_frag, s, p, alibi, rows, rows_of_keys<C>(p.forward, t.seq, key, row));
  else if (CHANGED)
    hopper_compute_p<C, false>(p_frag, s, p, alibi, rows, hopper_row_limits());
  else if (mask)
    hopper_exponentiate<C, true>(s, p.scale_log2, rows, rows_of_keys<C>(p.forward, t.seq, key, row));
  else
    hopper_exponentiate<C, false>(s, p.scale_log2, rows, hopper_row_limits());
  if constexpr (C::DROPOUT) hopper_pair_drop_p<C>(s, p_frag, hopper_pair_load_drop_bits<C>(pipe, thread));
  hopper_pair_store_p<C>(s, thread);
  named_arrive<64>(HOPPER_PAIR_P_FULL + thread / 32);
  sync_warp();
  hopper_release(bar::rows_empty(pipe.stage()), thread);
  if (!CHANGED) hopper_pack<C>(p_frag, s);
}

} // namespace fa

#endif
