/* FlashAttention-2 forward (Dao 2023, algorithm 1) for sm_80: one block per BM query rows of one head.
 *
 *   Q stays in shared memory; K and V tiles pass through one buffer each. V of a block is fetched while
 *   S = Q K^T is computed, the next K while O += P V is. Each warp owns 32 rows (16 if the head dim is
 * large), so the softmax needs only quad shuffles, and P goes from accumulators to A fragments without
 * leaving the registers.
 *
 * Dropout strikes P after the sums were taken from it; 1/(1-p) comes in with the normalisation. Columns from
 * p.head_dim (of V and O: p.head_dim_v) to the tile's D are zeros in shared memory and nowhere else.
 *
 * The bias of a block is fetched with its V, and read as the accumulators of S lie.
 *
 * Key blocks run from the last visible one down: the ragged or diagonal blocks, which need masks, come
 * first. O leaves through shared memory (in Q's place) as 16-byte rows. */
#ifndef FA_GPU_KERNELS_FLASH_FORWARD_CUH
#define FA_GPU_KERNELS_FLASH_FORWARD_CUH

#include "gpu/kernels/dropout.cuh"
#include "gpu/kernels/dropout_linear.cuh"
#include "gpu/kernels/flash_bias.cuh"
#include "gpu/kernels/flash_kind.cuh"
#include "gpu/kernels/mask.cuh"
#include "gpu/kernels/softmax.cuh"
#include "gpu/kernels/tile.cuh"

namespace fa {

/* T: f16 or bf16. D: of the tiles, head_dim up to a multiple of 32. The tiles fit into 99 KiB, the registers
 * into 255: where a warp's 32 rows would need more, it has 16, and what costs registers takes fewer keys at a
 * time. */
template <class T_, int D_, flash_kind KIND_> struct flash_forward_config : flash_kind_traits<KIND_> {
  typedef T_ T;
  static constexpr flash_kind KIND = KIND_;
  static constexpr int D = D_;
  /* 16-row tiles of a warp */
  static constexpr int M_TILES = D < (KIND == general || KIND == mixed ? 96 : 160) && KIND != alibi ? 2 : 1;
  static constexpr int WARPS = M_TILES == 1 && D <= 192 ? 8 : 4, THREADS = 32 * WARPS;
  static constexpr int BM = 16 * M_TILES * WARPS;
  static constexpr bool ROOM = KIND == plain || (M_TILES == 1 && D <= 224);
  static constexpr int BN = (D <= 64 ? 128 : 64) / (ROOM ? 1 : 2);
  static constexpr int Q_BYTES = BM * D * 2, KV_BYTES = BN * D * 2;
  static constexpr int BIAS_AT = Q_BYTES + 2 * KV_BYTES,
                       BIAS_BYTES = KIND == biased || KIND == mixed ? BM * BN * 2 : 0;
  static constexpr int SHARED_BYTES = BIAS_AT + BIAS_BYTES;
  static_assert(SHARED_BYTES <= 99 * 1024, "devices of compute capability 8.6 have no more");
  static_assert(BN % 32 == 0, "dropout decides on 32 keys at once");
};

/* What a block works on. Cheap to read again, so that it need not sit in registers through the main loop. */
struct block_task {
  sequence seq;
  int row0, n_rows; /* of the entry; n_rows <= 0: nothing to do */
};

template <class C> FA_DEVICE block_task load_task(const fa_flash_params &p, int batch) {
  block_task t;
  t.seq = load_sequence(p, batch);
  t.row0 = static_cast<int>(blockIdx.x) * C::BM;
  t.n_rows = min_int(C::BM, t.seq.len_q - t.row0);
  return t;
}

/* Aligned rows, or so they are this time. */
template <class C> FA_DEVICE bool rows_are_aligned(const fa_flash_params &p) {
  return C::ALIGNED || p.aligned;
}
template <class C> FA_DEVICE void store_chunk(const fa_flash_params &p, uint16_t *to, vec4 v) {
  if (rows_are_aligned<C>(p))
    store_chunk<true>(to, v);
  else
    store_chunk<false>(to, v);
}
template <class C> FA_DEVICE bool scores_are_modified(const fa_flash_params &p) {
  return C::GENERAL ? p.softcap > 0.0f || p.alibi_slopes : C::ALIBI || C::SOFTCAP || C::BIAS;
}

/* Where the first row of this block goes. */
FA_DEVICE uint16_t *first_o_row(const fa_flash_params &p, int row) {
  return p.o + blockIdx.z * p.o_stride.batch + blockIdx.y * p.o_stride.head + row * p.o_stride.row;
}
FA_DEVICE float *first_lse(const fa_flash_params &p, int row) {
  return p.lse + blockIdx.z * p.lse_stride.batch + blockIdx.y * p.lse_stride.head + row * p.lse_stride.row;
}

/* Rows of this block that see no key at all: O = 0, and LSE by convention. */
template <class C>
FA_DEVICE void write_empty(const fa_flash_params &p, int first_row, int n_rows, int thread) {
  constexpr int CHUNKS = C::D / 8;
  uint16_t *o = first_o_row(p, first_row);
  float *lse = first_lse(p, first_row);
  for (int i = thread; i < n_rows * CHUNKS; i += C::THREADS)
    if (i % CHUNKS < p.head_dim_v / 8)
      store_chunk<C>(p, o + i / CHUNKS * p.o_stride.row + i % CHUNKS * 8, vec4{0, 0, 0, 0});
  for (int row = thread; row < n_rows; row += C::THREADS)
    store_global(lse + row * p.lse_stride.row, p.empty_lse);
}

/* Q becomes sign * Q, sign -1 or 0: a negative scale turns the order of the scores round, and the running
 * maximum wants it positive. Each thread changes the chunks that it copied itself. */
template <class C> FA_DEVICE void multiply_q(uint32_t q_tile, float sign) {
  typedef tile_copy<C::D, C::THREADS> copy;
  const uint32_t keep = sign == 0.0f ? 0 : 0xffffffffu, flip = sign == 0.0f ? 0 : 0x80008000u;
  const uint32_t first = q_tile + copy::in_tile(static_cast<int>(threadIdx.x));
  cp_async_wait<0>();
  FA_NO_UNROLL
  for (int i = 0; i < C::BM / copy::ROWS_AT_ONCE * copy::PARTS; ++i) {
    const uint32_t at =
        first + i / copy::PARTS * (copy::ROWS_AT_ONCE * C::D * 2) + i % copy::PARTS * copy::PART_BYTES;
    const vec4 v = load_shared16(at);
    store_shared16(at,
                   vec4{(v.x & keep) ^ flip, (v.y & keep) ^ flip, (v.z & keep) ^ flip, (v.w & keep) ^ flip});
  }
}

/* ---- the debug copy of P ---- */

FA_DEVICE uint16_t *p_debug_row(const fa_flash_params &p, int row) {
  const int64_t head = static_cast<int64_t>(blockIdx.z) * p.heads_q + blockIdx.y;
  return p.p_debug + (head * p.p_rows + row) * p.p_keys;
}

/* Two neighbouring weights; a set sign says dropped. What is hidden stays as clear_p_debug left it. */
FA_DEVICE void store_p_debug(const fa_flash_params &p, const sequence &seq, int row, int key, uint32_t pair,
                             uint32_t kept) {
  if (row >= seq.len_q) return;
  const row_limits limits = limits_of_row(p, seq, row);
  const uint32_t signs = pair | (~kept & 0x80008000u);
  uint16_t *to = p_debug_row(p, row) + key;
  if (key >= limits.lo && key < limits.hi) store_global(to, static_cast<uint16_t>(signs));
  if (key + 1 >= limits.lo && key + 1 < limits.hi) store_global(to + 1, static_cast<uint16_t>(signs >> 16));
}

/* Zeros for the rows of this block, and for those past the last block. */
template <class C> FA_DEVICE void clear_p_debug(const fa_flash_params &p, int thread) {
  const int row0 = static_cast<int>(blockIdx.x) * C::BM;
  const int row1 = blockIdx.x + 1 == gridDim.x ? p.p_rows : row0 + C::BM;
  const int64_t n = static_cast<int64_t>(row1 - row0) * p.p_keys / 8;
  vec4 *to = reinterpret_cast<vec4 *>(p_debug_row(p, row0));
  for (int64_t i = thread; i < n; i += C::THREADS) store_global(to + i, vec4{0, 0, 0, 0});
}

/* ---- pieces of the main loop ---- */

/* s = Q K^T for this warp's rows and all keys of the tile. */
template <class C>
FA_DEVICE void scores(float (&s)[C::M_TILES][C::BN / 8][4], uint32_t q_first, uint32_t k_first) {
  FA_UNROLL_2 /* no further: ptxas would fetch ahead until it spills */
  for (int kk = 0; kk < C::D / 16; ++kk) {
    uint32_t a[C::M_TILES][4];
    FA_UNROLL
    for (int m = 0; m < C::M_TILES; ++m) load_a<C::D>(a[m], q_first, m, kk);
    FA_UNROLL
    for (int n = 0; n < C::BN / 16; ++n) {
      uint32_t b[4];
      load_b<C::D>(b, k_first, n, kk);
      FA_UNROLL
      for (int m = 0; m < C::M_TILES; ++m) {
        mma(s[m][2 * n], a[m], b, typename C::T());
        mma(s[m][2 * n + 1], a[m], b + 2, typename C::T());
      }
    }
  }
}

/* Row and key of element 0 of a thread's first score tile, within the block's tile. */
template <class C> FA_DEVICE int score_row(int thread, int m) {
  return 16 * (C::M_TILES * (thread / 32) + m) + thread % 32 / 4;
}
FA_DEVICE int score_col(int thread) {
  return thread % 4 * 2;
}

/* The random bytes for 16 rows and 32 keys; none drops where there is no dropout. */
template <class C>
FA_DEVICE void drop_words(uint32_t (&words)[4], const fa_flash_params &p, dropout_head head, int row,
                          int key) {
  if (!C::GENERAL || p.dropout_limit != 0x00ff00ffu)
    dropout_words(words, p, head, row / 16, key / 32);
  else
    FA_UNROLL
  for (int i = 0; i < 4; ++i) words[i] = 0;
}

/* The number of a thread's first key of one of its rows, for linear dropout. */
template <class C>
FA_DEVICE uint64_t linear_place(const fa_flash_params &p, const sequence &seq, int row0, int key0, int m,
                                int r, int thread) {
  const uint64_t head = linear_head(p, static_cast<int>(blockIdx.z), static_cast<int>(blockIdx.y));
  return linear_row(head, seq, row0 + score_row<C>(thread, m) + 8 * r) +
         static_cast<uint64_t>(key0 + score_col(thread));
}

/* o += P V, P rounded to T. row0, key0: of the tile, in the entry. */
template <class C>
FA_DEVICE void weighted_values(float (&o)[C::M_TILES][C::D / 8][4],
                               const float (&s)[C::M_TILES][C::BN / 8][4], uint32_t v_first,
                               const fa_flash_params &p, const sequence &seq, int row0, int key0,
                               int thread) {
  uint32_t words[C::M_TILES][4];
  FA_UNROLL
  for (int kk = 0; kk < C::BN / 16; ++kk) {
    uint32_t a[C::M_TILES][4];
    FA_UNROLL
    for (int m = 0; m < C::M_TILES; ++m) {
      if (C::DROPOUT && kk % 2 == 0)
        drop_words<C>(words[m], p,
                      dropout_of(p, static_cast<int>(blockIdx.z), static_cast<int>(blockIdx.y), thread % 32),
                      row0 + score_row<C>(thread, m), key0 + 16 * kk);
      FA_UNROLL
      for (int i = 0; i < 4; ++i) { /* registers 0, 1: keys 0..7, rows l/4 and l/4 + 8; 2, 3: keys 8..15 */
        const float(&x)[4] = s[m][2 * kk + i / 2];
        a[m][i] = pack2(x[i % 2 * 2], x[i % 2 * 2 + 1], typename C::T());
        if (C::LINEAR && p.dropout_linear)
          a[m][i] &= linear_kept_bits(p, linear_place<C>(p, seq, row0, key0, m, i % 2, thread) +
                                             static_cast<uint64_t>(16 * kk + i / 2 * 8));
        if (!C::DROPOUT) continue;
        const uint32_t kept = dropout_kept(p, words[m][kk % 2 * 2 + i / 2], i % 2);
        if (C::GENERAL && p.p_debug)
          store_p_debug(p, seq, row0 + score_row<C>(thread, m) + i % 2 * 8,
                        key0 + score_col(thread) + 16 * kk + i / 2 * 8, a[m][i], kept);
        a[m][i] &= kept;
      }
    }
    FA_UNROLL
    for (int c = 0; c < C::D / 16; ++c) {
      uint32_t b[4];
      load_b_trans<C::D>(b, v_first, kk, c);
      FA_UNROLL
      for (int m = 0; m < C::M_TILES; ++m) {
        mma(o[m][2 * c], a[m], b, typename C::T());
        mma(o[m][2 * c + 1], a[m], b + 2, typename C::T());
      }
    }
  }
}

/* Hides what each row does not see. */
template <class C>
FA_DEVICE void mask_scores(float (&s)[C::M_TILES][C::BN / 8][4], const fa_flash_params &p,
                           const sequence &seq, int row0, int key0, int thread) {
  const int col = key0 + score_col(thread);
  FA_UNROLL
  for (int m = 0; m < C::M_TILES; ++m) {
    FA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const row_limits limits = limits_of_row(p, seq, row0 + score_row<C>(thread, m) + 8 * r);
      const int lo = limits.lo - col, hi = limits.hi - col; /* to compare with constants */
      FA_UNROLL
      for (int n = 0; n < C::BN / 8; ++n) {
        FA_UNROLL
        for (int e = 0; e < 2; ++e)
          if (8 * n + e < lo || 8 * n + e >= hi) s[m][n][2 * r + e] = -infinity();
      }
    }
  }
}

/* s -> scale * s - slope * distance. first: the distance of the thread's first pair from the diagonal; it is
 * exact, as are its sums with constants, so that one conversion does for all pairs. */
template <class C>
FA_DEVICE void add_alibi(float (&s)[C::M_TILES][C::BN / 8][4], float scale, float slope, float first) {
  FA_UNROLL
  for (int m = 0; m < C::M_TILES; ++m) {
    FA_UNROLL
    for (int n = 0; n < C::BN / 8; ++n) {
      FA_UNROLL
      for (int e = 0; e < 4; ++e)
        s[m][n][e] = fmaf(s[m][n][e], scale,
                          -slope * fabsf(first + static_cast<float>(16 * m + e / 2 * 8 - 8 * n - e % 2)));
    }
  }
}

/* s -> softcap * tanh(scale * s / softcap) */
template <class C> FA_DEVICE void cap_scores(float (&s)[C::M_TILES][C::BN / 8][4], float scale, float cap) {
  const float inverse_cap = 1.0f / cap;
  FA_UNROLL
  for (int m = 0; m < C::M_TILES; ++m) {
    FA_UNROLL
    for (int n = 0; n < C::BN / 8; ++n) {
      FA_UNROLL
      for (int e = 0; e < 4; ++e) s[m][n][e] = cap * tanh_approx(multiply(s[m][n][e], scale) * inverse_cap);
    }
  }
}

/* s -> scale * s + bias, the bias out of shared memory. */
template <class C>
FA_DEVICE void add_bias(float (&s)[C::M_TILES][C::BN / 8][4], const fa_flash_params &p, int thread) {
  typename C::T t;
  const uint32_t first =
      first_a<C::BN>(shared_base() + C::BIAS_AT, 16 * C::M_TILES * (thread / 32), thread % 32);
  const bool any = !C::MIXED || p.bias;
  FA_UNROLL
  for (int m = 0; m < C::M_TILES; ++m) {
    FA_UNROLL
    for (int k = 0; k < C::BN / 16; ++k) {
      uint32_t pairs[4] = {0, 0, 0, 0};
      if (any) load_a<C::BN>(pairs, first, m, k);
      FA_UNROLL
      for (int i = 0; i < 4; ++i) { /* as the registers of A: rows l/4, l/4 + 8 of keys 0..7, then of 8..15 */
        float(&x)[4] = s[m][2 * k + i / 2];
        x[i % 2 * 2] = fmaf(x[i % 2 * 2], p.scale, low_half(pairs[i], t));
        x[i % 2 * 2 + 1] = fmaf(x[i % 2 * 2 + 1], p.scale, high_half(pairs[i], t));
      }
    }
  }
}

/* Raw scores to logits: scale, softcap, ALiBi, bias. What a kind never has is left out at compile time, and
 * what general kernels may have is asked once, not for every pair. */
template <class C>
FA_DEVICE void modify_scores(float (&s)[C::M_TILES][C::BN / 8][4], const fa_flash_params &p,
                             const sequence &seq, float slope, int row0, int key0, int thread) {
  if (C::BIAS) add_bias<C>(s, p, thread);
  const bool cap = C::SOFTCAP && (!C::GENERAL || p.softcap > 0.0f);
  if (cap) cap_scores<C>(s, p.scale, p.softcap);
  if (!C::ALIBI || (C::GENERAL && !p.alibi_slopes)) return;
  const int first = row0 + score_row<C>(thread, 0) + seq.len_k - seq.len_q - key0 - score_col(thread);
  add_alibi<C>(s, cap ? 1.0f : p.scale, slope, static_cast<float>(first));
}

FA_DEVICE float alibi_slope(const fa_flash_params &p, int batch, int head) {
  return p.alibi_slopes ? load_global(p.alibi_slopes + batch * p.alibi_batch_stride + head) : 0.0f;
}

/* Normalises, and writes this warp's rows of O and LSE. */
template <class C>
FA_DEVICE void write_output(const fa_flash_params &p, float (&o)[C::M_TILES][C::D / 8][4],
                            const row_state (&rows)[C::M_TILES][2], const block_task &task, int warp,
                            int lane) {
  constexpr int CHUNKS = C::D / 8, WARP_ROWS = 16 * C::M_TILES;
  const float score_scale = scores_are_modified<C>(p) ? 1.0f : p.scale;
  const uint32_t o_tile = shared_base(); /* Q's */
  uint16_t *o_global = first_o_row(p, task.seq.q_row + task.row0);
  float *lse_global = first_lse(p, task.seq.q_row + task.row0);
  FA_UNROLL
  for (int m = 0; m < C::M_TILES; ++m) {
    FA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int row = WARP_ROWS * warp + 16 * m + 8 * r + lane / 4;
      const float sum = quad_sum(rows[m][r].sum);
      const float inverse = sum == 0.0f ? 0.0f : (C::DROPOUT || C::LINEAR ? p.dropout_scale : 1.0f) / sum;
      FA_UNROLL
      for (int n = 0; n < CHUNKS; ++n)
        store_shared4(o_tile + tile_offset<C::D>(row, n) + lane % 4 * 4,
                      pack2(o[m][n][2 * r] * inverse, o[m][n][2 * r + 1] * inverse, typename C::T()));
      if (lane % 4 == 0 && row < task.n_rows)
        store_global(lse_global + row * p.lse_stride.row,
                     sum == 0.0f ? p.empty_lse : rows[m][r].max * score_scale + natural_log(sum));
    }
  }
  sync_warp(); /* the rows are the warp's own */
  FA_NO_UNROLL
  for (int i = lane; i < WARP_ROWS * CHUNKS; i += 32) {
    const int row = WARP_ROWS * warp + i / CHUNKS, chunk = i % CHUNKS;
    const vec4 v = load_shared16(o_tile + tile_offset<C::D>(row, chunk));
    if (row < task.n_rows && chunk < p.head_dim_v / 8)
      store_chunk<C>(p, o_global + row * p.o_stride.row + chunk * 8, v);
  }
}

/* The thread's own first chunk of this block's rows of Q, and of the K and V tiles that begin at key0. */
struct chunk_sources {
  const uint16_t *q, *k, *v;
};

template <class C>
FA_DEVICE chunk_sources first_chunks(const fa_flash_params &p, const block_task &task, int key0, int thread) {
  typedef tile_copy<C::D, C::THREADS> copy;
  const int64_t batch = blockIdx.z, head = blockIdx.y,
                kv_head = blockIdx.y / static_cast<unsigned>(p.heads_per_kv);
  const int64_t row = task.seq.q_row + task.row0, key = task.seq.k_row + key0;
  chunk_sources c;
  c.q = p.q + batch * p.q_stride.batch + head * p.q_stride.head + row * p.q_stride.row +
        copy::in_global(thread, p.q_stride.row);
  c.k = p.k + batch * p.k_stride.batch + kv_head * p.k_stride.head + key * p.k_stride.row +
        copy::in_global(thread, p.k_stride.row);
  c.v = p.v + batch * p.v_stride.batch + kv_head * p.v_stride.head + key * p.v_stride.row +
        copy::in_global(thread, p.v_stride.row);
  return c;
}

template <class C, int ROWS>
FA_DEVICE void load(const fa_flash_params &p, uint32_t tile, const uint16_t *from, int64_t row_stride,
                    int n_rows, int head_dim, int thread) {
  load_tile<ROWS, C>(tile, from, row_stride, n_rows, thread, head_dim, rows_are_aligned<C>(p));
}

/* Scores become exponentials against the new row maxima, and O shrinks to match. */
template <class C>
FA_DEVICE void softmax(float (&s)[C::M_TILES][C::BN / 8][4], float (&o)[C::M_TILES][C::D / 8][4],
                       row_state (&rows)[C::M_TILES][2], float scale_log2) {
  FA_UNROLL
  for (int m = 0; m < C::M_TILES; ++m) {
    FA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const float shrink =
          C::BIAS ? softmax_row_of_logits(s[m], r, rows[m][r]) : softmax_row(s[m], r, scale_log2, rows[m][r]);
      FA_UNROLL
      for (int n = 0; n < C::D / 8; ++n) {
        o[m][n][2 * r] *= shrink;
        o[m][n][2 * r + 1] *= shrink;
      }
    }
  }
}

/* Grid: x over blocks of BM rows of the longest entry, y over query heads, z over batch entries. */
template <class C> FA_DEVICE void flash_forward(const fa_flash_params &p) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int batch = static_cast<int>(blockIdx.z);
  const block_task task = load_task<C>(p, batch);
  const sequence &seq = task.seq;
  const int row0 = task.row0, row1 = task.row0 + task.n_rows;
  if (C::GENERAL && p.p_debug) clear_p_debug<C>(p, thread); /* ordered by the main loop's first barrier */
  if (task.n_rows <= 0) return;
  const block_range blocks = visible_blocks<C::BN>(p, seq, row0, row1);
  if (blocks.begin >= blocks.end) {
    write_empty<C>(p, seq.q_row + row0, task.n_rows, thread);
    return;
  }

  const int first_key0 = blocks.begin * C::BN, last_key0 = (blocks.end - 1) * C::BN;
  const uint32_t q_tile = shared_base(), k_tile = q_tile + C::Q_BYTES, v_tile = k_tile + C::KV_BYTES;
  const uint32_t in_tile = tile_copy<C::D, C::THREADS>::in_tile(thread);
  const uint32_t q_first = first_a<C::D>(q_tile, 16 * C::M_TILES * warp, lane);
  const uint32_t k_first = first_b<C::D>(k_tile, lane), v_first = first_b_trans<C::D>(v_tile, lane);
  const bool score_mod = scores_are_modified<C>(p);
  const float scale_log2 = score_mod ? LOG2E : p.scale_log2;
  const float slope = C::ALIBI ? alibi_slope(p, batch, static_cast<int>(blockIdx.y)) : 0.0f;
  float o[C::M_TILES][C::D / 8][4] = {};
  row_state rows[C::M_TILES][2];

  chunk_sources from = first_chunks<C>(p, task, last_key0, thread);
  load<C, C::BM>(p, q_tile + in_tile, from.q, p.q_stride.row, task.n_rows, p.head_dim, thread);
  load<C, C::BN>(p, k_tile + in_tile, from.k, p.k_stride.row, seq.len_k - last_key0, p.head_dim, thread);
  cp_async_commit();
  if (p.score_sign != 1.0f) multiply_q<C>(q_tile, p.score_sign);

  FA_NO_UNROLL
  for (int key0 = last_key0; key0 >= first_key0; key0 -= C::BN) {
    cp_async_wait<0>();
    sync_block(); /* K is there for all; all are done with the previous V and bias */
    load<C, C::BN>(p, v_tile + in_tile, from.v, p.v_stride.row, seq.len_k - key0, p.head_dim_v, thread);
    if (C::BIAS && (!C::MIXED || p.bias))
      load_bias<C, C::BM, C::BN>(p, q_tile + C::BIAS_AT, batch, static_cast<int>(blockIdx.y), row0,
                                 task.n_rows, key0, opaque(thread));
    cp_async_commit();

    float s[C::M_TILES][C::BN / 8][4] = {};
    scores<C>(s, q_first, k_first);

    cp_async_wait<0>();
    sync_block(); /* V and the bias are there for all; all are done with this K */
    if (key0 > first_key0) {
      from.k -= C::BN * p.k_stride.row;
      from.v -= C::BN * p.v_stride.row;
      load<C, C::BN>(p, k_tile + in_tile, from.k, p.k_stride.row, C::BN, p.head_dim, thread);
      cp_async_commit();
    }

    /* opaque: what the rare branch needs is worked out in it, not kept from before the loop */
    if (score_mod) modify_scores<C>(s, p, seq, slope, row0, key0, opaque(thread));
    if (keys_need_mask(p, seq, opaque(row0), opaque(row1), key0, key0 + C::BN))
      mask_scores<C>(s, p, seq, row0, key0, opaque(thread));
    softmax<C>(s, o, rows, scale_log2);
    weighted_values<C>(o, s, v_first, p, seq, row0, key0, C::DROPOUT || C::LINEAR ? opaque(thread) : 0);
  }

  const int again = opaque(thread);
  write_output<C>(p, o, rows, load_task<C>(p, opaque(batch)), again / 32, again % 32);
}

} // namespace fa

#endif
