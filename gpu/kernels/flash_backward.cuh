/* FlashAttention-2 backward (Dao 2023, algorithm 2) for sm_80, parallel over key blocks: a block owns BN keys
 * of one KV head and walks the query blocks that see them, of all query heads of the group.
 *
 *   S = Q K^T, dP = dO V^T, P = exp2(S scale_log2 - LSE_log2), dS = P (dP - delta)
 *   dV += P^T dO, dK += dS^T Q stay in registers; dQ += dS K leaves by atomic additions.
 *
 * K and V stay in shared memory. Q and dO have two buffers each: the next query block is fetched while this
 * one is worked on. P and dS go through shared memory, rounded to 16 bits, since their second products want
 * them transposed and cut differently. Two barriers per query block: one when Q and dO have come and all are
 * done with the previous P and dS, one when P and dS stand. */
#ifndef FA_GPU_KERNELS_FLASH_BACKWARD_CUH
#define FA_GPU_KERNELS_FLASH_BACKWARD_CUH

#include "gpu/kernels/flash_backward_rows.cuh"
#include "gpu/kernels/tile.cuh"

namespace fa {

/* The warps stand in a grid over each product, every warp with two 16-row tiles: over S and dP [BM x BN] and
 * dQ [BM x D] with BM / 32 warps down, over dK and dV [BN x D] with BN / 32. */
template <class T_, int D_, bool ALIGNED_, bool SCORE_MOD_> struct flash_backward_config {
  typedef T_ T;
  static constexpr int D = D_, THREADS = FA_FLASH_BACKWARD_THREADS, WARPS = THREADS / 32;
  static constexpr int BM = fa_flash_backward_block_m(D), BN = fa_flash_backward_block_n(D);
  static constexpr bool ALIGNED = ALIGNED_, SCORE_MOD = SCORE_MOD_;
  static constexpr int M_WARPS = BM / 32, N_WARPS = BN / 32;
  static constexpr int S_COLS = BN / (WARPS / M_WARPS);  /* keys of a warp in S */
  static constexpr int DQ_COLS = D / (WARPS / M_WARPS);  /* columns of a warp in dQ */
  static constexpr int DKV_COLS = D / (WARPS / N_WARPS); /* and in dK, dV */
  static constexpr int KV_BYTES = BN * D * 2, Q_BYTES = BM * D * 2, P_BYTES = BM * BN * 2;
  static constexpr int K_AT = 0, V_AT = KV_BYTES, Q_AT = 2 * KV_BYTES, DO_AT = Q_AT + 2 * Q_BYTES;
  static constexpr int P_AT = DO_AT + 2 * Q_BYTES, DS_AT = P_AT + P_BYTES;
  static constexpr int ROWS_BYTES = 2 * BM * 4, ROWS_AT = DS_AT + P_BYTES;
  static constexpr int SHARED_BYTES = ROWS_AT + 2 * ROWS_BYTES;
  static_assert(DQ_COLS % 16 == 0 && DKV_COLS % 16 == 0 && S_COLS % 16 == 0, "B comes in 16 columns");
  typedef float score_tile[2][S_COLS / 8][4];
  typedef float dq_tile[2][DQ_COLS / 8][4];
  typedef float dkv_tile[2][DKV_COLS / 8][4];
};

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

/* ---- products ---- */

/* s += A B^T over D columns: rows of A and of B are rows of tiles [x D]. */
template <class C> FA_DEVICE void scores(typename C::score_tile &s, uint32_t a_first, uint32_t b_first) {
  FA_UNROLL_2
  for (int kk = 0; kk < C::D / 16; ++kk) {
    uint32_t a[2][4];
    FA_UNROLL
    for (int m = 0; m < 2; ++m) load_a<C::D>(a[m], a_first, m, kk);
    FA_UNROLL
    for (int n = 0; n < C::S_COLS / 16; ++n) {
      uint32_t b[4];
      load_b<C::D>(b, b_first, n, kk);
      FA_UNROLL
      for (int m = 0; m < 2; ++m) {
        mma(s[m][2 * n], a[m], b, typename C::T());
        mma(s[m][2 * n + 1], a[m], b + 2, typename C::T());
      }
    }
  }
}

/* x += A B, A a tile [x BN] or (A_TRANS) its transpose, B a tile [DEPTH x D]. */
template <class C, int DEPTH, bool A_TRANS, int N8>
FA_DEVICE void accumulate(float (&x)[2][N8][4], uint32_t a_first, uint32_t b_first) {
  FA_UNROLL_2
  for (int kk = 0; kk < DEPTH / 16; ++kk) {
    uint32_t a[2][4];
    FA_UNROLL
    for (int m = 0; m < 2; ++m) {
      if (A_TRANS)
        load_a_trans<C::BN>(a[m], a_first, m, kk);
      else
        load_a<C::BN>(a[m], a_first, m, kk);
    }
    FA_UNROLL
    for (int n = 0; n < N8 / 2; ++n) {
      uint32_t b[4];
      load_b_trans<C::D>(b, b_first, kk, n);
      FA_UNROLL
      for (int m = 0; m < 2; ++m) {
        mma(x[m][2 * n], a[m], b, typename C::T());
        mma(x[m][2 * n + 1], a[m], b + 2, typename C::T());
      }
    }
  }
}

/* ---- P and dS ---- */

/* Where a warp's part of the score tile begins. */
template <class C> FA_DEVICE int score_row(int warp) {
  return 32 * (warp % C::M_WARPS);
}
template <class C> FA_DEVICE int score_col(int warp) {
  return C::S_COLS * (warp / C::M_WARPS);
}

/* What a thread needs to know of its four rows. */
struct row_values {
  float lse_log2[2][2], delta[2][2];
};

/* values: shared address of the thread's first row in the tile's LSE; delta follows. */
template <class C> FA_DEVICE row_values load_rows(uint32_t values) {
  row_values v;
  FA_UNROLL
  for (int m = 0; m < 2; ++m) {
    FA_UNROLL
    for (int r = 0; r < 2; ++r) {
      v.lse_log2[m][r] = as_float(load_shared4(values + (16 * m + 8 * r) * 4));
      v.delta[m][r] = as_float(load_shared4(values + (C::BM + 16 * m + 8 * r) * 4));
    }
  }
  return v;
}

/* Logit of a raw score in units of log2, and the factor by which the raw score's gradient shrinks. */
FA_DEVICE float modified_score(const fa_flash_backward_params &p, float s, float slope, int distance,
                               float &shrink) {
  float t = s * p.scale;
  shrink = 1.0f;
  if (p.forward.softcap > 0.0f) {
    const float th = tanh_approx(t / p.forward.softcap);
    t = p.forward.softcap * th;
    shrink = fmaf(-th, th, 1.0f);
  }
  return fmaf(-slope, static_cast<float>(distance < 0 ? -distance : distance), t) * 1.44269504088896340736f;
}

/* From S and dP to P and dS, rounded, in shared memory. row, col: of the thread's first element, in the
 * entry. MASK: some pair of the block is hidden; its P is 0 by definition and not by arithmetic, since the
 * exponential of a hidden score may well overflow. */
template <class C, bool MASK>
FA_DEVICE void score_gradients(typename C::score_tile &s, typename C::score_tile &dp, const row_values &rows,
                               const fa_flash_backward_params &p, const sequence &seq, float slope, int row,
                               int col, uint32_t p_first) {
  typename C::T t;
  FA_UNROLL
  for (int m = 0; m < 2; ++m) {
    FA_UNROLL
    for (int r = 0; r < 2; ++r) {
      row_limits limits = {0, 0};
      if (MASK) limits = limits_of_row(p.forward, seq, row + 16 * m + 8 * r);
      const int lo = limits.lo - col, hi = limits.hi - col; /* to compare with constants */
      const int diagonal = row + 16 * m + 8 * r + seq.len_k - seq.len_q - col;
      FA_UNROLL
      for (int n = 0; n < C::S_COLS / 8; ++n) {
        float weight[2], gradient[2];
        FA_UNROLL
        for (int e = 0; e < 2; ++e) {
          const float x = s[m][n][2 * r + e];
          float shrink = 1.0f, exponent;
          if (C::SCORE_MOD)
            exponent = modified_score(p, x, slope, diagonal - (8 * n + e), shrink) - rows.lse_log2[m][r];
          else
            exponent = fmaf(x, p.scale_log2, -rows.lse_log2[m][r]);
          weight[e] = exp2_approx(exponent);
          if (MASK && (8 * n + e < lo || 8 * n + e >= hi)) weight[e] = 0.0f;
          gradient[e] = weight[e] * (dp[m][n][2 * r + e] - rows.delta[m][r]);
          if (C::SCORE_MOD) gradient[e] *= shrink;
        }
        const uint32_t at = (p_first ^ static_cast<uint32_t>(n << 4)) + (16 * m + 8 * r) * (C::BN * 2);
        store_shared4(at, pack2(weight[0], weight[1], t));
        store_shared4(at + C::P_BYTES, pack2(gradient[0], gradient[1], t));
      }
    }
  }
}

/* ---- memory ---- */

/* Starts the copies of Q, dO, LSE and delta of a query block into their buffer. */
template <class C>
FA_DEVICE void fetch_rows(const fa_flash_backward_params &p, const sequence &seq, int batch, int head, int m,
                          int buffer, int thread) {
  typedef tile_copy<C::D, C::THREADS> copy;
  const int row0 = m * C::BM, n_rows = seq.len_q - row0;
  const int64_t row = seq.q_row + row0 + copy::first_row(thread);
  const fa_flash_strides &qs = p.forward.q_stride, &ds = p.do_stride;
  const uint16_t *q =
      p.forward.q + batch * qs.batch + head * qs.head + row * qs.row + copy::chunk(thread) * 8;
  const uint16_t *d_o = p.d_o + batch * ds.batch + head * ds.head + row * ds.row + copy::chunk(thread) * 8;
  const uint32_t tile = shared_base() + buffer * C::Q_BYTES + copy::in_tile(thread);
  load_tile<C::BM, C>(tile + C::Q_AT, q, qs.row, n_rows, thread);
  load_tile<C::BM, C>(tile + C::DO_AT, d_o, ds.row, n_rows, thread);
  /* LSE and delta: the workspace has whole tiles of them */
  const int64_t first = workspace_row<C::BM>(p, batch, head, row0);
  if (thread < C::BM / 2) {
    const int chunk = thread % (C::BM / 4);
    const float *from = (thread < C::BM / 4 ? p.lse_log2 : p.delta) + first + 4 * chunk;
    cp_async16(shared_base() + C::ROWS_AT + buffer * C::ROWS_BYTES + thread * 16, from, true);
  }
  cp_async_commit();
}

template <class C>
FA_DEVICE void fetch_keys(const fa_flash_backward_params &p, const sequence &seq, int batch, int head,
                          int key0, int thread) {
  typedef tile_copy<C::D, C::THREADS> copy;
  const int64_t row = seq.k_row + key0 + copy::first_row(thread);
  const fa_flash_strides &ks = p.forward.k_stride, &vs = p.forward.v_stride;
  const uint16_t *k =
      p.forward.k + batch * ks.batch + head * ks.head + row * ks.row + copy::chunk(thread) * 8;
  const uint16_t *v =
      p.forward.v + batch * vs.batch + head * vs.head + row * vs.row + copy::chunk(thread) * 8;
  const uint32_t tile = shared_base() + copy::in_tile(thread);
  load_tile<C::BN, C>(tile + C::K_AT, k, ks.row, seq.len_k - key0, thread);
  load_tile<C::BN, C>(tile + C::V_AT, v, vs.row, seq.len_k - key0, thread);
}

/* Adds a warp's part of dQ to the accumulator. */
template <class C>
FA_DEVICE void add_dq(const fa_flash_backward_params &p, const typename C::dq_tile &dq, int batch, int head,
                      int row0, int warp, int lane) {
  float *accum = p.dq_accum + (p.deterministic ? blockIdx.x * p.split_stride : 0) +
                 workspace_row<C::BM>(p, batch, head, row0 + 32 * (warp % C::M_WARPS)) * C::D +
                 (C::DQ_COLS / 8 * (warp / C::M_WARPS) * 32 + lane) * 4;
  FA_UNROLL
  for (int m = 0; m < 2; ++m) {
    FA_UNROLL
    for (int n = 0; n < C::DQ_COLS / 8; ++n) atomic_add4(accum + (m * (C::D / 8) + n) * 128, dq[m][n]);
  }
}

/* Writes n_rows rows of dK or dV, factor * x, through the tile in shared memory, which is free by now. */
template <class C>
FA_DEVICE void stage_keys(const typename C::dkv_tile &x, float factor, uint32_t tile, int warp, int lane) {
  const int row = 32 * (warp % C::N_WARPS) + lane / 4, chunk0 = C::DKV_COLS / 8 * (warp / C::N_WARPS);
  const uint32_t first = tile + tile_offset<C::D>(row, chunk0) + lane % 4 * 4;
  FA_UNROLL
  for (int m = 0; m < 2; ++m) {
    FA_UNROLL
    for (int r = 0; r < 2; ++r) {
      FA_UNROLL
      for (int n = 0; n < C::DKV_COLS / 8; ++n)
        store_shared4((first ^ static_cast<uint32_t>(n << 4)) + (16 * m + 8 * r) * (C::D * 2),
                      pack2(x[m][n][2 * r] * factor, x[m][n][2 * r + 1] * factor, typename C::T()));
    }
  }
}
template <class C>
FA_DEVICE void write_keys(uint16_t *to, const fa_flash_strides &stride, uint32_t tile, int batch, int head,
                          int64_t row0, int n_rows, int thread) {
  typedef tile_copy<C::D, C::THREADS> copy;
  const uint32_t from = tile + copy::in_tile(thread);
  to += batch * stride.batch + head * stride.head + row0 * stride.row + copy::in_global(thread, stride.row);
  FA_NO_UNROLL
  for (int row = 0; row + copy::first_row(thread) < min_int(n_rows, C::BN); row += copy::ROWS_AT_ONCE)
    store_chunk<C::ALIGNED>(to + row * stride.row, load_shared16(from + row * (C::D * 2)));
}

/* Zeros for rows [begin, end) of an entry's dK and dV. */
template <class C>
FA_DEVICE void clear_keys(const fa_flash_backward_params &p, int batch, int head, int64_t begin, int64_t end,
                          int thread) {
  constexpr int CHUNKS = C::D / 8, ROWS_AT_ONCE = C::THREADS / CHUNKS;
  const int column = thread % CHUNKS * 8;
  uint16_t *dk = p.dk + batch * p.dk_stride.batch + head * p.dk_stride.head + column;
  uint16_t *dv = p.dv + batch * p.dv_stride.batch + head * p.dv_stride.head + column;
  FA_NO_UNROLL
  for (int64_t row = begin + thread / CHUNKS; row < end; row += ROWS_AT_ONCE) {
    store_chunk<C::ALIGNED>(dk + row * p.dk_stride.row, vec4{0, 0, 0, 0});
    store_chunk<C::ALIGNED>(dv + row * p.dv_stride.row, vec4{0, 0, 0, 0});
  }
}

/* Rows of dK and dV that the entry owns, but whose keys are hidden before or after those that count: blocks
 * share them in the same pieces as the others. */
template <class C>
FA_DEVICE void clear_hidden_keys(const fa_flash_backward_params &p, const sequence &seq, int batch, int head,
                                 int block, int thread) {
  const fa_flash_params &f = p.forward;
  int first = 0, extent = f.seqlen_k;
  if (f.cu_seqlens_k) {
    first = load_global(f.cu_seqlens_k + batch);
    extent = load_global(f.cu_seqlens_k + batch + 1) - first;
  }
  if (extent == seq.len_k) return;
  const int before = seq.k_row - first; /* then come len_k keys, then more hidden ones */
  const int begin = block * C::BN, end = min_int(begin + C::BN, extent - max_int(seq.len_k, 0));
  clear_keys<C>(p, batch, head, first + begin, first + min_int(end, before), thread);
  const int64_t after = static_cast<int64_t>(first) + max_int(seq.len_k, 0);
  clear_keys<C>(p, batch, head, after + max_int(begin, before), after + end, thread);
}

/* ---- the kernel ---- */

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
  const int row = row0 + score_row<C>(warp) + lane / 4, col = key0 + score_col<C>(warp) + lane % 4 * 2;
  const row_values rows =
      load_rows<C>(shared_base() + C::ROWS_AT + buffer * C::ROWS_BYTES + (row - row0) * 4);
  const float slope = C::SCORE_MOD && f.alibi_slopes
                          ? load_global(f.alibi_slopes + batch * f.alibi_batch_stride + head)
                          : 0.0f;
  const uint32_t p_first =
      shared_base() + C::P_AT + tile_offset<C::BN>(row - row0, score_col<C>(warp) / 8) + lane % 4 * 4;
  if (keys_need_mask(f, seq, row0, min_int(row0 + C::BM, seq.len_q), key0, key0 + C::BN))
    score_gradients<C, true>(s, dp, rows, p, seq, slope, row, col, p_first);
  else
    score_gradients<C, false>(s, dp, rows, p, seq, slope, row, col, p_first);
}

/* dV += P^T dO, dQ += dS K, dK += dS^T Q. */
template <class C>
FA_DEVICE void gradient_step(const fa_flash_backward_params &p, typename C::dkv_tile &dk,
                             typename C::dkv_tile &dv, int batch, int head, int row0, uint32_t buffer_at,
                             int thread) {
  const uint32_t base = shared_base();
  const int warp = thread / 32, lane = thread % 32;
  const uint32_t p_trans = first_a_trans<C::BN>(base + C::P_AT, 4 * (warp % C::N_WARPS), lane);
  const uint32_t do_trans =
      first_b_trans<C::D>(base + C::DO_AT + buffer_at, lane, C::DKV_COLS / 8 * (warp / C::N_WARPS));
  accumulate<C, C::BM, true>(dv, p_trans, do_trans);
  {
    const uint32_t ds_first = first_a<C::BN>(base + C::DS_AT, 32 * (warp % C::M_WARPS), lane);
    const uint32_t k_trans = first_b_trans<C::D>(base + C::K_AT, lane, C::DQ_COLS / 8 * (warp / C::M_WARPS));
    typename C::dq_tile dq = {};
    accumulate<C, C::BN, false>(dq, ds_first, k_trans);
    add_dq<C>(p, dq, batch, head, row0, warp, lane);
  }
  accumulate<C, C::BM, true>(dk, p_trans + C::P_BYTES, do_trans - (C::DO_AT - C::Q_AT));
}

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
    cp_async_wait<0>();
    sync_block(); /* Q and dO are there for all; all are done with P, dS and the other buffers */
    if (next_head < (kv_head + 1) * group)
      fetch_rows<C>(p, seq, batch, next_head, next_m, buffer ^ 1, thread);
    /* opaque: addresses are worked out where they are used, not held in registers over the loop */
    score_step<C>(p, seq, batch, head, m * C::BM, key0, buffer, opaque(thread));
    sync_block(); /* P and dS stand */
    gradient_step<C>(p, dk, dv, batch, head, m * C::BM, buffer * C::Q_BYTES, opaque(thread));
    head = next_head;
    m = next_m;
    buffer ^= 1;
  }

  const uint32_t base = shared_base();
  const int warp = thread / 32, lane = thread % 32;
  sync_block(); /* all are done with K and V */
  stage_keys<C>(dk, p.scale, base + C::K_AT, warp, lane);
  stage_keys<C>(dv, 1.0f, base + C::V_AT, warp, lane);
  sync_block();
  const int64_t row = static_cast<int64_t>(seq.k_row) + key0;
  write_keys<C>(p.dk, p.dk_stride, base + C::K_AT, batch, kv_head, row, seq.len_k - key0, thread);
  write_keys<C>(p.dv, p.dv_stride, base + C::V_AT, batch, kv_head, row, seq.len_k - key0, thread);
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
      clear_keys<C>(p, batch, kv_head, static_cast<int64_t>(seq.k_row) + key0,
                    static_cast<int64_t>(seq.k_row) + key1, thread);
      continue;
    }
    key_block<C>(p, seq, batch, kv_head, key0, blocks, thread);
    sync_block(); /* the tiles are read before the next block's copies come */
  }
}

} // namespace fa

#endif
