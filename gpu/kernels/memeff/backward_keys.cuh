/* The memeff kernel of dK and dV: a block owns BM keys of one KV head and VC columns of each gradient, and
 * loops over the query blocks that see the keys, for all query heads of the group. */
#ifndef FA_GPU_KERNELS_MEMEFF_BACKWARD_KEYS_CUH
#define FA_GPU_KERNELS_MEMEFF_BACKWARD_KEYS_CUH

#include "gpu/kernels/memeff/backward.cuh"

namespace fa {

/* Query blocks [begin, end) in which some row sees a key of [key0, key1). */
template <int BN>
FA_DEVICE block_range query_blocks_of_keys(const fa_attention_params &f, const sequence &seq, int key0, int key1) {
  int lo = 0, hi = seq.len_q;
  if (f.window_right >= 0) lo = max_int(0, key0 - seq.shift - f.window_right);
  if (f.window_left >= 0) hi = min_int(hi, key1 - seq.shift + f.window_left);
  block_range r = {lo / BN, lo < hi ? (hi + BN - 1) / BN : 0};
  return r;
}

/* Writes zeros to dK or dV of a sequence's masked keys (left padding, past seqused_k): there are none without lengths.
 * Each block clears BM of the sequence's keys, counted from its first. */
template <class C>
FA_DEVICE void clear_masked(const fa_memeff_backward_params &p, const memeff_coord &t, void *to,
                            fa_kernel_strides s, int n_cols, int first, int col0, int thread) {
  if (!may_have(FA_HAS_LENGTHS)) return;
  const fa_attention_params &f = p.forward;
  const bool packed = f.cu_seqlens_k;
  const int begin = packed ? load_global(f.cu_seqlens_k + t.batch) : 0;
  const int end = packed ? load_global(f.cu_seqlens_k + t.batch + 1) : f.seqlen_k;
  FA_NO_UNROLL
  for (int i = thread; i < C::BM * C::VC; i += C::THREADS) {
    const int key = begin + first + i / C::VC, col = col0 + i % C::VC;
    const bool masked = key < t.seq.k_row || key >= t.seq.k_row + t.seq.len_k;
    if (key < end && masked && col < n_cols)
      store_element(to, t.batch * s.batch + t.kv_head * s.head + key * s.row + col, 0.0f, typename C::T());
  }
}

/* P and dS of this warp's 16 keys by BN queries. key, row: of the lane's element 0. */
template <class C>
FA_DEVICE void key_gradients(typename C::score_tile &s, typename C::score_tile &dp,
                             const fa_memeff_backward_params &p, const memeff_coord &t, int key, int row) {
  FA_UNROLL
  for (int n = 0; n < C::BN / 8; ++n) {
    FA_UNROLL
    for (int e = 0; e < 2; ++e) {
      const memeff_query q = load_query(p, t, row + 8 * n + e);
      pair_gradient<typename C::T>(s[n][e], dp[n][e], p, q, key);
      pair_gradient<typename C::T>(s[n][2 + e], dp[n][2 + e], p, q, key + 8);
    }
  }
}

/* The same with score_mod and mask_mod. kind, dropped: of the tile. */
template <class C>
FA_DEVICE void flex_key_gradients(typename C::score_tile &s, typename C::score_tile &dp,
                                  const fa_memeff_backward_params &p, const memeff_coord &t, int key, int row,
                                  int kind, uint32_t dropped, int lane) {
  typedef typename C::MODS M;
  const fa_attention_params &f = p.forward;
  const uint32_t masked = flex_masked<M, C::BN / 8, true>(f, t, row, key, kind, lane);
  FA_UNROLL
  for (int n = 0; n < C::BN / 8; ++n) {
    FA_UNROLL
    for (int e = 0; e < 2; ++e) {
      const int i = row + 8 * n + e;
      const flex_query q = load_flex_query(p, t, i);
      FA_UNROLL
      for (int r = 0; r < 2; ++r) {
        float &x = s[n][2 * r + e], &y = dp[n][2 * r + e];
        const flex_pair at = flex_pair_of(t, i, key + 8 * r);
        const float scaled = scaled_score(f, x);
        const bool is_masked = masked >> (4 * n + 2 * r + e) & 1, is_dropped = dropped >> (4 * n + 2 * r + e) & 1;
        const flex_flow flow = flex_flow_of<M, typename C::T>(f, q, at, is_masked, is_dropped, scaled, y);
        x = flow.p;
        y = flex_score_gradient<M>(f, at, scaled, flow.g, no_shares());
      }
    }
  }
}

template <class C>
FA_DEVICE memeff_operands key_operands(const fa_memeff_backward_params &p, const memeff_coord &t) {
  const fa_attention_params &f = p.forward;
  return memeff_operands{k_rows(f, t),
                       q_rows(f, t),
                       v_rows(f, t),
                       do_rows(p, t),
                       chunks_of<C>(f.head_dim),
                       chunks_of<C>(f.head_dim_v)};
}

template <class C> FA_DEVICE void memeff_backward_keys(const fa_memeff_backward_params &p) {
  const fa_attention_params &f = p.forward;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const int n_cols = (max_int(f.head_dim, f.head_dim_v) + C::VC - 1) / C::VC;
  const int col0 = static_cast<int>(blockIdx.x) % n_cols * C::VC;
  const int key0 = static_cast<int>(blockIdx.x) / n_cols * C::BM, kv_head = static_cast<int>(blockIdx.y);
  memeff_coord t = load_memeff_coord(f, static_cast<int>(blockIdx.z), kv_head * f.heads_per_kv);
  clear_masked<C>(p, t, p.dk, p.dk_stride, f.head_dim, key0, col0, thread);
  clear_masked<C>(p, t, p.dv, p.dv_stride, f.head_dim_v, key0, col0, thread);
  if (key0 >= t.seq.len_k) return;
  const block_range blocks = query_blocks_of_keys<C::BN>(f, t.seq, key0, min_int(key0 + C::BM, t.seq.len_k));
  const int key = key0 + thread / 32 * 16 + lane / 4;
  const bool works = warp_has_rows(key0, t.seq.len_k, thread);

  typename C::output_tile dk = {}, dv = {};
  int buffer = 0;
  FA_NO_UNROLL
  for (int head = t.head; head < (kv_head + 1) * f.heads_per_kv; ++head) {
    t.head = head;
    const memeff_operands x = key_operands<C>(p, t);
    const tile_walk<typename C::MODS> tiles(f.flex, f.flex.rows, t.batch, head, key0 / C::BM, blocks);
    FA_NO_UNROLL
    for (int i = tiles.begin(); i < tiles.end(); ++i) {
      const flex_tile tile = tiles.at(i);
      const int row0 = tile.tile * C::BN;
      typename C::score_tile s = {}, dp = {};
      sync_block(); /* all are done with both buffers and the tiles */
      fetch_operands<C>(x, key0, row0, 0, buffer, f.aligned, thread);
      fetch_tile<C>(0, x.dp_b, row0, col0, f.aligned, thread);
      fetch_tile<C>(1, x.s_b, row0, col0, f.aligned, thread);
      cp_async_commit();
      uint32_t dropped = 0;
      if constexpr (C::MODS::DROPS)
        dropped = flex_dropped<C::BN / 8, true>(f, t, row0 + lane % 4 * 2, key, lane);
      gemm_s_dp<C>(s, dp, x, key0, row0, buffer, f.aligned, works, thread);
      if (!works) continue;
      if constexpr (C::MODS::ANY)
        flex_key_gradients<C>(s, dp, p, t, key, row0 + lane % 4 * 2, tile.kind, dropped, lane);
      else
        key_gradients<C>(s, dp, p, t, key, row0 + lane % 4 * 2);
      gemm_tile<C>(dv, s, 0, lane);
      gemm_tile<C>(dk, dp, 1, lane);
    }
  }
  const int64_t first_k =
      t.batch * p.dk_stride.batch + kv_head * p.dk_stride.head + t.seq.k_row * p.dk_stride.row;
  const int64_t first_v =
      t.batch * p.dv_stride.batch + kv_head * p.dv_stride.head + t.seq.k_row * p.dv_stride.row;
  store_memeff_tile<C>(p.dk, first_k, p.dk_stride.row, dk, p.scale, key, t.seq.len_k, col0, f.head_dim, lane);
  store_memeff_tile<C>(p.dv, first_v, p.dv_stride.row, dv, f.dropout_scale, key, t.seq.len_k, col0, f.head_dim_v,
                lane);
}

} // namespace fa

#endif
