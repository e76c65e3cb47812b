/* FlashAttention-2 backward (Dao 2023, algorithm 2) for sm_80, parallel over key blocks: a block owns BN keys
 * of one KV head and walks the query blocks that see them, of all query heads of the group.
 *
 *   S = Q K^T, dP = dO V^T, P = exp2(S scale_log2 - LSE_log2), dS = P (dP - delta)
 *   dV += P^T dO, dK += dS^T Q stay in registers; dQ += dS K leaves by atomic additions.
 *
 * K and V stay in shared memory. Where there is room, Q and dO have two buffers each: the next query block is
 * fetched while this one is worked on. P and dS go through shared memory, rounded to 16 bits, since their
 * second products want them transposed and cut differently. Two barriers per query block: one when Q and dO
 * have come and all are done with the previous P and dS, one when P and dS stand.
 *
 * Dropout (Z_ij = 0 or 1/(1-p)): P of dV is struck out, dP becomes Z dP; 1/(1-p) of dV comes in at the end.
 * Columns from p.forward.head_dim to the tile's D are zeros in shared memory and nowhere else. */
#ifndef FA_GPU_KERNELS_FLASH_BACKWARD_CUH
#define FA_GPU_KERNELS_FLASH_BACKWARD_CUH

#include "gpu/kernels/flash_backward_config.cuh"
#include "gpu/kernels/flash_backward_copy.cuh"
#include "gpu/kernels/flash_backward_score.cuh"

namespace fa {

/* Query blocks [begin, end) of which some row sees a key of [key0, key1). */
template <class C>
FA_DEVICE block_range query_blocks(const fa_flash_params &f, const sequence &seq, int key0, int key1) {
  const int shift = seq.len_k - seq.len_q;
  int lo = 0, hi = seq.len_q;
  if (f.window_right >= 0) lo = max_int(0, key0 - shift - f.window_right);
  if (f.window_left >= 0) hi = min_int(hi, key1 - shift + f.window_left);
  block_range r = {lo / C::BM, lo < hi ? (hi + C::BM - 1) / C::BM : 0};
  return r;
}

/* s += A B^T over D columns: rows of A and of B are rows of tiles [x D]. */
template <class C> FA_DEVICE void scores(typename C::score_tile &s, uint32_t a_first, uint32_t b_first) {
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

/* x += A B, A a tile [x BN] or (A_TRANS) its transpose, B a tile [DEPTH x D] of which every COL_WARPS-th
 * group of 16 columns counts. */
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

/* S and dP of this warp's rows and keys, then P and dS into shared memory. */
template <class C>
FA_DEVICE void score_step(const fa_flash_backward_params &p, const sequence &seq, int batch, int head,
                          int row0, int key0, int buffer, int thread) {
  const fa_flash_params &f = p.forward;
  typename C::score_tile s = {}, dp = {};
  {
    const int warp = thread / 32, lane = thread % 32;
    const uint32_t q_first =
        first_a<C::D>(shared_base() + C::Q_AT + buffer * C::Q_BYTES, score_row<C>(warp), lane);
    const uint32_t k_first = first_b<C::D>(shared_base() + C::K_AT + score_col<C>(warp) * (C::D * 2), lane);
    scores<C>(s, q_first, k_first);
    scores<C>(dp, q_first + (C::DO_AT - C::Q_AT), k_first + (C::V_AT - C::K_AT));
  }
  thread = opaque(thread); /* addresses are worked out where they are used, not held meanwhile */
  const int warp = thread / 32, lane = thread % 32;
  const int row = score_row<C>(warp) + lane / 4, warp_key = score_col<C>(warp);
  const score_place at = {batch,
                          head,
                          row0 + row,
                          key0 + warp_key + lane % 4 * 2,
                          key0 + warp_key,
                          C::SCORE_MOD && f.alibi_slopes
                              ? load_global(f.alibi_slopes + batch * f.alibi_batch_stride + head)
                              : 0.0f};
  const uint32_t values = shared_base() + C::ROWS_AT + buffer * C::ROWS_BYTES + row * 4;
  const uint32_t p_first = shared_base() + C::P_AT + tile_offset<C::BN>(row, warp_key / 8) + lane % 4 * 4;
  if (keys_need_mask(f, seq, row0, min_int(row0 + C::BM, seq.len_q), key0, key0 + C::BN))
    score_gradients<C, true>(s, dp, p, seq, at, values, p_first, lane);
  else
    score_gradients<C, false>(s, dp, p, seq, at, values, p_first, lane);
}

/* dV += P^T dO, dQ += dS K, dK += dS^T Q. */
template <class C>
FA_DEVICE void gradient_step(const fa_flash_backward_params &p, typename C::dkv_tile &dk,
                             typename C::dkv_tile &dv, int batch, int head, int row0, int buffer,
                             int thread) {
  const uint32_t base = shared_base();
  const int warp = thread / 32, lane = thread % 32;
  const uint32_t p_trans = first_a_trans<C::BN>(base + C::P_AT, 2 * C::KV_TILES * (warp % C::KV_WARPS), lane);
  const uint32_t do_trans =
      first_b_trans<C::D>(base + C::DO_AT + buffer * C::Q_BYTES, lane, 2 * (warp / C::KV_WARPS));
  accumulate<C, C::BM, true, C::KV_COL_WARPS>(dv, p_trans, do_trans);
  {
    const uint32_t ds_first = first_a<C::BN>(base + C::DS_AT, score_row<C>(warp), lane);
    const uint32_t k_trans = first_b_trans<C::D>(base + C::K_AT, lane, 2 * (warp / C::S_WARPS));
    typename C::dq_tile dq = {};
    accumulate<C, C::BN, false, C::S_COL_WARPS>(dq, ds_first, k_trans);
    add_dq<C>(p, dq, batch, head, row0, warp, lane);
  }
  accumulate<C, C::BM, true, C::KV_COL_WARPS>(dk, p_trans + C::P_BYTES, do_trans - (C::DO_AT - C::Q_AT));
}

/* All of one key block. */
template <class C>
FA_DEVICE void key_block(const fa_flash_backward_params &p, const sequence &seq, int batch, int kv_head,
                         int key0, block_range blocks, int thread) {
  const int group = p.forward.heads_per_kv;
  fetch_keys<C>(p, seq, batch, kv_head, key0, thread);
  fetch_rows<C>(p, seq, batch, kv_head * group, blocks.begin, 0, thread);

  typename C::dkv_tile dk = {}, dv = {};
  int head = kv_head * group, m = blocks.begin, buffer = 0;
  FA_NO_UNROLL
  while (head < (kv_head + 1) * group) {
    int next_head = head, next_m = m + 1;
    if (next_m == blocks.end) {
      next_m = blocks.begin;
      ++next_head;
    }
    const bool more = next_head < (kv_head + 1) * group;
    cp_async_wait<0>();
    sync_block(); /* Q and dO are there for all; all are done with P, dS and the other buffers */
    if (C::STAGES == 2 && more) fetch_rows<C>(p, seq, batch, next_head, next_m, buffer ^ 1, thread);
    /* opaque: addresses are worked out where they are used, not held in registers over the loop */
    score_step<C>(p, seq, batch, head, m * C::BM, key0, buffer, opaque(thread));
    sync_block(); /* P and dS stand */
    gradient_step<C>(p, dk, dv, batch, head, m * C::BM, buffer, opaque(thread));
    if (C::STAGES == 1 && more) {
      sync_block(); /* all are done with Q and dO */
      fetch_rows<C>(p, seq, batch, next_head, next_m, 0, thread);
    }
    head = next_head;
    m = next_m;
    buffer ^= C::STAGES - 1;
  }

  thread = opaque(thread);
  const uint32_t k_tile = shared_base() + C::K_AT, v_tile = shared_base() + C::V_AT;
  sync_block(); /* all are done with K and V: their places take dK and dV */
  stage_keys<C>(dk, p.scale, k_tile, thread / 32, thread % 32);
  stage_keys<C>(dv, C::DROPOUT ? p.forward.dropout_scale : 1.0f, v_tile, thread / 32, thread % 32);
  sync_block(); /* dK and dV stand */
  const int64_t row = static_cast<int64_t>(load_sequence(p.forward, opaque(batch)).k_row) + key0;
  write_keys<C>(p, p.dk, p.dk_stride, k_tile, batch, kv_head, row, seq.len_k - key0, thread);
  write_keys<C>(p, p.dv, p.dv_stride, v_tile, batch, kv_head, row, seq.len_k - key0, thread);
}

/* Grid: x over key blocks of the longest entry or, deterministic, over dQ accumulators; y over KV heads, z
 * over batch entries. */
template <class C> FA_DEVICE void flash_backward(const fa_flash_backward_params &p) {
  const int thread = static_cast<int>(threadIdx.x);
  const int kv_head = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  const sequence seq = load_sequence(p.forward, batch);
  const int n_blocks = (p.forward.seqlen_k + C::BN - 1) / C::BN;
  FA_NO_UNROLL
  for (int block = static_cast<int>(blockIdx.x); block < n_blocks; block += static_cast<int>(gridDim.x)) {
    clear_hidden_keys<C>(p, seq, batch, kv_head, block, thread);
    const int key0 = block * C::BN, key1 = min_int(key0 + C::BN, seq.len_k);
    if (key0 >= seq.len_k) continue;
    const block_range blocks = query_blocks<C>(p.forward, seq, key0, key1);
    if (blocks.begin >= blocks.end) {
      clear_keys<C>(p, batch, kv_head,
                    static_cast<int64_t>(load_sequence(p.forward, opaque(batch)).k_row) + key0, key1 - key0,
                    thread);
      continue;
    }
    key_block<C>(p, seq, batch, kv_head, key0, blocks, thread);
    sync_block(); /* the tiles are read before the next block's copies come */
  }
}

} // namespace fa

#endif
