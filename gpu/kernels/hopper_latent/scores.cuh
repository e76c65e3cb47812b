/* The scores' warpgroup of latent attention: S = Q K^T, its softmax, and P into shared memory. */
#ifndef FA_GPU_KERNELS_HOPPER_LATENT_SCORES_CUH
#define FA_GPU_KERNELS_HOPPER_LATENT_SCORES_CUH

#include "gpu/kernels/cache/forward_scores.cuh"
#include "gpu/kernels/cache/forward_store.cuh"
#include "gpu/kernels/hopper_latent/load.cuh"

namespace fa {

/* A step of 16 columns, as A fragments of mma. */
template <class C> struct latent_q { uint32_t step[C::Q_STEPS][4]; };

/* Takes the warp's rows of Q, and gives the last stage back. */
template <class C> FA_DEVICE void take_latent_q(latent_q<C> &q, int thread) {
  const int lane = thread % 32, row = thread / 32 * 16 + lane % 16;
  FA_UNROLL
  for (int i = 0; i < C::Q_STEPS; ++i) ldmatrix_x4(q.step[i], latent_q_chunk<C>(row, 2 * i + lane / 16));
  fence_async();
  sync_warp();
  release_latent<C>(latent_barriers<C>::q_taken(), thread);
}

/* Issues s = Q K^T, each part of the columns as it arrives. Its MMAs take 32 clocks each: descriptors from registers of
 * threads would take longer to compute. */
template <class C>
FA_DEVICE void latent_gemm_qk(float (&s)[C::BN / 8][4], const latent_q<C> &q, pipeline_state<C::STAGES> pipe) {
  const uint32_t base = in_uniform_register(shared_base());
  const uint64_t k = matrix_descriptor(base + pipe.stage() * C::STAGE_BYTES, 16, 1024, FA_SWIZZLE_128),
                 step = matrix_descriptor(base + C::Q_STEP_AT, 16, 256, FA_SWIZZLE_32),
                 last = matrix_descriptor(base + C::Q_LAST_AT, 16, 1024, FA_SWIZZLE_128);
  FA_UNROLL
  for (int i = 0; i < C::PANELS * 4; ++i) {
    if (i % (4 * C::PART_PANELS) == 0) {
      mbarrier_wait(latent_barriers<C>::full(pipe.stage(), i / (4 * C::PART_PANELS)), pipe.phase());
      wgmma_fence();
    }
    const uint64_t b = descriptor_at(k, i / 4 * C::PANEL + i % 4 * 32);
    if (i < C::Q_STEPS)
      wgmma_rs<0>(s, q.step[i], b, i > 0, typename C::T());
    else
      wgmma_ss<0, 0>(s, i == C::Q_STEPS ? step : descriptor_at(last, i % 4 * 32), b, 1, typename C::T());
  }
  wgmma_commit();
}

/* Writes zeros to values in front of the first key of all and behind the last: P is 0 there, but 0 times what the tile
 * holds could be NaN. The group calls it. */
template <class C> FA_DEVICE void clear_latent_v(uint32_t stage, int first, int end, int thread) {
  FA_NO_UNROLL
  for (int i = thread; i < C::BN * 8; i += 128) {
    if (i / 8 >= first && i / 8 < end) continue;
    FA_UNROLL
    for (int panel = 0; panel < C::DV / 64; ++panel)
      store_shared16(stage + panel * C::PANEL + i * 16, vec4{0, 0, 0, 0});
  }
}

/* The query of a packed row. */
FA_DEVICE int latent_query(const fa_hopper_latent_params &p, int row) {
  return static_cast<int>(static_cast<uint64_t>(row) * p.heads.multiplier >> p.heads.shift);
}

/* The keys that a thread's row r sees. Rows that do not exist are computed like the last. */
template <class C> FA_DEVICE cache_limits latent_limits(const fa_hopper_latent_params &p, int r, int thread) {
  const cache_sequence seq = {load_latent<C>(LATENT_PAD), load_latent<C>(LATENT_LEN), 0, 0, 0,
                              load_latent<C>(LATENT_DIAGONAL)};
  const int row = load_latent<C>(LATENT_ROW0) + thread / 32 * 16 + thread % 32 / 4 + 8 * r;
  return limits_of_cache_row<false>(p.c, seq, latent_query(p, cache_min(row, load_latent<C>(LATENT_LAST_ROW))));
}

/* Masks, and values that are none, of a tile that not all rows see whole. */
template <class C>
FA_DEVICE void mask_latent_scores(float (&s)[C::BN / 8][4], const fa_hopper_latent_params &p,
                                  pipeline_state<C::STAGES> pipe, int thread) {
  const int key0 = load_latent<C>(LATENT_KEY0) + static_cast<int>(pipe.n) * C::BN;
  if (key0 >= load_latent<C>(LATENT_ALL_LO) && key0 + C::BN <= load_latent<C>(LATENT_ALL_HI)) return;
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const cache_limits keys = latent_limits<C>(p, r, thread);
    const int first = key0 + thread % 4 * 2, lo = opaque(keys.lo - first), hi = opaque(keys.hi - first);
    FA_UNROLL
    for (int n = 0; n < C::BN / 8; ++n) {
      FA_UNROLL
      for (int e = 0; e < 2; ++e)
        if (8 * n + e < lo || 8 * n + e >= hi) s[n][2 * r + e] = -infinity();
    }
  }
  const int lo = load_latent<C>(LATENT_LO), hi = load_latent<C>(LATENT_HI);
  if (key0 >= lo && key0 + C::BN <= hi) return;
  mbarrier_wait(latent_barriers<C>::scored(pipe.stage()), pipe.phase());
  clear_latent_v<C>(shared_base() + pipe.stage() * C::STAGE_BYTES, lo - key0, hi - key0, thread);
}

/* Replaces the scores of both rows by their exponentials, as softmax_row (parts/softmax.cuh) does; both maxima first, so
 * that neither waits for the other's shuffles. */
template <class C>
FA_DEVICE void latent_softmax(float (&s)[C::BN / 8][4], row_state (&rows)[2], float (&rescale)[2], float scale_log2) {
  float m[2];
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    m[r] = rows[r].max;
    FA_UNROLL
    for (int n = 0; n < C::BN / 8; ++n) m[r] = greater(m[r], greater(s[n][2 * r], s[n][2 * r + 1]));
  }
  FA_UNROLL
  for (int i = 1; i < 4; i *= 2) {
    FA_UNROLL
    for (int r = 0; r < 2; ++r) m[r] = greater(m[r], shfl_xor(m[r], i));
  }
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const float shift = m[r] == -infinity() ? 0.0f : multiply(m[r], scale_log2);
    rescale[r] = exp2_approx(multiply(rows[r].max, scale_log2) - shift); /* exactly 1 if m is unchanged */
    float sum = 0.0f;
    FA_UNROLL
    for (int n = 0; n < C::BN / 8; ++n) {
      FA_UNROLL
      for (int e = 2 * r; e < 2 * r + 2; ++e) {
        s[n][e] = exp2_approx(fmaf(s[n][e], scale_log2, -shift));
        sum += s[n][e];
      }
    }
    rows[r].sum = rows[r].sum * rescale[r] + sum;
    rows[r].max = m[r];
  }
}

/* Stores P, rounded to T, and the rows' factors. */
template <class C>
FA_DEVICE void store_latent_p(const float (&s)[C::BN / 8][4], const float (&rescale)[2], int stage, int thread) {
  const int row = thread / 32 * 16, lane = thread % 32;
  const uint32_t tile = shared_base() + stage * C::STAGE_BYTES + C::P_IN_STAGE,
                 first = tile + tile_offset<64>(row + lane % 16, lane / 16);
  FA_UNROLL
  for (int n = 0; n < C::BN / 8; n += 2) {
    uint32_t w[4];
    FA_UNROLL
    for (int i = 0; i < 4; ++i)
      w[i] = pack2(s[n + i / 2][i % 2 * 2], s[n + i / 2][i % 2 * 2 + 1], typename C::T());
    stmatrix_x4(tile_right<64>(first, n), w);
  }
  FA_UNROLL
  for (int r = 0; r < 2; ++r)
    if (lane % 4 == 0) store_shared4(latent_factor<C>(stage, row + lane / 4 + 8 * r), float_bits(rescale[r]));
}

/* LSE, and the factors that make O of its accumulators. */
template <class C>
FA_DEVICE void finish_latent_rows(const fa_cache_params &p, const row_state (&rows)[2], int thread) {
  const cache_work_tile work = load_latent_work_tile<C>(p);
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int row = thread / 32 * 16 + thread % 32 / 4 + 8 * r;
    const float sum = quad_sum(rows[r].sum);
    if (thread % 4 != 0 || row >= work.n_rows) continue;
    const packed_row at = unpack_row(p, work.kv_head, work.row0 + row);
    const finished_row end = finish_cache_row<C>(p, at.head, rows[r].max * p.scale, sum);
    store_shared4(latent_end_factor<C>(row), float_bits(end.factor));
    store_lse(p, work, at, end.lse);
  }
}

/* thread: of the group. Beside Q there are few registers: what can be computed again is not kept. */
template <class C> FA_DEVICE void make_latent_scores(const fa_hopper_latent_params &p, int n, int thread) {
  typedef latent_barriers<C> bar;
  latent_q<C> q;
  take_latent_q<C>(q, thread);
  row_state rows[2];
  pipeline_state<C::STAGES> pipe;
  FA_NO_UNROLL
  for (int left = uniform(n); left > 0; --left) {
    const int stage = pipe.stage(), phase = pipe.phase();
    float s[C::BN / 8][4], rescale[2];
    latent_gemm_qk<C>(s, q, pipe);
    hopper_release(bar::issued(stage), opaque(thread));
    wgmma_wait<0>(s);
    hopper_release(bar::scored(stage), opaque(thread));
    mask_latent_scores<C>(s, p, pipe, opaque(thread));
    latent_softmax<C>(s, rows, rescale, p.c.scale_log2);
    mbarrier_wait(bar::scored(stage), phase); /* P takes the place of keys that other warps may still read */
    store_latent_p<C>(s, rescale, stage, opaque(thread));
    fence_async();
    sync_warp();
    if (opaque(thread) % 4 == 0) mbarrier_arrive(bar::p_full(stage)); /* the lanes that stored factors */
    pipe.next();
  }
  finish_latent_rows<C>(p.c, rows, opaque(thread));
  sync_warp();
  if (thread % 4 == 0) mbarrier_arrive(bar::finished());
}

} // namespace fa

#endif
