/* Attention over a KV cache, with the keys divided into splits. K and V go through a pipeline of stages in
 * shared memory; the copies of all stages but the one in use are in flight.
 *
 *   few rows    (decoding) The only real work is to read the cache. Every warp has the same 16 or 8 packed rows
 *               and a pipeline of its own, and works on every C::TEAMS-th tile of C::KEYS keys. No warp waits
 *               for another until the epilogue, which combines their parts.
 *   many rows   Every warp has 16 rows of its own, and all warps share the pipeline.
 *
 * A cache of 8 bits: eight.cuh; of 4 bits: four.cuh. Of either, up to 8 rows: fewest.cuh.
 *
 * Columns from head_dim to D are zeros in shared memory and exist nowhere else. */
#ifndef FA_GPU_KERNELS_CACHE_FORWARD_CUH
#define FA_GPU_KERNELS_CACHE_FORWARD_CUH

#include "gpu/kernels/cache/eight.cuh"
#include "gpu/kernels/cache/fewest.cuh"
#include "gpu/kernels/cache/forward_scores.cuh"
#include "gpu/kernels/cache/forward_store.cuh"
#include "gpu/kernels/cache/four.cuh"

namespace fa {

/* ---- Q ---- */

template <class C> FA_DEVICE uint32_t load_pair(const fa_cache_params &p, const uint16_t *from) {
  if (!C::GENERAL || p.aligned) return load_global(reinterpret_cast<const uint32_t *>(from));
  return load_global(from) | static_cast<uint32_t>(load_global(from + 1)) << 16;
}

/* The A fragments of a warp's 16 rows of Q: in registers, or in shared memory, where each lane reads only
 * what it wrote. */
template <class C, bool SHARED = C::Q_IN_SHARED> struct q_fragments {
  uint32_t a[C::D / 16][4];
  FA_DEVICE q_fragments(int, int) {}
  FA_DEVICE void set(int kk, const uint32_t (&from)[4]) {
    FA_UNROLL
    for (int i = 0; i < 4; ++i) a[kk][i] = from[i];
  }
  FA_DEVICE void get(uint32_t (&to)[4], int kk) const {
    FA_UNROLL
    for (int i = 0; i < 4; ++i) to[i] = a[kk][i];
  }
};
template <class C, bool FEWEST = C::FEWEST> struct q_of { typedef q_fragments<C> type; };
template <class C> struct q_of<C, true> { typedef q_pairs<C> type; };
template <class C> struct q_fragments<C, true> {
  uint32_t at;
  FA_DEVICE q_fragments(int warp, int lane)
      : at(shared_base() + C::Q_AT + warp * C::Q_WARP_BYTES + lane * 16) {}
  FA_DEVICE void set(int kk, const uint32_t (&from)[4]) {
    store_shared16(at + kk * 512, vec4{from[0], from[1], from[2], from[3]});
  }
  FA_DEVICE void get(uint32_t (&to)[4], int kk) const {
    const vec4 v = load_shared16(at + kk * 512);
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  }
};

/* A lane's first column of a run of 16, and how far its others are: of bytes as eight.cuh says. */
template <class C> struct q_columns {
  static constexpr int FIRST = C::EIGHT ? 4 : 2, OTHERS = C::EIGHT ? 2 : 8;
};

/* Loads Q times the sign of the scale. Registers 0, 1 of a fragment are columns 0..7 of rows l/4 and l/4 + 8;
 * registers 2, 3 are columns 8..15. */
template <class C>
FA_DEVICE void load_q(typename q_of<C>::type &q, const fa_cache_params &p, const cache_work_tile &work, int first, int lane) {
  const uint32_t keep = p.score_sign == 0.0f ? 0 : 0xffffffffu, flip = p.score_sign < 0.0f ? 0x80008000u : 0;
  const uint16_t *from[2] = {};
  int n_columns[2] = {};
  FA_UNROLL
  for (int r = 0; r < C::ROWS8; ++r) {
    const int row = first + lane / 4 + 8 * r;
    const packed_row at = unpack_row(p, work.kv_head, work.row0 + row);
    from[r] = p.q + work.batch * p.q_stride.batch + at.head * p.q_stride.head +
              (work.seq.q_row + at.row) * p.q_stride.row + lane % 4 * q_columns<C>::FIRST;
    n_columns[r] = row < work.n_rows ? p.head_dim : 0;
  }
  FA_UNROLL
  for (int kk = 0; kk < C::D / 16; ++kk) {
    uint32_t a[4];
    FA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int column = 16 * kk + i / 2 * q_columns<C>::OTHERS;
      a[i] = i % 2 < C::ROWS8 && column < n_columns[i % 2] ? load_pair<C>(p, from[i % 2] + column) : 0;
      a[i] = (a[i] & keep) ^ flip;
    }
    q.set(kk, a);
  }
}

/* ---- mainloop ---- */

/* s = Q K^T for this warp's rows and all keys of the tile. */
template <class C>
FA_DEVICE void cache_gemm_qk(float (&s)[C::KEYS / 8][4], const q_fragments<C> &q, uint32_t k_first) {
  FA_UNROLL
  for (int kk = 0; kk < C::D / 16; ++kk) {
    uint32_t a[4];
    q.get(a, kk);
    FA_UNROLL
    for (int n = 0; n < C::KEYS / 16; ++n) {
      uint32_t b[4];
      load_b<C::D>(b, k_first, n, kk);
      mma(s[2 * n], a, b, typename C::T());
      mma(s[2 * n + 1], a, b + 2, typename C::T());
    }
  }
}
template <class C>
FA_DEVICE void cache_gemm_qk_of_bytes(float (&s)[C::KEYS / 8][4], const q_fragments<C> &q, uint32_t k_first) {
  FA_UNROLL
  for (int k = 0; k < C::D / 32; ++k) {
    uint32_t a[2][4];
    q.get(a[0], 2 * k);
    q.get(a[1], 2 * k + 1);
    FA_UNROLL
    for (int n = 0; n < C::KEYS / 16; ++n) {
      uint32_t b[2][4];
      load_b_of_bytes<C>(b, k_first, n, k);
      FA_UNROLL
      for (int h = 0; h < 2; ++h) {
        mma(s[2 * n], a[h], b[h], typename C::T());
        mma(s[2 * n + 1], a[h], b[h] + 2, typename C::T());
      }
    }
  }
}

/* o += P V of 16 keys, whose P is a. */
template <class C>
FA_DEVICE void cache_add_pv(float (&o)[C::O_TILES][4], const uint32_t (&a)[4], uint32_t v_first, int kk) {
  FA_UNROLL
  for (int c = 0; c < C::D / 16; ++c) {
    uint32_t b[4];
    load_b_trans<C::D>(b, v_first, kk, c);
    mma(o[2 * c], a, b, typename C::T());
    mma(o[2 * c + 1], a, b + 2, typename C::T());
  }
}
template <class C>
FA_DEVICE void cache_add_pv_of_bytes(float (&o)[C::O_TILES][4], const uint32_t (&a)[4], uint32_t v_first, int kk) {
  FA_UNROLL
  for (int c = 0; c < C::D / 16; c += 2) {
    uint32_t b[2][4];
    load_b_trans_of_bytes<C>(b, v_first, kk, c / 2);
    FA_UNROLL
    for (int h = 0; h < 2; ++h) {
      mma(o[2 * (c + h)], a, b[h], typename C::T());
      mma(o[2 * (c + h) + 1], a, b[h] + 2, typename C::T());
    }
  }
}

/* o += P V, P rounded to T. */
template <class C>
FA_DEVICE void cache_gemm_pv(float (&o)[C::O_TILES][4], const float (&s)[C::KEYS / 8][4], uint32_t v_first) {
  FA_UNROLL
  for (int kk = 0; kk < C::KEYS / 16; ++kk) {
    uint32_t a[4];
    FA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const float(&x)[4] = s[2 * kk + i / 2];
      a[i] = pack2(x[i % 2 * 2], x[i % 2 * 2 + 1], typename C::T());
    }
    if constexpr (C::FEWEST)
      cache_add_pv_transposed<C>(o, a, v_first, kk);
    else if constexpr (C::EIGHT)
      cache_add_pv_of_bytes<C>(o, a, v_first, kk);
    else
      cache_add_pv<C>(o, a, v_first, kk);
  }
}

/* o times the factors of its rows. by: of a lane's rows of S. */
template <class C>
FA_DEVICE void rescale_o(float (&o)[C::O_TILES][4], const float (&by)[C::ROWS8], int lane) {
  float factor[2] = {by[0], by[C::ROWS8 - 1]}; /* of a tile's elements 0, 1 and 2, 3; transposed: of 0, 2 and 1, 3 */
  if (C::FEWEST) factors_of_columns(factor, by[0], lane);
  FA_UNROLL
  for (int n = 0; n < C::O_TILES; ++n) {
    FA_UNROLL
    for (int i = 0; i < 4; ++i) o[n][i] *= factor[C::FEWEST ? i % 2 : i / 2];
  }
}

/* A warp's work on one tile of keys. stage: the tile's shared memory; key0: its first key; all: the keys that
 * every row of the warp sees. */
template <class C>
FA_DEVICE void cache_mainloop_step(float (&o)[C::O_TILES][4], row_state (&state)[C::ROWS8], const typename q_of<C>::type &q,
                                   const fa_cache_params &p, const cache_work_tile &work, const cache_scales &scales,
                                   const cache_row_info (&rows)[C::ROWS8], cache_limits all, uint32_t stage, int key0,
                                   int lane) {
  if (C::FEWEST) lane = opaque(lane);
  const int col = key0 + lane % 4 * 2;
  const bool modified = cache_scores_are_modified<C>(p);
  float s[C::KEYS / 8][4] = {};
  constexpr int WIDTH = C::FOUR ? C::D : cache_tile_copy<C>::WIDTH;
  if constexpr (C::EIGHT && !C::FEWEST)
    cache_gemm_qk_of_bytes<C>(s, q, first_b<WIDTH>(stage, lane));
  else
    cache_gemm_qk<C>(s, q, first_b<WIDTH>(stage, lane));
  if (C::EIGHT && p.descale.of_slots) multiply_by_descales<C>(s, stage_descales<C>(stage), lane);
  if (modified) modify_cache_scores<C>(s, p, scales.score, rows, col);
  if (key0 < all.lo || key0 + C::KEYS > all.hi) mask_cache_scores<C>(s, rows, col);
  if (C::GENERAL && p.mask_bits) mask_cache_bits<C>(s, p, work, rows, col);
  float rescale[C::ROWS8];
  FA_UNROLL
  for (int r = 0; r < C::ROWS8; ++r) rescale[r] = softmax_row(s, r, modified ? LOG2E : scales.log2, state[r]);
  rescale_o<C>(o, rescale, lane);
  if (C::EIGHT && p.descale.of_slots) multiply_by_descales<C>(s, stage_descales<C>(stage) + C::KEYS * 4, lane);
  cache_gemm_pv<C>(o, s, first_b_trans<WIDTH>(stage + C::TILE_BYTES, lane));
}

/* All threads: what a block's rows get from its keys, which there are, as its warps' parts in shared memory. */
template <class C>
FA_DEVICE void cache_forward_parts(const fa_cache_params &p, const cache_work_tile &work, int thread, int warp, int lane) {
  const uint32_t tiles = shared_base() + thread / C::TEAM * C::PIPELINE_BYTES, stages = tiles + C::UNPACKED_BYTES;
  const cache_source<C> from = find_cache_source<C>(p, work, cache_tile_copy<C>::chunk(thread));
  const int first_key = work.first_block * C::BN + thread / C::TEAM * C::KEYS;
  cache_pages<C> pages = no_pages<C>(from);
  cache_prologue<C>(stages, p, from, pages, first_key, work.lo, work.hi, thread);

  const int first = C::FEW ? 0 : 16 * warp; /* of this warp's rows, in the block's */
  const int last = cache_min(first + 16, work.n_rows) - 1;
  cache_limits any = {0, 0}, all = {0, 0}; /* keys that some row of the warp sees, and keys that all of them
                                              see */
  if (last >= first) {
    const cache_limits top = limits_of_cache_row<C::GENERAL>(p, work.seq, (work.row0 + first) / p.heads_per_kv);
    const cache_limits bottom = limits_of_cache_row<C::GENERAL>(p, work.seq, (work.row0 + last) / p.heads_per_kv);
    any = cache_limits{top.lo, bottom.hi};
    all = cache_limits{bottom.lo, top.hi};
  }
  cache_row_info rows[C::ROWS8];
  typename q_of<C>::type q(warp, lane);
  float o[C::O_TILES][4] = {};
  row_state state[C::ROWS8];
  if (!C::Q_OF_BLOCK || warp == 0) load_q<C>(q, p, work, first, lane);
  if (C::Q_OF_BLOCK) sync_block();
  load_rows<C>(rows, p, work, first, lane);
  const cache_scales scales = scales_of<C>(p, work);

  uint32_t stage = stages;
  FA_NO_UNROLL
  for (int key0 = first_key; key0 < work.hi; key0 += C::BN) {
    cp_async_wait<C::STAGES - 1>();
    sync_team<C>(); /* the stage has arrived for the whole team */
    if constexpr (C::FOUR) {
      unpack_stage<C>(tiles, stage, thread);
      sync_team<C>();
    }
    if (key0 < any.hi && key0 + C::KEYS > any.lo)
      cache_mainloop_step<C>(o, state, q, p, work, scales, rows, all, C::FOUR ? tiles : stage, key0, lane);
    sync_team<C>(); /* the whole team is done with the stage */
    const int next = key0 + C::STAGES * C::BN;
    load_stage<C>(stage, p, from, pages, next, work.lo, work.hi, thread);
    cp_async_commit();
    find_pages<C>(pages, p, from, next + C::BN, work.lo, work.hi, thread);
    stage = stage == stages + (C::STAGES - 1) * C::STAGE_BYTES ? stages : stage + C::STAGE_BYTES;
  }

  cp_async_wait<0>();
  sync_team<C>();
  store_part<C>(shared_base() + warp * C::PART_STEP, o, state, lane);
}

/* Grid: x over blocks of C::BM packed rows times the splits, splits fastest; y over KV heads, z over the
 * batch. */
template <class C> FA_DEVICE void cache_forward(const fa_cache_params &p) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  next_kernel_may_start(); /* lets combine start: its blocks fit beside these */
  const cache_work_tile work = load_cache_work_tile<C>(p);
  if (work.n_rows <= 0) return; /* of a sequence with fewer rows than the longest */
  if (work.hi <= work.lo && p.n_splits > 1) {
    for (int row = thread; row < work.n_rows; row += C::THREADS)
      store_lse(p, work, unpack_row(p, work.kv_head, work.row0 + row), -infinity());
    return;
  }
  cache_forward_parts<C>(p, work, thread, warp, lane);
  sync_block();
  /* Kernels of many rows make the work tile again: kept through the loop, it would take registers they do not have. */
  cache_epilogue<C, cache_results<C>>(p, C::FEW ? work : load_cache_work_tile<C>(p), thread);
}

} // namespace fa

#endif
