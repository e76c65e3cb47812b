/* FlashAttention-2 backward for sm_80, parallel over query blocks (Dao 2023, algorithm 2, with its loops
 * exchanged): a block owns BM rows of one query head and loops over the key blocks that they see.
 *
 *   dQ += dS K stays in registers; dV += P^T dO and dK += dS^T Q go to memory with atomic additions.
 *
 * Q, dO, LSE and delta stay in shared memory; K and V are double-buffered where there is room. The barriers,
 * and what goes through shared memory, are those of gpu/kernels/flash/backward.cuh. */
#ifndef FA_GPU_KERNELS_FLASH_BACKWARD_QUERIES_CUH
#define FA_GPU_KERNELS_FLASH_BACKWARD_QUERIES_CUH

#include "gpu/kernels/flash/backward_copy.cuh"
#include "gpu/kernels/flash/backward_step.cuh"

namespace fa {

/* dV += P^T dO, dK += dS^T Q, dQ += dS K. */
template <class C>
FA_DEVICE void row_gradient_step(const fa_backward_params &p, typename C::dq_tile &dq, int batch,
                                 int head, int key0, int buffer, int thread) {
  const int warp = thread / 32, lane = thread % 32;
  {
    typename C::dkv_tile dv = {};
    gemm_p_do<C>(dv, buffer, warp, lane);
    add_dkv<C>(p, p.dv_accum, dv, batch, head, key0, warp, lane);
  }
  {
    typename C::dkv_tile dk = {};
    gemm_ds_q<C>(dk, buffer, warp, lane);
    add_dkv<C>(p, p.dk_accum, dk, batch, head, key0, warp, lane);
  }
  gemm_ds_k<C>(dq, buffer, warp, lane);
}

/* All work on one row block: prologue, mainloop over key blocks, and the store of dQ. blocks must not be
 * empty. */
template <class C>
FA_DEVICE void row_block(const fa_backward_params &p, const sequence &seq, int batch, int head,
                         int row0, block_range blocks, int thread) {
  const int kv_head = head / p.forward.heads_per_kv;
  fetch_keys<C>(p, seq, batch, kv_head, blocks.begin * C::BN, 0, thread);
  fetch_rows<C>(p, seq, batch, head, row0 / C::BM, 0, thread);

  typename C::dq_tile dq = {};
  int buffer = 0;
  FA_NO_UNROLL
  for (int n = blocks.begin; n < blocks.end; ++n) {
    const bool more = n + 1 < blocks.end;
    cp_async_wait<0>();
    sync_block(); /* K and V have arrived for all; all are done with P, dS and the other buffers */
    if (C::STAGES == 2 && more) {
      fetch_keys<C>(p, seq, batch, kv_head, (n + 1) * C::BN, buffer ^ 1, thread);
      cp_async_commit();
    }
    /* opaque: addresses are computed where they are used instead of being kept in registers across the
     * loop */
    score_step<C>(p, seq, batch, head, row0, n * C::BN, buffer, opaque(thread));
    sync_block(); /* P and dS are in shared memory */
    row_gradient_step<C>(p, dq, batch, head, n * C::BN, buffer, opaque(thread));
    if (C::STAGES == 1 && more) {
      sync_block(); /* all are done with K and V */
      fetch_keys<C>(p, seq, batch, kv_head, (n + 1) * C::BN, 0, thread);
      cp_async_commit();
    }
    buffer ^= C::STAGES - 1;
  }

  thread = opaque(thread);
  const uint32_t q_tile = shared_base() + C::Q_AT;
  sync_block(); /* all are done with Q: dQ reuses its space */
  stage_gradient<C, C::S_WARPS, C::S_COL_WARPS>(dq, p.scale, q_tile, thread / 32, thread % 32);
  sync_block(); /* dQ is in shared memory */
  write_gradient<C, C::BM>(p, p.dq, p.dq_stride, p.forward.head_dim, q_tile, batch, head,
                           static_cast<int64_t>(seq.q_row) + row0, seq.len_q - row0, thread);
}

/* Grid: x over row blocks of the longest sequence or, deterministic, over accumulators; y over query heads, z
 * over the batch. */
template <class C> FA_DEVICE void flash_backward_queries(const fa_backward_params &p) {
  const int thread = static_cast<int>(threadIdx.x);
  const int head = static_cast<int>(blockIdx.y), batch = static_cast<int>(blockIdx.z);
  const sequence seq = load_sequence(p.forward, batch);
  FA_NO_UNROLL
  for (int row0 = static_cast<int>(blockIdx.x) * C::BM; row0 < seq.len_q;
       row0 += static_cast<int>(gridDim.x) * C::BM) {
    const int row1 = min_int(row0 + C::BM, seq.len_q);
    const block_range blocks = visible_blocks<C::BN, C::GENERAL>(p.forward, seq, row0, row1);
    if (blocks.begin >= blocks.end) {
      clear_gradient<C>(p, p.dq, p.dq_stride, p.forward.head_dim, batch, head,
                        static_cast<int64_t>(seq.q_row) + row0, row1 - row0, thread);
      continue;
    }
    row_block<C>(p, seq, batch, head, row0, blocks, thread);
    sync_block(); /* the tiles have been read before the next block's copies start */
  }
}

} // namespace fa

#endif
