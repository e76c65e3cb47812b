/* The gradient of a bias that is broadcast over the batch, the heads or the rows: the sum of dS over these
 * axes.
 *
 * A block keeps BM rows (or, if rows are summed, iterates over the blocks of rows) by BN keys of the sum in
 * registers, recomputes dS for every sequence and head that shares them, and adds in a fixed order. So dS
 * needs no memory, whatever its size, and the bits are the same in every run. */
#ifndef FA_GPU_KERNELS_MEMEFF_DBIAS_CUH
#define FA_GPU_KERNELS_MEMEFF_DBIAS_CUH

#include "gpu/kernels/memeff/backward_queries.cuh"

namespace fa {

/* The kind of a tile; FA_FLEX_FULLY_MASKED if it is not visited. */
template <class C>
FA_DEVICE int dbias_tile(const fa_attention_params &f, const memeff_coord &t, int row0, int key0) {
  if (row0 >= t.seq.len_q) return FA_FLEX_FULLY_MASKED; /* another sequence has these rows */
  const block_range seen = visible_blocks<C::BN, true>(f, t.seq, row0, min_int(row0 + C::BM, t.seq.len_q));
  if constexpr (C::MODS::ANY) {
    const tile_walk<typename C::MODS> tiles(f.flex, f.flex.keys, t.batch, t.head, row0 / C::BM, seen);
    return kind_of_tile(tiles, key0 / C::BN);
  } else {
    return key0 / C::BN >= seen.begin && key0 / C::BN < seen.end ? FA_FLEX_FULL : FA_FLEX_FULLY_MASKED;
  }
}

/* sum += P (dP - delta), the gradient before score_mod's derivative, of one head's BM rows by BN keys. */
template <class C>
FA_DEVICE void add_dbias(typename C::score_tile &sum, const fa_memeff_backward_params &p, const memeff_coord &t,
                         int row0, int key0, int &buffer, int thread) {
  const fa_attention_params &f = p.forward;
  const int kind = dbias_tile<C>(f, t, row0, key0);
  if (kind == FA_FLEX_FULLY_MASKED) return;
  const int lane = thread % 32, row = row0 + thread / 32 * 16 + lane / 4;
  const memeff_operands x = query_operands<C>(p, t);
  typename C::score_tile s = {}, dp = {};
  /* some warps may still read the other buffer, none this one: there are at least two chunks, with a barrier
   * each */
  fetch_operands<C>(x, row0, key0, 0, buffer, f.aligned, thread);
  cp_async_commit();
  uint32_t dropped = 0;
  if constexpr (C::MODS::DROPS)
    dropped = flex_dropped<C::BN / 8, false>(f, t, row, key0 + lane % 4 * 2, lane);
  const bool works = warp_has_rows(row0, t.seq.len_q, thread);
  gemm_s_dp<C>(s, dp, x, row0, key0, buffer, f.aligned, works, thread);
  if (!works) return;
  if constexpr (C::MODS::ANY)
    flex_query_gradients<C>(s, dp, p, t, row, key0 + lane % 4 * 2, kind, dropped, lane,
                            [](const flex_pair &, float, float g) { return g; });
  else
    query_gradients<C>(s, dp, p, t, row, key0 + lane % 4 * 2);
  FA_UNROLL
  for (int n = 0; n < C::BN / 8; ++n) {
    FA_UNROLL
    for (int e = 0; e < 4; ++e) sum[n][e] += dp[n][e];
  }
}

/* Stores the sums over the block's BM rows, one per key: summed over the warp's 16 rows in registers, then
 * over the warps in shared memory. */
template <class C>
FA_DEVICE void write_column_sums(const fa_memeff_backward_params &p, const memeff_coord &t,
                                 const typename C::score_tile &sum, int key0, int thread) {
  const int lane = thread % 32;
  sync_block(); /* all are done with the buffers */
  FA_UNROLL
  for (int n = 0; n < C::BN / 8; ++n) {
    FA_UNROLL
    for (int e = 0; e < 2; ++e) {
      float x = sum[n][e] + sum[n][2 + e];
      FA_UNROLL
      for (int m = 4; m < 32; m *= 2) x += shfl_xor(x, m);
      if (lane < 4)
        store_shared4(shared_base() + (thread / 32 * C::BN + 8 * n + lane * 2 + e) * 4, float_bits(x));
    }
  }
  sync_block(); /* every warp's sums are in shared memory */
  if (thread >= C::BN || key0 + thread >= p.forward.seqlen_k) return;
  float x = 0.0f;
  FA_UNROLL
  for (int w = 0; w < C::WARPS; ++w) x += as_float(load_shared4(shared_base() + (w * C::BN + thread) * 4));
  store_element(p.dbias, t.batch * p.dbias_stride.batch + t.head * p.dbias_stride.head + key0 + thread, x,
                typename C::T());
}

/* What a block sums over: [begin, end) of each axis. */
struct dbias_part {
  int batch0, batch1, head0, head1, row0, row1;
};
template <int BM> FA_DEVICE dbias_part dbias_part_of(const fa_memeff_backward_params &p, int row_block) {
  const int batch = static_cast<int>(blockIdx.z), head = static_cast<int>(blockIdx.y);
  dbias_part d = {batch, batch + 1, head, head + 1, row_block * BM, row_block * BM + 1};
  if (p.dbias_sums & FA_MEMEFF_SUM_BATCH) d.batch1 = p.batch;
  if (p.dbias_sums & FA_MEMEFF_SUM_HEADS) d.head1 = p.forward.heads_q;
  if (p.dbias_sums & FA_MEMEFF_SUM_ROWS) d.row1 = p.forward.seqlen_q;
  return d;
}

template <class C> FA_DEVICE void memeff_backward_dbias(const fa_memeff_backward_params &p) {
  const fa_attention_params &f = p.forward;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const int n_key_blocks = (f.seqlen_k + C::BN - 1) / C::BN;
  const int key0 = static_cast<int>(blockIdx.x) % n_key_blocks * C::BN;
  const dbias_part d = dbias_part_of<C::BM>(p, static_cast<int>(blockIdx.x) / n_key_blocks);
  typename C::score_tile sum = {};
  int buffer = 0;
  FA_NO_UNROLL
  for (int batch = d.batch0; batch < d.batch1; ++batch) {
    FA_NO_UNROLL
    for (int head = d.head0; head < d.head1; ++head) {
      const memeff_coord t = load_memeff_coord(f, batch, head);
      FA_NO_UNROLL
      for (int row0 = d.row0; row0 < d.row1; row0 += C::BM)
        add_dbias<C>(sum, p, t, row0, key0, buffer, thread);
    }
  }
  memeff_coord first = load_memeff_coord(f, d.batch0, d.head0);
  first.seq.len_q = f.seqlen_q; /* the sums have the rows of the longest sequence */
  if (p.dbias_sums & FA_MEMEFF_SUM_ROWS)
    write_column_sums<C>(p, first, sum, key0, thread);
  else
    write_dbias<C>(p, first, sum, d.row0 + thread / 32 * 16 + lane / 4, key0 + lane % 4 * 2);
}

} // namespace fa

#endif
