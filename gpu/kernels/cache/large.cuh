/* Attention over a KV cache with large head dims, or with a head dim of V of its own: K has up to 576 columns and
 * V up to 512, or V is the first columns of K (multi-head latent attention), read once for both.
 *
 * No warp has the registers for a row of O, nor for one of Q. So all warps share a tile of keys: each computes the
 * scores of 16 rows with some of its keys, P goes through shared memory, and each warp accumulates some of O's
 * columns for all rows. A tile of rows has the heads of one KV head side by side, and reads each of its keys once.
 *
 * The copies of the next tile of K run beside gemm_pv and, where V has a tile of its own, those of V beside
 * gemm_qk; with V in K there are two tiles in turn. */
#ifndef FA_GPU_KERNELS_CACHE_LARGE_CUH
#define FA_GPU_KERNELS_CACHE_LARGE_CUH

#include "gpu/kernels/cache/forward_scores.cuh"
#include "gpu/kernels/cache/large_load.cuh"
#include "gpu/kernels/cache/large_store.cuh"

namespace fa {

/* Which part of a tile's scores a warp has. */
struct large_part {
  int row0, key_group; /* rows row0.. of the block's; keys key_group * C::scores::KEYS.. of the tile's */
};

/* s = Q K^T for this warp's rows and keys. Fragments of K are 8 keys by 32 columns. */
template <class C>
FA_DEVICE void large_gemm_qk(float (&s)[C::scores::KEYS / 8][4], const fa_cache_params &p, const large_part &part,
                             uint32_t k_tile, int lane) {
  const uint32_t a_first = first_a<C::D>(shared_base(), part.row0, lane);
  const uint32_t b_first = k_tile + tile_offset<C::D>(part.key_group * C::scores::KEYS + lane % 8, lane / 8);
  const int n = large_chunks(p.head_dim, 32) / 4;
  FA_UNROLL_2
  for (int kk = 0; kk < n; ++kk) {
    uint32_t a[2][4];
    load_a<C::D>(a[0], a_first, 0, 2 * kk);
    load_a<C::D>(a[1], a_first, 0, 2 * kk + 1);
    FA_UNROLL
    for (int i = 0; i < C::scores::KEYS / 8; ++i) {
      uint32_t b[4];
      ldmatrix_x4(b, tile_right<C::D>(b_first, 4 * kk) + i * (8 * C::D * 2));
      mma(s[i], a[0], b, typename C::T());
      mma(s[i], a[1], b + 2, typename C::T());
    }
  }
}

/* ---- softmax, of rows whose keys several warps have ---- */

/* Stores the maximum of this warp's scores of each of its rows. */
template <class C>
FA_DEVICE void store_large_maxima(const float (&s)[C::scores::KEYS / 8][4], const large_part &part, int lane) {
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    float m = -infinity();
    FA_UNROLL
    for (int n = 0; n < C::scores::KEYS / 8; ++n) m = max_float(m, max_float(s[n][2 * r], s[n][2 * r + 1]));
    m = quad_max(m);
    if (lane % 4 == 0) store_shared4(large_maximum<C>(part.key_group, part.row0 + lane / 4 + 8 * r), float_bits(m));
  }
}

/* Replaces the scores of one row by their exponentials, relative to the maximum over all warps; returns the factor
 * by which O is rescaled. As softmax_row (parts/softmax.cuh). */
template <class C>
FA_DEVICE float large_softmax_row(float (&s)[C::scores::KEYS / 8][4], int r, float scale_log2, row_state &row,
                                  int block_row) {
  float m = row.max;
  FA_UNROLL
  for (int g = 0; g < C::KEY_GROUPS; ++g)
    m = max_float(m, as_float(load_shared4(large_maximum<C>(g, block_row))));
  const float shift = m == -infinity() ? 0.0f : multiply(m, scale_log2);
  const float rescale = exp2_approx(multiply(row.max, scale_log2) - shift);
  float sum = 0.0f;
  FA_UNROLL
  for (int n = 0; n < C::scores::KEYS / 8; ++n) {
    FA_UNROLL
    for (int e = 2 * r; e < 2 * r + 2; ++e) {
      s[n][e] = exp2_approx(fmaf(s[n][e], scale_log2, -shift));
      sum += s[n][e];
    }
  }
  row.sum = row.sum * rescale + sum;
  row.max = m;
  return rescale;
}

/* Stores P, rounded to T, and the factors of this warp's rows. */
template <class C>
FA_DEVICE void store_large_p(float (&s)[C::scores::KEYS / 8][4], row_state (&state)[2], float scale_log2,
                             const large_part &part, int lane) {
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const int row = part.row0 + lane / 4 + 8 * r;
    const float rescale = large_softmax_row<C>(s, r, scale_log2, state[r], row);
    if (part.key_group == 0 && lane % 4 == 0) store_shared4(large_factor<C>(row), float_bits(rescale));
    FA_UNROLL
    for (int n = 0; n < C::scores::KEYS / 8; ++n)
      store_shared4(shared_base() + C::P_AT +
                        tile_offset<C::KEYS>(row, part.key_group * (C::scores::KEYS / 8) + n) + lane % 4 * 4,
                    pack2(s[n][2 * r], s[n][2 * r + 1], typename C::T()));
  }
}

/* ---- O ---- */

template <class C> FA_DEVICE void rescale_large_o(large_o<C> &o, int lane) {
  FA_UNROLL
  for (int m = 0; m < C::ROW_GROUPS; ++m) {
    FA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const float factor = as_float(load_shared4(large_factor<C>(16 * m + 8 * r + lane / 4)));
      FA_UNROLL
      for (int c = 0; c < C::RUNS; ++c) {
        FA_UNROLL
        for (int e = 0; e < 4; ++e) o.x[m][c][e / 2][2 * r + e % 2] *= factor;
      }
    }
  }
}

/* o += P V for all rows and this warp's columns. VW: the width of V's tile. */
template <class C, int VW>
FA_DEVICE void large_gemm_pv(large_o<C> &o, const fa_cache_params &p, uint32_t v_tile, int warp, int lane) {
  const uint32_t a_first = first_a<C::KEYS>(shared_base() + C::P_AT, 0, lane);
  const uint32_t b_first = first_b_trans<VW>(v_tile, lane);
  FA_UNROLL
  for (int kk = 0; kk < C::KEYS / 16; ++kk) {
    uint32_t a[C::ROW_GROUPS][4];
    FA_UNROLL
    for (int m = 0; m < C::ROW_GROUPS; ++m) load_a<C::KEYS>(a[m], a_first, m, kk);
    FA_UNROLL
    for (int c = 0; c < C::RUNS; ++c) {
      const int run = warp + c * C::WARPS;
      if (run * 16 >= p.head_dim_v) continue;
      uint32_t b[4];
      load_b_trans<VW>(b, b_first, kk, run);
      FA_UNROLL
      for (int m = 0; m < C::ROW_GROUPS; ++m) {
        mma(o.x[m][c][0], a[m], b, typename C::T());
        mma(o.x[m][c][1], a[m], b + 2, typename C::T());
      }
    }
  }
}

/* ---- mainloop ---- */

/* This warp's scores of the tile at key0, as logits, with masks. all: the keys that all of its rows see. */
template <class C>
FA_DEVICE void large_scores(float (&s)[C::scores::KEYS / 8][4], const fa_cache_params &p, const large_work_tile &work,
                            const large_part &part, const cache_row_info (&rows)[2], cache_limits all, uint32_t k_tile,
                            int key0, int lane) {
  typedef typename C::scores W;
  const int first = key0 + part.key_group * W::KEYS, col = first + lane % 4 * 2;
  large_gemm_qk<C>(s, p, part, k_tile, lane);
  if (cache_scores_are_modified<C>(p)) modify_cache_scores<W>(s, p, p.scale, rows, col);
  if (first < all.lo || first + W::KEYS > all.hi) mask_cache_scores<W>(s, rows, col);
  if (p.mask_bits) mask_cache_bits<W>(s, p, work.at, rows, col);
  if (work.list) mask_unlisted<C>(s, p, work, col);
}

/* The keys that all rows of a warp see. Rows that do not exist are computed like the last. */
template <class C>
FA_DEVICE cache_limits seen_by_all(const fa_cache_params &p, const cache_work_tile &work, int row0) {
  const int first = cache_min(row0, work.n_rows - 1), last = cache_min(row0 + 16, work.n_rows) - 1;
  const cache_limits top = limits_of_cache_row<C::GENERAL>(p, work.seq, (work.row0 + first) / p.heads_per_kv);
  const cache_limits bottom =
      limits_of_cache_row<C::GENERAL>(p, work.seq, (work.row0 + cache_max(first, last)) / p.heads_per_kv);
  return cache_limits{bottom.lo, top.hi};
}

/* Grid: as cache_forward's; with lists of keys, the blocks of rows are those of each query's heads. */
template <class C> FA_DEVICE void cache_large(const fa_cache_params &p) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  next_kernel_may_start();
  const large_work_tile tile = load_large_work_tile<C>(p);
  const cache_work_tile &work = tile.at;
  if (work.n_rows <= 0) return;
  if (work.hi <= work.lo && p.n_splits > 1) {
    for (int row = thread; row < work.n_rows; row += C::THREADS)
      store_lse(p, work, unpack_row(p, work.kv_head, work.row0 + row), -infinity());
    return;
  }

  const uint32_t k_tile = shared_base() + C::K_AT, v_tile = shared_base() + C::V_AT;
  const cache_source<C> from = find_cache_source<C>(p, work, cache_tile_copy<C>::chunk(thread));
  const int first_key = work.first_block * C::BN;
  large_rows<C> here = find_large_rows<C>(p, tile, from, first_key, thread);
  load_large_k<C>(k_tile, p, from, here, thread);
  cp_async_commit();
  large_rows<C> next = find_large_rows<C>(p, tile, from, first_key + C::BN, thread);
  load_large_q<C>(p, work, thread);

  const large_part part = {warp % C::ROW_GROUPS * 16, warp / C::ROW_GROUPS};
  const cache_limits all = seen_by_all<C>(p, work, part.row0);
  const float scale_log2 = cache_scores_are_modified<C>(p) ? LOG2E : p.scale_log2;
  cache_row_info rows[2];
  row_state state[2];
  large_o<C> o;
  load_rows<C>(rows, p, work, part.row0, lane);

  uint32_t stage = k_tile; /* with V in K, the one of two in use */
  FA_NO_UNROLL
  for (int key0 = first_key; key0 < work.hi; key0 += C::BN) {
    const uint32_t other = k_tile + v_tile - stage;
    cp_async_wait<0>();
    sync_block(); /* K has arrived, and all are done with the tile before */
    if constexpr (C::V_IN_K)
      load_large_k<C>(other, p, from, next, thread);
    else
      load_large_v<C>(v_tile, p, from, here, thread);
    cp_async_commit();
    float s[C::scores::KEYS / 8][4] = {};
    large_scores<C>(s, p, tile, part, rows, all, stage, key0, lane);
    store_large_maxima<C>(s, part, lane);
    sync_block(); /* all have read K */
    if (!C::V_IN_K) {
      load_large_k<C>(k_tile, p, from, next, thread);
      cp_async_commit();
    }
    here = next;
    next = find_large_rows<C>(p, tile, from, key0 + 2 * C::BN, thread);
    store_large_p<C>(s, state, scale_log2, part, lane);
    cp_async_wait<1>(); /* V, of a tile of its own; K may be on its way */
    sync_block();
    rescale_large_o<C>(o, lane);
    large_gemm_pv<C, C::V_IN_K ? C::D : C::DV>(o, p, C::V_IN_K ? stage : v_tile, warp, lane);
    if (C::V_IN_K) stage = other;
  }

  cp_async_wait<0>();
  sync_block();
  store_large_parts<C>(o, p, state, part.row0, part.key_group, warp, lane);
  sync_block();
  large_epilogue<C>(p, work, thread);
}

} // namespace fa

#endif
