/* The main backward kernel for sm_90a, parallel over key blocks. It does what the kernel by keys of
 * gpu/kernels/flash/backward.cuh does, and runs between the same kernels (prepare, convert).
 *
 * A block owns 128 keys of one KV head, 64 for each of two consumer warpgroups, and loops over the query
 * blocks that see them, for all query heads of the group. Scores are computed transposed, so that P^T and
 * dS^T become operands of dV and dK without leaving the registers:
 *
 *   S^T = K Q^T, dP^T = V dO^T, P = exp2(S scale_log2 - LSE_log2), dS = P (dP - delta)
 *   dV += P^T dO, dK += dS^T Q from registers
 *   dQ = dS K needs dS of both warpgroups, through shared memory; it is added to what is in memory: dq.cuh.
 *
 * In the producer warpgroup one thread issues bulk copies, one warp loads LSE and delta, and two add dQ to
 * memory or work out dropout, in which with LOADER_DROPS the one of LSE takes part, or with LOADS_ALONE the first warp loads
 * those, too, and three work out dropout. Who adds dQ also keeps the
 * order of blocks in deterministic calls; where the consumers add it, that is the warp of LSE and delta.
 *
 * Shared memory, in panels of 64 columns (128 bytes, 128-byte swizzle): K, V, two stages each of Q, dO and dS
 * (rows are keys), with a bias two of that (bias.cuh), LSE and delta, dQ on its way to memory. dK and dV are stored through the space of K and V. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_MAIN_CUH
#define FA_GPU_KERNELS_HOPPER_BACKWARD_MAIN_CUH

#include "gpu/kernels/hopper_backward/produce.cuh"
#include "gpu/kernels/hopper_backward/step.cuh"
#include "gpu/kernels/hopper_backward/store.cuh"

namespace fa {

/* All row tiles of one key block: the steps, then the stores of dK and dV. */
template <class C>
FA_DEVICE void hopper_backward_mainloop(const fa_hopper_backward_params &p, pipeline_state<C::STAGES> &pipe,
                                    int key_block, int group, int thread) {
  const fa_attention_params &f = p.b.forward;
  float dk[C::D / 8][4] = {}, dv[C::D / 8][4] = {};
  hopper_kv_fragments<C> kv_frag; /* empty without KV_IN_REGISTERS */
  if constexpr (C::KV_IN_REGISTERS) hopper_load_kv_fragments<C>(kv_frag, group, thread);
  FA_NO_UNROLL
  for (int n = 0; n < f.heads_per_kv; ++n) {
    const int head = hopper_first_head<C>(p.b) + n;
    const auto tiles = hopper_row_tiles<C>(f, hopper_load_key_tile<C>(p.b, opaque(key_block)), head);
    FA_NO_UNROLL
    for (int i = tiles.begin(); i < tiles.end(); ++i) {
      const hopper_row_tile at = {head, C::FLEX ? 0 : i * C::BM, 0}; /* flex: the tile comes with its LSE */
      if (C::DQ_FIRST == C::DQ_SECOND || group == 0)
        hopper_backward_step<C, C::DQ_FIRST>(p.b, dk, dv, pipe, opaque(key_block), at, kv_frag, group,
                                             opaque(thread));
      else
        hopper_backward_step<C, C::DQ_SECOND>(p.b, dk, dv, pipe, opaque(key_block), at, kv_frag, group,
                                              opaque(thread));
      pipe.next();
    }
    if constexpr (C::LAG) {
      if (C::DQ_FIRST == C::DQ_SECOND || group == 0)
        hopper_last_dq<C, C::DQ_FIRST>(p.b, pipe, opaque(key_block), head, group, opaque(thread));
      else
        hopper_last_dq<C, C::DQ_SECOND>(p.b, pipe, opaque(key_block), head, group, opaque(thread));
    }
  }
  named_sync<256>(1);                                                     /* all are done with K */
  hopper_store_gradients<C>(p, dk, dv, key_block, group, opaque(thread)); /* addresses are computed there */
}

template <class C>
FA_DEVICE void hopper_backward_consume(const fa_hopper_backward_params &p, int group, int thread) {
  typedef hopper_backward_all_barriers<C> bar;
  pipeline_state<C::STAGES> pipe;
  FA_NO_UNROLL
  for (hopper_key_blocks<C> keys; keys.is_there(p.b); ++keys.n) {
    mbarrier_wait(bar::keys(), keys.n % 2);
    if constexpr (C::VARLEN) {
      const hopper_key_tile t = hopper_load_key_tile<C>(p.b, keys.block(p.b));
      const int left = t.seq.len_k - t.key0;
      if (left < C::BN)
        hopper_clear_ragged_rows<C, C::KV_PANEL>(shared_base() + C::K_AT, shared_base() + C::V_AT, left,
                                          128 * group + thread);
    }
    hopper_backward_mainloop<C>(p, pipe, keys.block(p.b), group, thread);
    if (thread % 32 == 0) {
      tma_store_commit();
      tma_store_wait_read<0>();
    }
    sync_warp(); /* every lane is done with this key block */
    hopper_release(bar::keys_empty(), thread);
  }
}

/* Writes zeros to dK and dV of the sequence's masked keys (left padding, past seqused_k), by all threads. */
template <class C> FA_DEVICE void hopper_clear_masked(const fa_backward_params &p, int thread) {
  const int batch = static_cast<int>(blockIdx.z), kv_head = static_cast<int>(blockIdx.y);
  const sequence seq = load_sequence(p.forward, batch);
  FA_NO_UNROLL
  for (int block = static_cast<int>(blockIdx.x); block * C::BN < p.forward.seqlen_k;
       block += static_cast<int>(gridDim.x))
    clear_masked_keys<C>(p, seq, batch, kv_head, block, thread);
}

/* Grid: x over key blocks of the longest sequence or, in deterministic flex calls, over dQ accumulators; y
 * over KV heads, z over the batch. */
template <class C>
FA_DEVICE void hopper_backward_of(const fa_hopper_backward_params &p, const hopper_bias_maps &maps) {
  const int thread = static_cast<int>(threadIdx.x), group = thread / 128, warp = thread / 32;
  if (thread == 0) {
    hopper_backward_all_barriers<C>::init();
    if constexpr (C::BIAS) hopper_backward_all_barriers<C>::init_bias(p.b.dbias);
    hopper_backward_init_barriers<C>();
    if constexpr (C::VARLEN) hopper_store_sequence<C>(p.b.forward);
  }
  if constexpr (C::VARLEN) {
    if (p.b.forward.seqused_k || p.b.forward.leftpad_k) hopper_clear_masked<C>(p.b, thread);
  }
  if constexpr (C::BIAS) {
    if (p.b.dbias) hopper_clear_dbias<C>(p.b, thread);
  }
  sync_block();
  if (group == 0) {
    registers_down<C::PRODUCER_REGISTERS>();
    if constexpr (C::LOADS_ALONE) {
      if (warp == 0) hopper_backward_produce_rows<C>(p, thread);
    } else {
      if (thread == 0) hopper_backward_produce_tiles<C>(p, maps);
    }
    if (!C::LOADS_ALONE && warp == 1) {
      if (!C::DQ_COPIES && C::DQ_SEMAPHORE && p.b.dq_semaphore)
        hopper_backward_produce_ordered<C>(p.b, thread % 32);
      else
        hopper_backward_produce_lse_delta<C>(p.b, thread % 32);
    }
    if constexpr (C::DQ_COPIES) {
      if (warp >= 2) hopper_backward_add_dq<C>(p.b, maps, warp - 2, thread % 32);
    }
    if constexpr (C::DROPOUT) {
      if (warp >= 4 - (C::LOADS_ALONE ? C::DROP_WARPS : HOPPER_DROP_WARPS)) hopper_backward_drop<C>(p.b, thread);
    }
  } else {
    registers_up<C::CONSUMER_REGISTERS>();
    hopper_backward_consume<C>(p, uniform(group - 1), thread % 128);
  }
}

template <class C> FA_DEVICE void hopper_backward(const fa_hopper_backward_params &p) {
  hopper_backward_of<C>(p, {});
}
template <class C> FA_DEVICE void hopper_backward(const fa_hopper_biased_backward_params &p) {
  hopper_backward_of<C>(p.call, {&p.bias, &p.dbias});
}

} // namespace fa

#endif
