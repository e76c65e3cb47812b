/* FlashAttention-2 backward (Dao 2023, algorithm 2) for sm_80, parallel over key blocks: a block owns BN keys
 * of one KV head and loops over the query blocks that see them, for all query heads of the group.
 *
 *   S = Q K^T, dP = dO V^T, P = exp2(S scale_log2 - LSE_log2), dS = P (dP - delta)
 *   dV += P^T dO and dK += dS^T Q stay in registers; dQ += dS K goes to memory with atomic additions.
 *
 * K and V stay in shared memory. Where there is room, Q and dO are double-buffered: the next query block is
 * loaded while this one is computed. P and dS go through shared memory, rounded to 16 bits, because the GEMMs
 * that read them need them transposed and partitioned differently among the warps. There are two barriers per
 * query block: one when Q and dO have arrived and every warp is done with the previous P and dS, one when P
 * and dS are in shared memory.
 *
 * The bias of a pair of tiles is loaded into the space of P, and dS is its gradient. It takes one more
 * barrier: when the bias has arrived.
 *
 * Dropout (Z_ij = 0 or 1/(1-p)): dropped elements of the P of dV become 0, dP becomes Z dP; dV gets its
 * factor 1/(1-p) at the end. Columns from p.forward.head_dim (of V and dO: head_dim_v) to the tile's D are
 * zeros in shared memory and exist nowhere else. */
#ifndef FA_GPU_KERNELS_FLASH_BACKWARD_CUH
#define FA_GPU_KERNELS_FLASH_BACKWARD_CUH

#include "gpu/kernels/flash/backward_bias.cuh"
#include "gpu/kernels/flash/backward_copy.cuh"
#include "gpu/kernels/flash/backward_step.cuh"

namespace fa {

/* Query blocks [begin, end) in which some row sees a key of [key0, key1). */
template <class C>
FA_DEVICE block_range query_blocks(const fa_attention_params &f, const sequence &seq, int key0, int key1) {
  const int shift = seq.shift;
  int lo = 0, hi = seq.len_q;
  if (C::GENERAL && f.chunk > 0) hi = min_int(hi, first_of_chunk(f.chunk, key1 - 1) + f.chunk - shift);
  if (f.window_right >= 0) lo = max_int(0, key0 - shift - f.window_right);
  if (f.window_left >= 0) hi = min_int(hi, key1 - shift + f.window_left);
  block_range r = {lo / C::BM, lo < hi ? (hi + C::BM - 1) / C::BM : 0};
  return r;
}

/* dV += P^T dO, dQ += dS K, dK += dS^T Q. */
template <class C>
FA_DEVICE void gradient_step(const fa_backward_params &p, typename C::dkv_tile &dk,
                             typename C::dkv_tile &dv, int batch, int head, int row0, int buffer,
                             int thread) {
  const int warp = thread / 32, lane = thread % 32;
  gemm_p_do<C>(dv, buffer, warp, lane);
  {
    typename C::dq_tile dq = {};
    gemm_ds_k<C>(dq, buffer, warp, lane);
    add_dq<C>(p, dq, batch, head, row0, warp, lane);
  }
  gemm_ds_q<C>(dk, buffer, warp, lane);
}

/* All work on one key block: prologue, mainloop over query blocks, and the stores of dK and dV. */
template <class C>
FA_DEVICE void key_block(const fa_backward_params &p, const sequence &seq, int batch, int kv_head,
                         int key0, block_range blocks, int thread) {
  const int end = (kv_head + 1) * p.forward.heads_per_kv;
  walk at = {kv_head * p.forward.heads_per_kv, blocks.begin};
  fetch_keys<C>(p, seq, batch, kv_head, key0, 0, thread);
  fetch_rows<C>(p, seq, batch, at.head, at.m, 0, thread);

  typename C::dkv_tile dk = {}, dv = {};
  int buffer = 0;
  FA_NO_UNROLL
  while (at.head < end) {
    cp_async_wait<0>();
    sync_block(); /* Q and dO have arrived for all; all are done with P, dS and the other buffers */
    if (C::BIAS) fetch_bias<C>(p.forward, seq, batch, at.head, at.m * C::BM, key0, opaque(thread));
    if (C::STAGES == 2) { /* opaque: recomputed below instead of being kept in registers; which of the two
                             ptxas needs is found by trial */
      const walk next = next_of(walk{C::DROPOUT ? opaque(at.head) : at.head, opaque(at.m)}, blocks);
      if (next.head < end) fetch_rows<C>(p, seq, batch, next.head, next.m, buffer ^ 1, thread);
      if (C::BIAS && next.head >= end) cp_async_commit(); /* commits a group in either case */
    }
    /* opaque: addresses are computed where they are used instead of being kept in registers across the
     * loop */
    score_step<C>(p, seq, batch, at.head, at.m * C::BM, key0, buffer, opaque(thread));
    sync_block(); /* P and dS are in shared memory */
    if (C::BIAS && p.dbias)
      write_dbias<C>(p, seq, batch, opaque(at.head), opaque(at.m) * C::BM, key0, opaque(thread));
    gradient_step<C>(p, dk, dv, batch, at.head, at.m * C::BM, buffer, opaque(thread));
    at = next_of(at, blocks);
    if (C::STAGES == 1 && at.head < end) {
      sync_block(); /* all are done with Q and dO */
      fetch_rows<C>(p, seq, batch, at.head, at.m, 0, thread);
    }
    buffer ^= C::STAGES - 1;
  }

  thread = opaque(thread);
  const uint32_t k_tile = shared_base() + C::K_AT, v_tile = shared_base() + C::V_AT;
  sync_block(); /* all are done with K and V: dK and dV reuse their space */
  stage_gradient<C, C::KV_WARPS, C::KV_COL_WARPS>(dk, p.scale, k_tile, thread / 32, thread % 32);
  stage_gradient<C, C::KV_WARPS, C::KV_COL_WARPS>(
      dv, C::DROPOUT || C::LINEAR ? p.forward.dropout_scale : 1.0f, v_tile, thread / 32, thread % 32);
  sync_block(); /* dK and dV are in shared memory */
  const int64_t row = static_cast<int64_t>(load_sequence(p.forward, opaque(batch)).k_row) + key0;
  write_gradient<C, C::BN>(p, p.dk, p.dk_stride, p.forward.head_dim, k_tile, batch, kv_head, row,
                           seq.len_k - key0, thread);
  write_gradient<C, C::BN>(p, p.dv, p.dv_stride, p.forward.head_dim_v, v_tile, batch, kv_head, row,
                           seq.len_k - key0, thread);
}

/* Grid: x over key blocks of the longest sequence or, deterministic, over dQ accumulators; y over KV heads, z
 * over the batch. */
template <class C> FA_DEVICE void flash_backward(const fa_backward_params &p) {
  const int thread = static_cast<int>(threadIdx.x);
  const int kv_head = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  const sequence seq = load_sequence(p.forward, batch);
  const int n_blocks = (p.forward.seqlen_k + C::BN - 1) / C::BN;
  FA_NO_UNROLL
  for (int block = static_cast<int>(blockIdx.x); block < n_blocks; block += static_cast<int>(gridDim.x)) {
    clear_masked_keys<C>(p, seq, batch, kv_head, block, thread);
    const int key0 = block * C::BN, key1 = min_int(key0 + C::BN, seq.len_k);
    const block_range blocks = query_blocks<C>(p.forward, seq, key0, key1);
    if (C::BIAS && p.dbias) clear_dbias<C>(p, seq, batch, kv_head, key0, blocks, thread);
    if (key0 >= seq.len_k) continue;
    if (blocks.begin >= blocks.end) {
      clear_keys<C>(p, batch, kv_head,
                    static_cast<int64_t>(load_sequence(p.forward, opaque(batch)).k_row) + key0, key1 - key0,
                    thread);
      continue;
    }
    key_block<C>(p, seq, batch, kv_head, key0, blocks, thread);
    sync_block(); /* the tiles have been read before the next block's copies start */
  }
}

} // namespace fa

#endif
