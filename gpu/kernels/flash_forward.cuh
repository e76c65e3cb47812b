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

/* T: f16 or bf16. ALIGNED: all rows begin on 16 bytes. SCORE_MOD: softcap and ALiBi, which cost registers:
 * half the keys at a time. */
template <class T_, int D_, bool ALIGNED_, bool SCORE_MOD_> struct flash_forward_config {
  typedef T_ T;
  static constexpr int D = D_, WARPS = 4, THREADS = 32 * WARPS;
  static constexpr int BM = 128, BN = (D <= 64 ? 128 : 64) / (SCORE_MOD_ ? 2 : 1);
  static constexpr int M_TILES = BM / (16 * WARPS); /* 16-row tiles of a warp */
  static constexpr bool ALIGNED = ALIGNED_, SCORE_MOD = SCORE_MOD_;
  static constexpr int Q_BYTES = BM * D * 2, KV_BYTES = BN * D * 2;
  static constexpr int SHARED_BYTES = Q_BYTES + 2 * KV_BYTES;
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
    store_chunk<C::ALIGNED>(o + i / CHUNKS * p.o_stride.row + i % CHUNKS * 8, vec4{0, 0, 0, 0});
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
  for (int row = 0; row < C::BM; row += copy::ROWS_AT_ONCE) {
    const vec4 v = load_shared16(first + row * (C::D * 2));
    store_shared16(first + row * (C::D * 2),
                   vec4{(v.x & keep) ^ flip, (v.y & keep) ^ flip, (v.z & keep) ^ flip, (v.w & keep) ^ flip});
  }
}

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

/* o += P V, P rounded to T. */
template <class C>
FA_DEVICE void weighted_values(float (&o)[C::M_TILES][C::D / 8][4],
                               const float (&s)[C::M_TILES][C::BN / 8][4], uint32_t v_first) {
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
      load_b_trans<C::D>(b, v_first, kk, c);
      FA_UNROLL
      for (int m = 0; m < C::M_TILES; ++m) {
        mma(o[m][2 * c], a[m], b, typename C::T());
        mma(o[m][2 * c + 1], a[m], b + 2, typename C::T());
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

/* Raw scores to logits: scale, softcap, ALiBi. */
template <class C>
FA_DEVICE void modify_scores(float (&s)[C::M_TILES][C::BN / 8][4], const fa_flash_params &p,
                             const sequence &seq, float slope, int row0, int key0, int thread) {
  const int diagonal = row0 + score_row<C>(thread, 0) + seq.len_k - seq.len_q - key0 - score_col(thread);
  FA_UNROLL
  for (int m = 0; m < C::M_TILES; ++m) {
    FA_UNROLL
    for (int n = 0; n < C::BN / 8; ++n) {
      FA_UNROLL
      for (int e = 0; e < 4; ++e) {
        float t = s[m][n][e] * p.scale;
        if (p.softcap > 0.0f) t = p.softcap * tanh_approx(t / p.softcap);
        const int distance = diagonal + 16 * m + e / 2 * 8 - (8 * n + e % 2);
        s[m][n][e] = fmaf(-slope, static_cast<float>(distance < 0 ? -distance : distance), t);
      }
    }
  }
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
  const float score_scale = C::SCORE_MOD ? 1.0f : p.scale;
  const uint32_t o_tile = shared_base(); /* Q's */
  uint16_t *o_global = first_o_row(p, task.seq.q_row + task.row0);
  float *lse_global = first_lse(p, task.seq.q_row + task.row0);
  FA_UNROLL
  for (int m = 0; m < C::M_TILES; ++m) {
    FA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int row = WARP_ROWS * warp + 16 * m + 8 * r + lane / 4;
      const float sum = quad_sum(rows[m][r].sum);
      const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
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
  constexpr int ROWS_AT_ONCE = 32 / CHUNKS > 0 ? 32 / CHUNKS : 1;
  const int chunk = lane % CHUNKS;
  FA_NO_UNROLL
  for (int i = lane / CHUNKS; i < WARP_ROWS; i += ROWS_AT_ONCE) {
    const int row = WARP_ROWS * warp + i;
    const vec4 v = load_shared16(o_tile + tile_offset<C::D>(row, chunk));
    if (row < task.n_rows) store_chunk<C::ALIGNED>(o_global + row * p.o_stride.row + chunk * 8, v);
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

/* Scores become exponentials against the new row maxima, and O shrinks to match. */
template <class C>
FA_DEVICE void softmax(float (&s)[C::M_TILES][C::BN / 8][4], float (&o)[C::M_TILES][C::D / 8][4],
                       row_state (&rows)[C::M_TILES][2], float scale_log2) {
  FA_UNROLL
  for (int m = 0; m < C::M_TILES; ++m) {
    FA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const float shrink = softmax_row(s[m], r, scale_log2, rows[m][r]);
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
  const float scale_log2 = C::SCORE_MOD ? 1.44269504088896340736f : p.scale_log2;
  const float slope = C::SCORE_MOD ? alibi_slope(p, batch, static_cast<int>(blockIdx.y)) : 0.0f;
  float o[C::M_TILES][C::D / 8][4] = {};
  row_state rows[C::M_TILES][2];

  chunk_sources from = first_chunks<C>(p, task, last_key0, thread);
  load_tile<C::BM, C>(q_tile + in_tile, from.q, p.q_stride.row, task.n_rows, thread);
  load_tile<C::BN, C>(k_tile + in_tile, from.k, p.k_stride.row, seq.len_k - last_key0, thread);
  cp_async_commit();
  if (p.score_sign != 1.0f) multiply_q<C>(q_tile, p.score_sign);

  FA_NO_UNROLL
  for (int key0 = last_key0; key0 >= first_key0; key0 -= C::BN) {
    cp_async_wait<0>();
    sync_block(); /* K is there for all; all are done with the previous V */
    load_tile<C::BN, C>(v_tile + in_tile, from.v, p.v_stride.row, seq.len_k - key0, thread);
    cp_async_commit();

    float s[C::M_TILES][C::BN / 8][4] = {};
    scores<C>(s, q_first, k_first);

    cp_async_wait<0>();
    sync_block(); /* V is there for all; all are done with this K */
    if (key0 > first_key0) {
      from.k -= C::BN * p.k_stride.row;
      from.v -= C::BN * p.v_stride.row;
      load_tile<C::BN, C>(k_tile + in_tile, from.k, p.k_stride.row, C::BN, thread);
      cp_async_commit();
    }

    /* opaque: what the rare branch needs is worked out in it, not kept from before the loop */
    if (C::SCORE_MOD) modify_scores<C>(s, p, seq, slope, row0, key0, opaque(thread));
    if (keys_need_mask(p, seq, opaque(row0), opaque(row1), key0, key0 + C::BN))
      mask_scores<C>(s, p, seq, row0, key0, opaque(thread));
    softmax<C>(s, o, rows, scale_log2);
    weighted_values<C>(o, s, v_first);
  }

  const int again = opaque(thread);
  write_output<C>(p, o, rows, load_task<C>(p, opaque(batch)), again / 32, again % 32);
}

} // namespace fa

#endif
