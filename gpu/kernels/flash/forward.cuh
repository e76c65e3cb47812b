/* FlashAttention-2 forward (Dao 2023, algorithm 1) for sm_80: a block works on BM query rows of one head.
 *
 * Q stays in shared memory; K and V tiles have one buffer each. V of a key block is loaded while S = Q K^T is
 * computed, the next K while O += P V is. Each warp owns 32 rows (16 for large head dims), so that the
 * softmax needs only quad shuffles, and P goes from accumulators to A fragments without leaving the
 * registers.
 *
 * Dropout zeroes elements of P after the row sums were taken; the factor 1/(1-p) is part of the
 * normalisation. Columns from p.head_dim (of V and O: p.head_dim_v) to the tile's D are zeros in shared
 * memory and exist nowhere else.
 *
 * The bias of a key block is loaded with its V, and read in the layout of S's accumulators.
 *
 * Key blocks run from the last visible one down, so that the blocks that need masks (ragged tail, diagonal)
 * come first. O is stored through shared memory (in the space of Q) as 16-byte rows. */
#ifndef FA_GPU_KERNELS_FLASH_FORWARD_CUH
#define FA_GPU_KERNELS_FLASH_FORWARD_CUH

#include "gpu/kernels/parts/dropout.cuh"
#include "gpu/kernels/parts/dropout_linear.cuh"
#include "gpu/kernels/flash/forward_scores.cuh"
#include "gpu/kernels/flash/forward_store.cuh"

namespace fa {

/* Q becomes sign * Q; sign is -1 or 0. A negative scale would reverse the order of the scores, and the
 * running maximum needs it positive. Each thread changes the chunks that it copied itself. */
template <class C> FA_DEVICE void scale_q(uint32_t q_tile, float sign) {
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

/* The random bytes of 16 rows and 32 keys. Without dropout they are zeros, which keep everything. */
template <class C>
FA_DEVICE void drop_words(uint32_t (&words)[4], const fa_attention_params &p, dropout_head head, int row,
                          int key) {
  if (!C::GENERAL || p.dropout_limit != 0x00ff00ffu)
    dropout_words(words, p, head, row / 16, key / 32);
  else
    FA_UNROLL
  for (int i = 0; i < 4; ++i) words[i] = 0;
}

/* o += P V, P rounded to T. row0, key0: of the tile, in the sequence. */
template <class C>
FA_DEVICE void gemm_pv(float (&o)[C::M_TILES][C::D / 8][4],
                               const float (&s)[C::M_TILES][C::BN / 8][4], uint32_t v_first,
                               const fa_attention_params &p, const sequence &seq, int row0, int key0,
                               int thread) {
  uint32_t words[C::M_TILES][4], linear[C::M_TILES][2] = {};
  if constexpr (C::LINEAR)
    if (p.dropout_linear) {
      FA_UNROLL
      for (int m = 0; m < C::M_TILES; ++m)
        linear_kept_tile<C::BN / 8>(linear[m], p, seq, static_cast<int>(blockIdx.z), static_cast<int>(blockIdx.y),
                                    row0 + score_row<C>(thread, m), key0, thread % 32);
    }
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
          a[m][i] &= linear_kept_halves(linear[m][i % 2], 2 * kk + i / 2);
        if (!C::DROPOUT) continue;
        const uint32_t kept = dropout_kept(p, words[m][kk % 2 * 2 + i / 2], i % 2);
        if (C::GENERAL && p.p_debug)
          store_p_debug<C>(p, seq, row0 + score_row<C>(thread, m) + i % 2 * 8,
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

/* A thread's first chunk of this block's rows of Q, and of the K and V tiles that begin at key0. */
struct chunk_sources {
  const uint16_t *q, *k, *v;
};

template <class C>
FA_DEVICE chunk_sources first_chunks(const fa_attention_params &p, const flash_work_tile &work, int key0, int thread) {
  typedef tile_copy<C::D, C::THREADS> copy;
  const int64_t batch = blockIdx.z, head = blockIdx.y,
                kv_head = blockIdx.y / static_cast<unsigned>(p.heads_per_kv);
  const int64_t row = work.seq.q_row + work.row0, key = work.seq.k_row + key0;
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
FA_DEVICE void load(const fa_attention_params &p, uint32_t tile, const uint16_t *from, int64_t row_stride,
                    int n_rows, int head_dim, int thread) {
  load_tile<ROWS, C>(tile, from, row_stride, n_rows, thread, head_dim, rows_are_aligned<C>(p));
}

/* The online softmax: scores become exponentials relative to the new row maxima, and O is rescaled to
 * match. */
template <class C>
FA_DEVICE void softmax(float (&s)[C::M_TILES][C::BN / 8][4], float (&o)[C::M_TILES][C::D / 8][4],
                       row_state (&rows)[C::M_TILES][2], float scale_log2) {
  FA_UNROLL
  for (int m = 0; m < C::M_TILES; ++m) {
    FA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const float rescale =
          C::BIAS ? softmax_row_of_logits(s[m], r, rows[m][r]) : softmax_row(s[m], r, scale_log2, rows[m][r]);
      FA_UNROLL
      for (int n = 0; n < C::D / 8; ++n) {
        o[m][n][2 * r] *= rescale;
        o[m][n][2 * r + 1] *= rescale;
      }
    }
  }
}

/* Grid: x over blocks of BM rows of the longest sequence, y over query heads, z over the batch. */
template <class C> FA_DEVICE void flash_forward(const fa_attention_params &p) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int batch = static_cast<int>(blockIdx.z);
  const flash_work_tile work = load_flash_work_tile<C>(p, batch);
  const sequence &seq = work.seq;
  const int row0 = work.row0, row1 = work.row0 + work.n_rows;
  if (C::DROPOUT || C::LINEAR) store_dropout_used(p, thread);
  if (C::GENERAL && p.p_debug) clear_p_debug<C>(p, thread); /* ordered by the mainloop's first barrier */
  if (work.n_rows <= 0) return;
  const block_range blocks = visible_blocks<C::BN, C::GENERAL>(p, seq, row0, row1);
  if (blocks.begin >= blocks.end) {
    store_fully_masked<C>(p, work, thread);
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

  chunk_sources from = first_chunks<C>(p, work, last_key0, thread);
  load<C, C::BM>(p, q_tile + in_tile, from.q, p.q_stride.row, work.n_rows, p.head_dim, thread);
  load<C, C::BN>(p, k_tile + in_tile, from.k, p.k_stride.row, seq.len_k - last_key0, p.head_dim, thread);
  cp_async_commit();
  if (p.score_sign != 1.0f) scale_q<C>(q_tile, p.score_sign);

  FA_NO_UNROLL
  for (int key0 = last_key0; key0 >= first_key0; key0 -= C::BN) {
    cp_async_wait<0>();
    sync_block(); /* K has arrived for all; all are done with the previous V and bias */
    load<C, C::BN>(p, v_tile + in_tile, from.v, p.v_stride.row, seq.len_k - key0, p.head_dim_v, thread);
    if (C::BIAS && (!C::MIXED || p.bias))
      load_bias<C, C::BM, C::BN>(p, q_tile + C::BIAS_AT, batch, static_cast<int>(blockIdx.y), row0,
                                 work.n_rows, key0, opaque(thread));
    cp_async_commit();

    float s[C::M_TILES][C::BN / 8][4] = {};
    gemm_qk<C>(s, q_first, k_first);

    cp_async_wait<0>();
    sync_block(); /* V and the bias have arrived for all; all are done with this K */
    if (key0 > first_key0) {
      from.k -= C::BN * p.k_stride.row;
      from.v -= C::BN * p.v_stride.row;
      load<C, C::BN>(p, k_tile + in_tile, from.k, p.k_stride.row, C::BN, p.head_dim, thread);
      cp_async_commit();
    }

    /* opaque: what the rare branch needs is computed inside it, not kept in registers across the loop */
    if (score_mod) modify_scores<C>(s, p, seq, slope, row0, key0, opaque(thread));
    if (keys_need_mask<C::GENERAL>(p, seq, opaque(row0), opaque(row1), key0, key0 + C::BN))
      mask_scores<C>(s, p, seq, row0, key0, opaque(thread));
    if (C::GENERAL && p.mask_bits) mask_scores_by_bits<C>(s, p, seq, opaque(batch), row0, key0, opaque(thread));
    softmax<C>(s, o, rows, scale_log2);
    gemm_pv<C>(o, s, v_first, p, seq, row0, key0, C::DROPOUT || C::LINEAR ? opaque(thread) : 0);
  }

  const int again = opaque(thread);
  flash_epilogue<C>(p, o, rows, load_flash_work_tile<C>(p, opaque(batch)), again / 32, again % 32);
}

} // namespace fa

#endif
