/* FlashAttention-2 forward (Dao 2023, algorithm 1) for sm_80: one block per 16*2*WARPS query rows of one
 * head.
 *
 *   Q stays in shared memory; K and V tiles pass through one buffer each. V of a block is fetched while
 *   S = Q K^T is computed, the next K while O += P V is. Each warp owns 32 rows, so the softmax needs only
 *   quad shuffles, and P goes from accumulators to A fragments without leaving the registers.
 *
 * Key blocks run from the last visible one down: the ragged or diagonal blocks, which need masks, come
 * first. O leaves through shared memory (in Q's place) as 16-byte rows. */
#ifndef FA_GPU_KERNELS_FLASH_FORWARD_CUH
#define FA_GPU_KERNELS_FLASH_FORWARD_CUH

#include "gpu/kernels/mask.cuh"
#include "gpu/kernels/softmax.cuh"
#include "gpu/kernels/tile.cuh"

namespace fa {

/* T: f16 or bf16. ALIGNED: all rows begin on 16 bytes. SCORE_MOD: softcap and ALiBi. */
template <class T_, int D_, bool ALIGNED_, bool SCORE_MOD_> struct flash_forward_config {
  typedef T_ T;
  static constexpr int D = D_, WARPS = 4, THREADS = 32 * WARPS;
  static constexpr int BM = 128, BN = D <= 64 ? 128 : 64;
  static constexpr int M_TILES = BM / (16 * WARPS); /* 16-row tiles of a warp */
  static constexpr bool ALIGNED = ALIGNED_, SCORE_MOD = SCORE_MOD_;
  static constexpr int Q_BYTES = BM * D * 2, KV_BYTES = BN * D * 2;
  static constexpr int SHARED_BYTES = Q_BYTES + 2 * KV_BYTES;
};

/* Rows of this block that see no key at all: O = 0, and LSE by convention. */
template <class C>
FA_DEVICE void write_empty(const fa_flash_params &p, uint16_t *o, float *lse, int n_rows, int thread) {
  constexpr int CHUNKS = C::D / 8;
  for (int i = thread; i < n_rows * CHUNKS; i += C::THREADS)
    store_chunk<C::ALIGNED>(o + i / CHUNKS * p.o_stride.row + i % CHUNKS * 8, vec4{0, 0, 0, 0});
  for (int row = thread; row < n_rows; row += C::THREADS)
    store_global(lse + row * p.lse_stride.row, p.empty_lse);
}

/* s = Q K^T for this warp's rows and all keys of the tile. */
template <class C>
FA_DEVICE void scores(float (&s)[C::M_TILES][C::BN / 8][4], uint32_t q_tile, uint32_t k_tile, int warp,
                      int lane) {
  FA_UNROLL
  for (int kk = 0; kk < C::D / 16; ++kk) {
    uint32_t a[C::M_TILES][4];
    FA_UNROLL
    for (int m = 0; m < C::M_TILES; ++m) load_a<C::D>(a[m], q_tile, 16 * (C::M_TILES * warp + m), kk, lane);
    FA_UNROLL
    for (int n = 0; n < C::BN / 16; ++n) {
      uint32_t b[4];
      load_b<C::D>(b, k_tile, 16 * n, kk, lane);
      FA_UNROLL
      for (int m = 0; m < C::M_TILES; ++m) {
        mma(s[m][2 * n], a[m], b, typename C::T());
        mma(s[m][2 * n + 1], a[m], b + 2, typename C::T());
      }
    }
  }
}

/* o += P V, P rounded to T. */
template <class C>
FA_DEVICE void weighted_values(float (&o)[C::M_TILES][C::D / 8][4],
                               const float (&s)[C::M_TILES][C::BN / 8][4], uint32_t v_tile, int lane) {
  FA_UNROLL
  for (int kk = 0; kk < C::BN / 16; ++kk) {
    uint32_t a[C::M_TILES][4];
    FA_UNROLL
    for (int m = 0; m < C::M_TILES; ++m) FA_UNROLL
    for (int i = 0; i < 4; ++i) /* registers 0, 1: keys 0..7, rows l/4 and l/4 + 8; 2, 3: keys 8..15 */
      a[m][i] = pack2(s[m][2 * kk + i / 2][i % 2 * 2], s[m][2 * kk + i / 2][i % 2 * 2 + 1], typename C::T());
    FA_UNROLL
    for (int c = 0; c < C::D / 16; ++c) {
      uint32_t b[4];
      load_b_trans<C::D>(b, v_tile, kk, c, lane);
      FA_UNROLL
      for (int m = 0; m < C::M_TILES; ++m) {
        mma(o[m][2 * c], a[m], b, typename C::T());
        mma(o[m][2 * c + 1], a[m], b + 2, typename C::T());
      }
    }
  }
}

/* Hides what the row does not see. row: of element 0; col: of element 0 of the first tile. */
template <int N_TILES>
FA_DEVICE void mask_scores(float (&s)[N_TILES][4], const fa_flash_params &p, const sequence &seq, int row,
                           int col) {
  FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const row_limits limits = limits_of_row(p, seq, row + 8 * r);
    FA_UNROLL
    for (int n = 0; n < N_TILES; ++n) FA_UNROLL
    for (int e = 0; e < 2; ++e) {
      const int j = col + 8 * n + e;
      if (j < limits.lo || j >= limits.hi) s[n][2 * r + e] = -infinity();
    }
  }
}

/* Raw scores to logits: scale, softcap, ALiBi. */
template <int N_TILES>
FA_DEVICE void modify_scores(float (&s)[N_TILES][4], const fa_flash_params &p, const sequence &seq,
                             float slope, int row, int col) {
  FA_UNROLL
  for (int n = 0; n < N_TILES; ++n) FA_UNROLL
  for (int e = 0; e < 4; ++e) {
    float t = s[n][e] * p.scale;
    if (p.softcap > 0.0f) t = p.softcap * tanh_approx(t / p.softcap);
    const int distance = row + e / 2 * 8 + seq.len_k - seq.len_q - (col + 8 * n + e % 2);
    s[n][e] = fmaf(-slope, static_cast<float>(distance < 0 ? -distance : distance), t);
  }
}

/* Normalises, and writes this warp's rows of O and LSE; rows from n_rows on do not exist. */
template <class C>
FA_DEVICE void write_output(const fa_flash_params &p, float (&o)[C::M_TILES][C::D / 8][4],
                            float (&row_max)[C::M_TILES][2], float (&row_sum)[C::M_TILES][2], uint32_t o_tile,
                            uint16_t *o_global, float *lse_global, int n_rows, int warp, int lane) {
  constexpr int CHUNKS = C::D / 8, WARP_ROWS = 16 * C::M_TILES;
  const float score_scale = C::SCORE_MOD ? 1.0f : p.scale;
  FA_UNROLL
  for (int m = 0; m < C::M_TILES; ++m) {
    FA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int row = WARP_ROWS * warp + 16 * m + 8 * r + lane / 4;
      const float sum = quad_sum(row_sum[m][r]);
      const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
      FA_UNROLL
      for (int n = 0; n < CHUNKS; ++n)
        store_shared4(o_tile + tile_offset<C::D>(row, n) + lane % 4 * 4,
                      pack2(o[m][n][2 * r] * inverse, o[m][n][2 * r + 1] * inverse, typename C::T()));
      if (lane % 4 == 0 && row < n_rows)
        store_global(lse_global + row * p.lse_stride.row,
                     sum == 0.0f ? p.empty_lse : row_max[m][r] * score_scale + natural_log(sum));
    }
  }
  sync_warp(); /* the rows are the warp's own */
  FA_UNROLL
  for (int i = lane; i < WARP_ROWS * CHUNKS; i += 32) {
    const int row = WARP_ROWS * warp + i / CHUNKS, chunk = i % CHUNKS;
    const vec4 v = load_shared16(o_tile + tile_offset<C::D>(row, chunk));
    if (row < n_rows) store_chunk<C::ALIGNED>(o_global + row * p.o_stride.row + chunk * 8, v);
  }
}

/* Grid: x over blocks of BM rows of the longest entry, y over query heads, z over batch entries. */
template <class C> FA_DEVICE void flash_forward(const fa_flash_params &p) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int head = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  const sequence seq = load_sequence(p, batch);
  const int row0 = static_cast<int>(blockIdx.x) * C::BM;
  if (row0 >= seq.len_q) return;
  const int n_rows = min_int(C::BM, seq.len_q - row0);

  const int64_t first_row = seq.q_row + row0;
  uint16_t *o_global = p.o + batch * p.o_stride.batch + head * p.o_stride.head + first_row * p.o_stride.row;
  float *lse_global =
      p.lse + batch * p.lse_stride.batch + head * p.lse_stride.head + first_row * p.lse_stride.row;
  const block_range blocks = visible_blocks<C::BN>(p, seq, row0, row0 + n_rows);
  if (blocks.begin >= blocks.end) {
    write_empty<C>(p, o_global, lse_global, n_rows, thread);
    return;
  }

  const int kv_head = head / p.heads_per_kv;
  const uint16_t *q = p.q + batch * p.q_stride.batch + head * p.q_stride.head + first_row * p.q_stride.row;
  const uint16_t *k = p.k + batch * p.k_stride.batch + kv_head * p.k_stride.head + seq.k_row * p.k_stride.row;
  const uint16_t *v = p.v + batch * p.v_stride.batch + kv_head * p.v_stride.head + seq.k_row * p.v_stride.row;
  const uint32_t q_tile = shared_base(), k_tile = q_tile + C::Q_BYTES, v_tile = k_tile + C::KV_BYTES;
  const float scale_log2 = C::SCORE_MOD ? 1.44269504088896340736f : p.scale_log2;
  const float slope = C::SCORE_MOD && p.alibi_slopes
                          ? load_global(p.alibi_slopes + batch * p.alibi_batch_stride + head)
                          : 0.0f;

  float o[C::M_TILES][C::D / 8][4] = {};
  float row_max[C::M_TILES][2], row_sum[C::M_TILES][2];
  FA_UNROLL
  for (int m = 0; m < C::M_TILES; ++m) FA_UNROLL
  for (int r = 0; r < 2; ++r) {
    row_max[m][r] = -infinity();
    row_sum[m][r] = 0.0f;
  }

  const int64_t last = static_cast<int64_t>(blocks.end - 1) * C::BN;
  load_tile<C::BM, C::D, C::THREADS, C::ALIGNED>(q_tile, q, p.q_stride.row, n_rows, thread);
  load_tile<C::BN, C::D, C::THREADS, C::ALIGNED>(k_tile, k + last * p.k_stride.row, p.k_stride.row,
                                                 seq.len_k - (blocks.end - 1) * C::BN, thread);
  cp_async_commit();

  FA_NO_UNROLL
  for (int block = blocks.end - 1; block >= blocks.begin; --block) {
    const int key0 = block * C::BN;
    cp_async_wait<0>();
    sync_block(); /* K is there for all; all are done with the previous V */
    load_tile<C::BN, C::D, C::THREADS, C::ALIGNED>(v_tile, v + key0 * p.v_stride.row, p.v_stride.row,
                                                   seq.len_k - key0, thread);
    cp_async_commit();

    float s[C::M_TILES][C::BN / 8][4] = {};
    scores<C>(s, q_tile, k_tile, warp, lane);

    cp_async_wait<0>();
    sync_block(); /* V is there for all; all are done with this K */
    if (block > blocks.begin) {
      load_tile<C::BN, C::D, C::THREADS, C::ALIGNED>(k_tile, k + (key0 - C::BN) * p.k_stride.row,
                                                     p.k_stride.row, C::BN, thread);
      cp_async_commit();
    }

    const bool masked = block_needs_mask<C::BN>(p, seq, row0, row0 + n_rows, block);
    FA_UNROLL
    for (int m = 0; m < C::M_TILES; ++m) {
      const int row = row0 + 16 * (C::M_TILES * warp + m) + lane / 4, col = key0 + lane % 4 * 2;
      if (p.score_sign != 1.0f) FA_UNROLL
      for (int n = 0; n < C::BN / 8; ++n) FA_UNROLL
      for (int e = 0; e < 4; ++e) s[m][n][e] *= p.score_sign;
      if (C::SCORE_MOD) modify_scores(s[m], p, seq, slope, row, col);
      if (masked) mask_scores(s[m], p, seq, row, col);
      FA_UNROLL
      for (int r = 0; r < 2; ++r) {
        const float shrink = softmax_row(s[m], r, scale_log2, row_max[m][r], row_sum[m][r]);
        FA_UNROLL
        for (int n = 0; n < C::D / 8; ++n) {
          o[m][n][2 * r] *= shrink;
          o[m][n][2 * r + 1] *= shrink;
        }
      }
    }
    weighted_values<C>(o, s, v_tile, lane);
  }
  write_output<C>(p, o, row_max, row_sum, q_tile, o_global, lse_global, n_rows, warp, lane);
}

} // namespace fa

#endif
