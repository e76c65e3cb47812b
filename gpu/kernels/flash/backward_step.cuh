/* The work on one pair of tiles, from which both main backward kernels are built: P and dS from S and dP, and
 * the three GEMMs that read them. What `buffer` selects depends on the configuration: Q and dO by keys, K and
 * V by queries. */
#ifndef FA_GPU_KERNELS_FLASH_BACKWARD_STEP_CUH
#define FA_GPU_KERNELS_FLASH_BACKWARD_STEP_CUH

#include "gpu/kernels/flash/backward_config.cuh"
#include "gpu/kernels/flash/backward_score.cuh"

namespace fa {

/* s += A B^T over D columns; the rows of A and B are rows of tiles [x D]. */
template <class C> FA_DEVICE void gemm_qk(typename C::score_tile &s, uint32_t a_first, uint32_t b_first) {
  FA_UNROLL_BY(C::UNROLL)
  for (int kk = 0; kk < C::D / 16; ++kk) {
    uint32_t a[C::S_TILES][4];
    FA_UNROLL
    for (int m = 0; m < C::S_TILES; ++m) load_a<C::D>(a[m], a_first, m, kk);
    FA_UNROLL
    for (int n = 0; n < C::S_COLS / 16; ++n) {
      uint32_t b[4];
      load_b<C::D>(b, b_first, n, kk);
      FA_UNROLL
      for (int m = 0; m < C::S_TILES; ++m) {
        mma(s[m][2 * n], a[m], b, typename C::T());
        mma(s[m][2 * n + 1], a[m], b + 2, typename C::T());
      }
    }
  }
}

/* x += A B. A is a tile [x BN] or (A_TRANS) its transpose. B is a tile [DEPTH x D], of which every
 * COL_WARPS-th group of 16 columns is used. */
template <class C, int DEPTH, bool A_TRANS, int COL_WARPS, int TILES, int N8>
FA_DEVICE void accumulate(float (&x)[TILES][N8][4], uint32_t a_first, uint32_t b_first) {
  FA_UNROLL_BY(C::UNROLL)
  for (int kk = 0; kk < DEPTH / 16; ++kk) {
    uint32_t a[TILES][4];
    FA_UNROLL
    for (int m = 0; m < TILES; ++m) {
      if (A_TRANS)
        load_a_trans<C::BN>(a[m], a_first, m, kk);
      else
        load_a<C::BN>(a[m], a_first, m, kk);
    }
    FA_UNROLL
    for (int n = 0; n < N8 / 2; ++n) {
      uint32_t b[4];
      load_b_trans<C::D>(b, b_first, kk, n * COL_WARPS);
      FA_UNROLL
      for (int m = 0; m < TILES; ++m) {
        mma(x[m][2 * n], a[m], b, typename C::T());
        mma(x[m][2 * n + 1], a[m], b + 2, typename C::T());
      }
    }
  }
}

/* Where this thread's scores are. */
template <class C>
FA_DEVICE score_place place_of_scores(const fa_attention_params &f, int batch, int head, int row0, int key0,
                                      int thread) {
  const int warp = thread / 32, lane = thread % 32, warp_key = key0 + score_col<C>(warp);
  return score_place{batch,
                     head,
                     row0 + score_row<C>(warp) + lane / 4,
                     warp_key + lane % 4 * 2,
                     warp_key,
                     C::GENERAL ? minus_slope(f, batch, head) : 0.0f};
}

/* This warp's part of S or dP: a product over D of a tile of rows and a tile of keys. */
template <class C>
FA_DEVICE void gemm_s_dp_tile(typename C::score_tile &s, int rows_at, int keys_at, int thread) {
  const int warp = thread / 32, lane = thread % 32;
  gemm_qk<C>(s, first_a<C::D>(shared_base() + rows_at, score_row<C>(warp), lane),
            first_b<C::D>(shared_base() + keys_at + score_col<C>(warp) * (C::D * 2), lane));
}

template <class C>
FA_DEVICE void score_step(const fa_backward_params &p, const sequence &seq, int batch, int head,
                          int row0, int key0, int buffer, int thread) {
  const fa_attention_params &f = p.forward;
  typename C::score_tile s = {}, dp = {};
  gemm_s_dp_tile<C>(s, C::q_at(buffer), C::k_at(buffer), thread);
  if (C::ALIBI && !C::GENERAL)
    add_alibi<C>(s, p, minus_slope(f, batch, opaque(head)),
                 first_distance(seq, place_of_scores<C>(f, batch, head, row0, key0, opaque(thread))));
  if (C::SOFTCAP && (!C::GENERAL || f.softcap > 0.0f)) cap_scores<C>(s, p);
  if (C::ALIBI || C::SOFTCAP) thread = opaque(thread);
  gemm_s_dp_tile<C>(dp, C::q_at(buffer) + (C::DO_AT - C::Q_AT), C::k_at(buffer) + (C::V_AT - C::K_AT), thread);
  if (C::BIAS) { /* the bias must have arrived for all; the next rows may still be in flight */
    if (C::STAGES == 2)
      cp_async_wait<1>();
    else
      cp_async_wait<0>();
    sync_block();
  }
  thread = opaque(thread); /* addresses are computed where they are used, not kept in registers */
  const score_place at = place_of_scores<C>(f, batch, head, row0, key0, thread);
  const int lane = thread % 32, row = at.row - row0;
  const uint32_t values = shared_base() + C::rows_at(buffer) + row * 4;
  const uint32_t p_first =
      shared_base() + C::P_AT + tile_offset<C::BN>(row, score_col<C>(thread / 32) / 8) + lane % 4 * 4;
  if ((C::GENERAL && f.mask_bits) || keys_need_mask<C::GENERAL>(f, seq, row0, min_int(row0 + C::BM, seq.len_q), key0, key0 + C::BN))
    compute_p_ds<C, true>(s, dp, p, seq, at, values, p_first, lane);
  else
    compute_p_ds<C, false>(s, dp, p, seq, at, values, p_first, lane);
}

/* This warp's part of dv += P^T dO, dk += dS^T Q, dq += dS K. */
template <class C> FA_DEVICE void gemm_p_do(typename C::dkv_tile &dv, int buffer, int warp, int lane) {
  const int chunk = 2 * C::KV_TILES * (warp % C::KV_WARPS);
  accumulate<C, C::BM, true, C::KV_COL_WARPS>(
      dv, first_a_trans<C::BN>(shared_base() + C::P_AT, chunk, lane),
      first_b_trans<C::D>(shared_base() + C::q_at(buffer) + (C::DO_AT - C::Q_AT), lane,
                          2 * (warp / C::KV_WARPS)));
}
template <class C> FA_DEVICE void gemm_ds_q(typename C::dkv_tile &dk, int buffer, int warp, int lane) {
  const int chunk = 2 * C::KV_TILES * (warp % C::KV_WARPS);
  accumulate<C, C::BM, true, C::KV_COL_WARPS>(
      dk, first_a_trans<C::BN>(shared_base() + C::DS_AT, chunk, lane),
      first_b_trans<C::D>(shared_base() + C::q_at(buffer), lane, 2 * (warp / C::KV_WARPS)));
}
template <class C> FA_DEVICE void gemm_ds_k(typename C::dq_tile &dq, int buffer, int warp, int lane) {
  accumulate<C, C::BN, false, C::S_COL_WARPS>(
      dq, first_a<C::BN>(shared_base() + C::DS_AT, score_row<C>(warp), lane),
      first_b_trans<C::D>(shared_base() + C::k_at(buffer), lane, 2 * (warp / C::S_WARPS)));
}

} // namespace fa

#endif
