/* What the two memeff backward kernels (keys, queries) share: P and dS of pairs (row, key), and the loop that
 * accumulates S and dP over chunks of columns. Formulas: docs/reference/semantics.md, "Backward".
 *
 * One kernel owns keys and loops over queries, the other owns queries and loops over keys. In both, tiles of
 * the side that is looped over are B operands, and P and dS go from registers into the next GEMM. */
#ifndef FA_GPU_KERNELS_MEMEFF_BACKWARD_CUH
#define FA_GPU_KERNELS_MEMEFF_BACKWARD_CUH

#include "gpu/kernels/memeff/backward_mods.cuh"
#include "gpu/kernels/memeff/half_tile.cuh"

namespace fa {

/* T: f32, f16 or bf16. MODS: no_mods, or flex_mods for flex calls. BN: rows of a tile of the side that is
 * looped over; VC: columns of a result. HALF: 16-bit MMAs, with P and dS rounded to 16 bits as in the flash
 * family; else f32 GEMMs. */
template <class T_, class MODS_ = no_mods, int BN_ = 64, int VC_ = 64> struct memeff_backward_config {
  typedef T_ T;
  typedef MODS_ MODS;
  static constexpr int BM = 128, BN = BN_, VC = VC_, WARPS = BM / 16, THREADS = 32 * WARPS;
  static constexpr bool HALF = MODS::ANY && !is_f32<T>::value;
  static constexpr int CHUNK = HALF ? 64 : MEMEFF_CHUNK;
  static constexpr int ROW_BYTES = HALF ? half_row<CHUNK>::BYTES : memeff_row<CHUNK>::BYTES;
  static constexpr int A_BYTES = BM * ROW_BYTES, B_BYTES = BN * ROW_BYTES;
  static constexpr int TILE_BYTES = BN * (HALF ? half_row<VC>::BYTES : memeff_row<VC>::BYTES);
  static constexpr int A_AT = 0, B_AT = 2 * A_BYTES, TILE_AT = B_AT + 2 * B_BYTES;
  static constexpr int KEYS_SHARED_BYTES = TILE_AT + 2 * TILE_BYTES;
  static constexpr int QUERIES_SHARED_BYTES = TILE_AT + TILE_BYTES, DBIAS_SHARED_BYTES = TILE_AT;
  static_assert(KEYS_SHARED_BYTES <= 99 * 1024, "devices of compute capability 8.6 have no more");
  static_assert(THREADS == FA_MEMEFF_BACKWARD_THREADS, "what the host launches");
  typedef float score_tile[BN / 8][4];
  typedef float output_tile[VC / 8][4];
};

FA_DEVICE memeff_rows do_rows(const fa_memeff_backward_params &p, const memeff_coord &t) {
  return rows_of(p.d_o, p.do_stride, t.batch, t.head, t.seq.q_row, t.seq.len_q, p.forward.head_dim_v);
}

/* What the pairs of a query row need. */
struct memeff_query {
  row_limits limits; /* empty past the last row */
  float lse, delta;
  int64_t bias_at; /* of key 0 */
  uint64_t number; /* dropout's index of key 0 */
};

FA_DEVICE memeff_query load_query(const fa_memeff_backward_params &p, const memeff_coord &t, int row) {
  const fa_attention_params &f = p.forward;
  if (row >= t.seq.len_q) return memeff_query{{0, 0}, 0.0f, 0.0f, 0, 0};
  memeff_query q;
  q.limits = limits_of_row<true>(f, t.seq, row);
  q.lse = lse_of_p(f, t.head, load_global(f.lse + statistics_of(f, f.lse_stride, t, row)));
  q.delta = load_global(p.delta + statistics_of(f, p.delta_stride, t, row));
  q.bias_at = f.bias ? bias_row(f, t, row) : 0;
  q.number = f.dropout_linear ? linear_row(linear_head(f, t.batch, t.head), t.seq, row) : 0;
  return q;
}

/* The raw score s becomes P Z (1-p), the raw dP becomes dS. */
template <class T>
FA_DEVICE void pair_gradient(float &s, float &dp, const fa_memeff_backward_params &p, const memeff_query &q,
                             int key) {
  const fa_attention_params &f = p.forward;
  const bool visible = key >= q.limits.lo && key < q.limits.hi;
  const float bias = f.bias && visible ? load_element(f.bias, q.bias_at + key, T()) : 0.0f;
  const float t = fmaf(s, p.scale, bias);
  if (!visible || t == -infinity()) {
    s = dp = 0.0f;
    return;
  }
  const float prob = exp2_approx(multiply(t - q.lse, 1.44269504088896340736f));
  bool kept = true;
  if (f.dropout_linear) {
    const uint64_t index = q.number + static_cast<uint64_t>(key);
    uint32_t words[4];
    linear_words<is_f32<T>::value ? 10 : 5>(words, f, index); /* a narrow type's kernels have few registers left */
    kept = linear_kept(f, words, static_cast<uint32_t>(index) & 3);
  }
  dp = prob * ((kept ? dp * f.dropout_scale : 0.0f) - q.delta);
  s = kept ? prob : 0.0f;
}

/* The operands of S and dP: for each the side that is owned (BM rows) and the side that is looped over (BN
 * rows). */
struct memeff_operands {
  memeff_rows s_a, s_b, dp_a, dp_b;
  int n_s, n_dp; /* chunks */
};

template <class C, int ROWS, int COLS>
FA_DEVICE void fetch_rows(uint32_t to, const memeff_rows &from, int row0, int col0, bool aligned, int thread) {
  if constexpr (C::HALF)
    load_half<ROWS, COLS, C::THREADS>(to, from, row0, col0, aligned, thread);
  else
    load_memeff_tile<typename C::T, ROWS, COLS, C::THREADS>(to, from, row0, col0, aligned, thread);
}

template <class C>
FA_DEVICE void fetch_pair(const memeff_rows &a, const memeff_rows &b, int row0, int col0, int chunk, int buffer,
                          bool aligned, int thread) {
  fetch_rows<C, C::BM, C::CHUNK>(shared_base() + C::A_AT + buffer * C::A_BYTES, a, row0, chunk * C::CHUNK,
                                 aligned, thread);
  fetch_rows<C, C::BN, C::CHUNK>(shared_base() + C::B_AT + buffer * C::B_BYTES, b, col0, chunk * C::CHUNK,
                                 aligned, thread);
}

template <class C>
FA_DEVICE void fetch_operands(const memeff_operands &x, int row0, int col0, int chunk, int buffer, bool aligned,
                              int thread) {
  if (chunk < x.n_s)
    fetch_pair<C>(x.s_a, x.s_b, row0, col0, chunk, buffer, aligned, thread);
  else
    fetch_pair<C>(x.dp_a, x.dp_b, row0, col0, chunk - x.n_s, buffer, aligned, thread);
}

template <class C> FA_DEVICE void gemm_buffer(typename C::score_tile &x, int buffer, int thread) {
  const uint32_t a = shared_base() + C::A_AT + buffer * C::A_BYTES,
                 b = shared_base() + C::B_AT + buffer * C::B_BYTES;
  const int row = thread / 32 * 16, lane = thread % 32;
  if constexpr (C::HALF)
    gemm_half<C::CHUNK>(x, first_half_a<C::CHUNK>(a, row, lane), first_half_b<C::CHUNK>(b, lane),
                            typename C::T());
  else
    gemm_chunk<C::CHUNK>(x, memeff_fragment_rows<C::CHUNK>(a, row, lane), memeff_fragment_rows<C::CHUNK>(b, 0, lane));
}

/* The raw S and dP of BM rows by BN, chunk by chunk. On entry the first chunk (and what else the caller
 * loads) is already in flight; on return `buffer` is the free one. works: the result of warp_has_rows. */
template <class C>
FA_DEVICE void gemm_s_dp(typename C::score_tile &s, typename C::score_tile &dp,
                                 const memeff_operands &x, int row0, int col0, int &buffer, bool aligned,
                                 bool works, int thread) {
  FA_NO_UNROLL
  for (int c = 0; c < x.n_s + x.n_dp; ++c) {
    cp_async_wait<0>();
    sync_block(); /* the chunk has arrived for all; all are done with the other buffer */
    if (c + 1 < x.n_s + x.n_dp) fetch_operands<C>(x, row0, col0, c + 1, buffer ^ 1, aligned, thread);
    cp_async_commit();
    if (works && c < x.n_s) gemm_buffer<C>(s, buffer, thread);
    if (works && c >= x.n_s) gemm_buffer<C>(dp, buffer, thread);
    buffer ^= 1;
  }
}

/* Loads a tile of BN rows and VC columns for the GEMMs that follow. */
template <class C>
FA_DEVICE void fetch_tile(int which, const memeff_rows &from, int row0, int col0, bool aligned, int thread) {
  fetch_rows<C, C::BN, C::VC>(shared_base() + C::TILE_AT + which * C::TILE_BYTES, from, row0, col0, aligned,
                              thread);
}

/* x += W B; B is such a tile, W the warp's P or dS. */
template <class C>
FA_DEVICE void gemm_tile(typename C::output_tile &x, const typename C::score_tile &w, int which,
                             int lane) {
  const uint32_t tile = shared_base() + C::TILE_AT + which * C::TILE_BYTES;
  if constexpr (C::HALF)
    gemm_half_rows<C::VC>(x, w, first_half_rows<C::VC>(tile, lane), typename C::T());
  else
    gemm_rows<C::VC>(x, w, memeff_fragment_depth_rows<C::VC>(tile, lane));
}

/* The number of chunks of so many columns. */
template <class C> FA_DEVICE int chunks_of(int n_cols) {
  return C::CHUNK >= FA_NARROW && !may_have(FA_HAS_WIDE) ? 1 : (n_cols + C::CHUNK - 1) / C::CHUNK;
}

/* Stores the warp's 16 rows of a result, times factor. row: the lane's first. */
template <class C>
FA_DEVICE void store_memeff_tile(void *to, int64_t first, int64_t stride, const typename C::output_tile &x,
                          float factor, int row, int n_rows, int col0, int n_cols, int lane) {
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    if (row + 8 * r >= n_rows) continue;
    FA_UNROLL
    for (int n = 0; n < C::VC / 8; ++n) {
      FA_UNROLL
      for (int e = 0; e < 2; ++e) {
        const int col = col0 + 8 * n + lane % 4 * 2 + e;
        if (col < n_cols)
          store_element(to, first + (row + 8 * r) * stride + col, x[n][2 * r + e] * factor, typename C::T());
      }
    }
  }
}

} // namespace fa

#endif
