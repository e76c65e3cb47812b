/* The memeff forward: float32 elements on tensor cores, and head dims of any size. A block works on BM query
 * rows of one head and VC columns of V.
 *
 * Any head dim fits, because S = Q K^T is accumulated over chunks of 32 columns that go through shared
 * memory, and because blocks divide the columns of O among them (each recomputes S). Per key block: the
 * chunks of Q and K, double-buffered, then V's columns, which are loaded meanwhile. P stays f32, in
 * registers.
 *
 * The maximum is subtracted from the logits before they are scaled to base 2, because a bias may be as low as
 * -FLT_MAX. */
#ifndef FA_GPU_KERNELS_MEMEFF_FORWARD_CUH
#define FA_GPU_KERNELS_MEMEFF_FORWARD_CUH

#include "gpu/kernels/memeff/dropout_mods.cuh"
#include "gpu/kernels/memeff/score_mods.cuh"
#include "gpu/kernels/parts/sink.cuh"
#include "gpu/kernels/parts/softmax.cuh"
#include "gpu/kernels/parts/statistics.cuh"

namespace fa {

/* T: f32, f16 or bf16. VC: columns of V and O of a block, 64 or 128. MODS: no_mods, or flex_mods for flex
 * calls. BN: keys of a tile. */
template <class T_, int VC_, class MODS_ = no_mods, int BN_ = 64> struct memeff_forward_config {
  typedef T_ T;
  typedef MODS_ MODS;
  static constexpr int VC = VC_, BM = 128, BN = BN_, WARPS = BM / 16, THREADS = 32 * WARPS;
  static constexpr int Q_BYTES = BM * memeff_row<MEMEFF_CHUNK>::BYTES, K_BYTES = BN * memeff_row<MEMEFF_CHUNK>::BYTES;
  static constexpr int V_BYTES = BN * memeff_row<VC>::BYTES;
  static constexpr int Q_AT = 0, K_AT = 2 * Q_BYTES, V_AT = K_AT + 2 * K_BYTES;
  static constexpr int SHARED_BYTES = V_AT + V_BYTES;
  static_assert(SHARED_BYTES <= 99 * 1024, "devices of compute capability 8.6 have no more");
  typedef float score_tile[BN / 8][4];
  typedef float output_tile[VC / 8][4];
};

template <class C>
FA_DEVICE void fetch_chunk(const fa_attention_params &p, const memeff_rows &q, const memeff_rows &k, int row0,
                           int key0, int chunk, int buffer, int thread) {
  load_memeff_tile<typename C::T, C::BM, MEMEFF_CHUNK, C::THREADS>(shared_base() + C::Q_AT + buffer * C::Q_BYTES, q,
                                                          row0, chunk * MEMEFF_CHUNK, p.aligned, thread);
  load_memeff_tile<typename C::T, C::BN, MEMEFF_CHUNK, C::THREADS>(shared_base() + C::K_AT + buffer * C::K_BYTES, k,
                                                          key0, chunk * MEMEFF_CHUNK, p.aligned, thread);
}

template <class C>
FA_DEVICE void memeff_softmax(typename C::score_tile &s, typename C::output_tile &o, row_state (&rows)[2]) {
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const float rescale = softmax_row_of_logits(s, r, rows[r]);
    FA_UNROLL
    for (int n = 0; n < C::VC / 8; ++n) {
      o[n][2 * r] *= rescale;
      o[n][2 * r + 1] *= rescale;
    }
  }
}

/* Applies linear dropout to P, after the row sums were taken. row: of the lane's element 0; key0: the tile's first. */
template <int N8>
FA_DEVICE void drop_linear(float (&s)[N8][4], const fa_attention_params &p, const memeff_coord &t, int row,
                           int key0, int lane) {
  uint32_t kept[2];
  linear_kept_tile<N8>(kept, p, t.seq, t.batch, t.head, row, key0, lane);
  FA_UNROLL
  for (int n = 0; n < N8; ++n) {
    FA_UNROLL
    for (int i = 0; i < 4; ++i)
      if (!(kept[i / 2] >> (4 * n + i % 2) & 1)) s[n][i] = 0.0f;
  }
}

FA_DEVICE void store_lse(const fa_attention_params &p, const memeff_coord &t, int row, float lse) {
  store_global(p.lse + statistics_at(p, p.lse_stride, t.batch, t.head, t.seq.q_row, row), lse);
}

/* Normalises, and stores this warp's rows of O, and of LSE in the block that has the first columns. */
template <class C>
FA_DEVICE void write_rows(const fa_attention_params &p, const memeff_coord &t, const typename C::output_tile &o,
                          const row_state (&rows)[2], int row, int col0, int lane) {
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const finished_row end = finish_row(p, t.head, rows[r].max, quad_sum(rows[r].sum), p.dropout_scale);
    const int i = row + 8 * r;
    if (i >= t.seq.len_q) continue;
    const int64_t at = t.batch * p.o_stride.batch + t.head * p.o_stride.head +
                       (t.seq.q_row + static_cast<int64_t>(i)) * p.o_stride.row;
    FA_UNROLL
    for (int n = 0; n < C::VC / 8; ++n) {
      FA_UNROLL
      for (int e = 0; e < 2; ++e) {
        const int col = col0 + 8 * n + lane % 4 * 2 + e;
        if (col < p.head_dim_v) store_element(p.o, at + col, o[n][2 * r + e] * end.factor, typename C::T());
      }
    }
    if (col0 == 0 && lane % 4 == 0) store_lse(p, t, i, end.lse);
  }
}

/* With expressions only calls with dropout have the code. */
template <class C> FA_DEVICE void store_dropout_used_of(const fa_attention_params &p, int thread) {
  if constexpr (!C::MODS::ANY || C::MODS::DROPS) store_dropout_used(p, thread);
}

/* From raw scores to P (the operand of P V), with O rescaled. */
template <class C>
FA_DEVICE void memeff_compute_p(typename C::score_tile &s, typename C::output_tile &o, row_state (&rows)[2],
                            const fa_attention_params &p, const memeff_coord &t, int row, int key, int kind,
                            uint32_t dropped, int lane) {
  if constexpr (C::MODS::ANY)
    make_flex_logits<typename C::MODS, typename C::T>(s, p, t, row, key, kind, lane);
  else
    make_logits<typename C::T>(s, p, t, row, key);
  memeff_softmax<C>(s, o, rows);
  if constexpr (C::MODS::DROPS) drop_flex(s, dropped);
  if (!C::MODS::ANY && p.dropout_linear) drop_linear(s, p, t, row, key - lane % 4 * 2, lane);
}

/* S of this warp's rows and one key block. On entry the first chunk is already in flight; V (its buffer is
 * free after the first barrier) and the other chunks are loaded here. On return `buffer` is the free one. */
template <class C>
FA_DEVICE void memeff_gemm_qk(typename C::score_tile &s, const fa_attention_params &p, const memeff_rows &q,
                           const memeff_rows &k, const memeff_rows &v, int row0, int key0, int col0, int &buffer,
                           bool works, int thread) {
  const int n_chunks = (p.head_dim + MEMEFF_CHUNK - 1) / MEMEFF_CHUNK;
  FA_NO_UNROLL
  for (int c = 0; c < n_chunks; ++c) {
    cp_async_wait<0>();
    sync_block(); /* the chunk has arrived for all; all are done with the other buffer and the previous V */
    if (c == 0)
      load_memeff_tile<typename C::T, C::BN, C::VC, C::THREADS>(shared_base() + C::V_AT, v, key0, col0, p.aligned,
                                                         thread);
    if (c + 1 < n_chunks) fetch_chunk<C>(p, q, k, row0, key0, c + 1, buffer ^ 1, thread);
    cp_async_commit();
    if (works)
      gemm_chunk<MEMEFF_CHUNK>(
          s,
          memeff_fragment_rows<MEMEFF_CHUNK>(shared_base() + C::Q_AT + buffer * C::Q_BYTES, thread / 32 * 16,
                                 thread % 32),
          memeff_fragment_rows<MEMEFF_CHUNK>(shared_base() + C::K_AT + buffer * C::K_BYTES, 0, thread % 32));
    buffer ^= 1;
  }
}

/* Grid: x over row blocks, and within each over the column blocks of O; y over query heads, z over the
 * batch. */
template <class C> FA_DEVICE void memeff_forward(const fa_attention_params &p) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const int n_cols = (p.head_dim_v + C::VC - 1) / C::VC, col0 = static_cast<int>(blockIdx.x) % n_cols * C::VC;
  const memeff_coord t = load_memeff_coord(p, static_cast<int>(blockIdx.z), static_cast<int>(blockIdx.y));
  const int row0 = static_cast<int>(blockIdx.x) / n_cols * C::BM;
  store_dropout_used_of<C>(p, thread);
  if (row0 >= t.seq.len_q) return;
  const tile_walk<typename C::MODS> tiles(
      p.flex, p.flex.keys, t.batch, t.head, row0 / C::BM,
      visible_blocks<C::BN, true>(p, t.seq, row0, min_int(row0 + C::BM, t.seq.len_q)));
  const memeff_rows q = q_rows(p, t), k = k_rows(p, t), v = v_rows(p, t);
  const int row = row0 + thread / 32 * 16 + lane / 4;

  const bool works = warp_has_rows(row0, t.seq.len_q, thread);
  typename C::output_tile o = {};
  row_state rows[2];
  int buffer = 0;
  if (tiles.begin() < tiles.end()) {
    fetch_chunk<C>(p, q, k, row0, tiles.at(tiles.begin()).tile * C::BN, 0, 0, thread);
    cp_async_commit();
  }
  FA_NO_UNROLL
  for (int i = tiles.begin(); i < tiles.end(); ++i) {
    const flex_tile at = tiles.at(i);
    const int key0 = at.tile * C::BN, key = key0 + lane % 4 * 2;
    uint32_t dropped = 0;
    if constexpr (C::MODS::DROPS) dropped = flex_dropped<C::BN / 8, false>(p, t, row, key, lane);
    typename C::score_tile s = {};
    memeff_gemm_qk<C>(s, p, q, k, v, row0, key0, col0, buffer, works, thread);
    cp_async_wait<0>();
    sync_block(); /* V has arrived for all */
    if (i + 1 < tiles.end()) {
      /* without lists from what is already in a register */
      const int next_key0 = C::MODS::ANY ? tiles.at(i + 1).tile * C::BN : key0 + C::BN;
      fetch_chunk<C>(p, q, k, row0, next_key0, 0, buffer, thread);
    }
    cp_async_commit();
    if (!works) continue;
    memeff_compute_p<C>(s, o, rows, p, t, row, key, at.kind, dropped, lane);
    gemm_rows<C::VC>(o, s, memeff_fragment_depth_rows<C::VC>(shared_base() + C::V_AT, lane));
  }
  write_rows<C>(p, t, o, rows, row, col0, lane);
}

} // namespace fa

#endif
