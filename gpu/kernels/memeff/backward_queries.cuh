/* The memeff kernel of dQ and, unless it is summed, the gradient of the bias; and the prepare kernel, which
 * computes delta. A block owns BM query rows of one head and VC columns of dQ, and loops over the key blocks
 * that the rows see. */
#ifndef FA_GPU_KERNELS_MEMEFF_BACKWARD_QUERIES_CUH
#define FA_GPU_KERNELS_MEMEFF_BACKWARD_QUERIES_CUH

#include "gpu/kernels/memeff/backward.cuh"

namespace fa {

/* Zeros in a row that the gradient of a packed bias has, which is as long as the longest sequence, and the sequence has
 * not: the kernels that make the gradient do not come there. */
template <class T>
FA_DEVICE void clear_dbias_row(const fa_memeff_backward_params &p, const memeff_coord &t, int row, int lane) {
  const int64_t at = t.batch * p.dbias_stride.batch + t.head * p.dbias_stride.head + row * p.dbias_stride.row;
  FA_NO_UNROLL
  for (int key = lane; key < p.forward.seqlen_k; key += 32) store_element(p.dbias, at + key, 0.0f, T());
}

/* Computes delta = rowsum(dO * O) - dLSE, clears dQ and rows of dbias, each if wanted; one warp per row. */
template <class T> FA_DEVICE void memeff_backward_prepare(const fa_memeff_backward_params &p) {
  const fa_attention_params &f = p.forward;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const memeff_coord t = load_memeff_coord(f, static_cast<int>(blockIdx.z), static_cast<int>(blockIdx.y));
  const int row = static_cast<int>(blockIdx.x) * FA_MEMEFF_PREPARE_ROWS + warp;
  if (row >= t.seq.len_q) {
    if (p.clears_dbias && row < f.seqlen_q) clear_dbias_row<T>(p, t, row, lane);
    return;
  }
  if (p.clears_dq)
    for (int c = lane; c < f.head_dim; c += 32)
      store_element(p.dq, row_at(p.dq_stride, t, row) + c, 0.0f, T());
  if (!p.makes_delta) return;
  const int64_t o = row_at(f.o_stride, t, row), d_o = row_at(p.do_stride, t, row);
  float sum = 0.0f;
  FA_NO_UNROLL
  for (int c = lane; c < f.head_dim_v; c += 32)
    sum = fmaf(load_element(p.d_o, d_o + c, T()), load_element(f.o, o + c, T()), sum);
  FA_UNROLL
  for (int m = 16; m > 0; m /= 2) sum += shfl_xor(sum, m);
  if (p.d_lse) sum -= load_global(p.d_lse + statistics_of(f, p.dlse_stride, t, row));
  if (lane == 0) store_global(p.delta + statistics_of(f, p.delta_stride, t, row), sum);
}

/* Stores dS of this warp's 16 rows by BN keys. row, key: of the lane's element 0. */
template <class C>
FA_DEVICE void write_dbias(const fa_memeff_backward_params &p, const memeff_coord &t,
                           const typename C::score_tile &ds, int row, int key) {
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    if (row + 8 * r >= t.seq.len_q) continue;
    const int64_t at = t.batch * p.dbias_stride.batch + t.head * p.dbias_stride.head +
                       (row + static_cast<int64_t>(8 * r)) * p.dbias_stride.row;
    FA_UNROLL
    for (int n = 0; n < C::BN / 8; ++n) {
      FA_UNROLL
      for (int e = 0; e < 2; ++e)
        if (key + 8 * n + e < p.forward.seqlen_k)
          store_element(p.dbias, at + key + 8 * n + e, ds[n][2 * r + e], typename C::T());
    }
  }
}

/* Writes zeros to dbias in the key blocks that this block does not visit. */
template <class C>
FA_DEVICE void clear_dbias(const fa_memeff_backward_params &p, const memeff_coord &t,
                           const tile_walk<typename C::MODS> &tiles, int row, int key) {
  const typename C::score_tile zeros = {};
  const int n_blocks = (p.forward.seqlen_k + C::BN - 1) / C::BN;
  int next = tiles.begin();
  FA_NO_UNROLL
  for (int block = 0; block < n_blocks; ++block) {
    if (next < tiles.end() && tiles.at(next).tile == block)
      ++next;
    else
      write_dbias<C>(p, t, zeros, row, key + block * C::BN);
  }
}

/* P and dS of this warp's 16 rows by BN keys. */
template <class C>
FA_DEVICE void query_gradients(typename C::score_tile &s, typename C::score_tile &dp,
                               const fa_memeff_backward_params &p, const memeff_coord &t, int row, int key) {
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const memeff_query q = load_query(p, t, row + 8 * r);
    FA_UNROLL
    for (int n = 0; n < C::BN / 8; ++n) {
      FA_UNROLL
      for (int e = 2 * r; e < 2 * r + 2; ++e)
        pair_gradient<typename C::T>(s[n][e], dp[n][e], p, q, key + 8 * n + e % 2);
    }
  }
}

/* With score_mod and mask_mod, dP becomes then(pair, scaled score, P (Z dP - delta)). kind, dropped: of the tile. */
template <class C, class F>
FA_DEVICE void flex_query_gradients(typename C::score_tile &s, typename C::score_tile &dp,
                                    const fa_memeff_backward_params &p, const memeff_coord &t, int row, int key,
                                    int kind, uint32_t dropped, int lane, const F &then) {
  typedef typename C::MODS M;
  const fa_attention_params &f = p.forward;
  const uint32_t masked = flex_masked<M, C::BN / 8, false>(f, t, row, key, kind, lane);
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int i = row + 8 * r;
    const flex_query q = load_flex_query(p, t, i);
    FA_UNROLL
    for (int n = 0; n < C::BN / 8; ++n) {
      FA_UNROLL
      for (int e = 0; e < 2; ++e) {
        float &y = dp[n][2 * r + e];
        const flex_pair at = flex_pair_of(t, i, key + 8 * n + e);
        const float scaled = scaled_score(f, s[n][2 * r + e]);
        const bool is_masked = masked >> (4 * n + 2 * r + e) & 1, is_dropped = dropped >> (4 * n + 2 * r + e) & 1;
        y = then(at, scaled, flex_flow_of<M, typename C::T>(f, q, at, is_masked, is_dropped, scaled, y).g);
      }
    }
  }
}

/* Stores one element of dbias. */
template <class T>
FA_DEVICE void write_pair_dbias(const fa_memeff_backward_params &p, const flex_pair &at, float g) {
  if (at.i < at.len_q && at.j < p.forward.seqlen_k)
    store_element(p.dbias,
                  at.b * p.dbias_stride.batch + at.h * p.dbias_stride.head + at.i * p.dbias_stride.row + at.j,
                  g, T());
}

/* dS of this warp's 16 rows by BN keys. If `dbias`, stores the gradient of the bias; if `adds` (in the blocks
 * of the first columns), adds to the gradients of captured buffers. */
template <class C>
FA_DEVICE void query_tile(typename C::score_tile &s, typename C::score_tile &dp,
                          flex_gradients<typename C::MODS, true> &gradients, const fa_memeff_backward_params &p,
                          const memeff_coord &t, int row, int key, int kind, uint32_t dropped, bool dbias, bool adds,
                          int lane) {
  if constexpr (C::MODS::ANY) {
    const fa_flex_args &x = p.forward.flex;
    flex_query_gradients<C>(s, dp, p, t, row, key, kind, dropped, lane,
                            [&](const flex_pair &at, float scaled, float g) {
                              if (dbias) write_pair_dbias<typename C::T>(p, at, g);
                              const auto add = gradients.adder(x, g);
                              return flex_score_gradient<typename C::MODS>(
                                  p.forward, at, scaled, g, [&](int buffer, int64_t element, float derivative) {
                                    if (adds) add(buffer, element, derivative);
                                  });
                            });
  } else {
    query_gradients<C>(s, dp, p, t, row, key);
    if (dbias) write_dbias<C>(p, t, dp, row, key);
  }
}

template <class C>
FA_DEVICE memeff_operands query_operands(const fa_memeff_backward_params &p, const memeff_coord &t) {
  const fa_attention_params &f = p.forward;
  return memeff_operands{q_rows(f, t),
                       k_rows(f, t),
                       do_rows(p, t),
                       v_rows(f, t),
                       chunks_of<C>(f.head_dim),
                       chunks_of<C>(f.head_dim_v)};
}

template <class C> FA_DEVICE void memeff_backward_queries(const fa_memeff_backward_params &p) {
  const fa_attention_params &f = p.forward;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const int n_cols = (f.head_dim + C::VC - 1) / C::VC;
  const int col0 = static_cast<int>(blockIdx.x) % n_cols * C::VC,
            row0 = static_cast<int>(blockIdx.x) / n_cols * C::BM;
  const memeff_coord t = load_memeff_coord(f, static_cast<int>(blockIdx.z), static_cast<int>(blockIdx.y));
  if (row0 >= t.seq.len_q) return;
  const tile_walk<typename C::MODS> tiles(
      f.flex, f.flex.keys, t.batch, t.head, row0 / C::BM,
      visible_blocks<C::BN, true>(f, t.seq, row0, min_int(row0 + C::BM, t.seq.len_q)));
  const memeff_operands x = query_operands<C>(p, t);
  const int row = row0 + thread / 32 * 16 + lane / 4;
  const bool works = warp_has_rows(row0, t.seq.len_q, thread);
  const bool dbias = may_have(FA_HAS_DBIAS) && p.dbias && !p.dbias_sums && col0 == 0;
  if (dbias) clear_dbias<C>(p, t, tiles, row, lane % 4 * 2);

  typename C::output_tile dq = {};
  flex_gradients<typename C::MODS, true> gradients;
  int buffer = 0;
  FA_NO_UNROLL
  for (int i = tiles.begin(); i < tiles.end(); ++i) {
    const flex_tile tile = tiles.at(i);
    const int key0 = tile.tile * C::BN, key = key0 + lane % 4 * 2;
    typename C::score_tile s = {}, dp = {};
    sync_block(); /* all are done with both buffers and the tile */
    fetch_operands<C>(x, row0, key0, 0, buffer, f.aligned, thread);
    fetch_tile<C>(0, x.s_b, key0, col0, f.aligned, thread);
    cp_async_commit();
    uint32_t dropped = 0;
    if constexpr (C::MODS::DROPS) dropped = flex_dropped<C::BN / 8, false>(f, t, row, key, lane);
    gemm_s_dp<C>(s, dp, x, row0, key0, buffer, f.aligned, works, thread);
    if (!works) continue;
    query_tile<C>(s, dp, gradients, p, t, row, key, tile.kind, dropped, dbias, col0 == 0, lane);
    gemm_tile<C>(dq, dp, 0, lane);
  }
  gradients.flush(f.flex, lane);
  const int64_t first =
      t.batch * p.dq_stride.batch + t.head * p.dq_stride.head + t.seq.q_row * p.dq_stride.row;
  store_memeff_tile<C>(p.dq, first, p.dq_stride.row, dq, p.scale, row, t.seq.len_q, col0, f.head_dim, lane);
}

} // namespace fa

#endif
