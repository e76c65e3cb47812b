/* The flash forward kernel for sm_90a: one producer warpgroup, of which one thread issues bulk copies, and
 * GROUPS consumer warpgroups of 64 query rows each, on row blocks that a persistent grid shares out.
 *
 *   consumer, per key block j, from the last visible one down:
 *     issue S' = Q K_j^T (shared operands), issue O += P V_(j+1) (P from registers)
 *     wait for S'; release K_j; softmax of S', while the other product and other warpgroups' go on
 *     wait for O; release V_(j+1); shrink O; P = S' in 16 bits
 *
 * LAZY: 1: O is multiplied only where a row of the warp has a new maximum. 2: besides, the old maximum stays
 * while the new one is at most 2^8 above, so that weights are as large as 2^8; O and LSE are the same but for
 * rounding, of which only that of the maximum's multiple grows, by 8 2^-24: the bounds of LSE have room for
 * that many times over.
 *
 * Shared memory, tiles in panels of 64 columns (128 bytes, 128-byte swizzle): Q of each group, STAGES tiles
 * of K, STAGES of V, if APART O of each group, barriers. Else O leaves from registers, or by Q's place where
 * those are needed for something else. */
#ifndef FA_GPU_KERNELS_HOPPER_FORWARD_CUH
#define FA_GPU_KERNELS_HOPPER_FORWARD_CUH

#include "gpu/kernels/hopper/forward_produce.cuh"
#include "gpu/kernels/hopper/forward_store.cuh"

namespace fa {

/* ---- consumers ---- */

/* What a consumer keeps from tile to tile. group: 0.. of the consumers; thread: 0..127 of the group. */
template <class C> struct hopper_consumer {
  int group, thread;
  pipeline_state<1> q;
  pipeline_state<C::STAGES> k; /* and, between tasks, of V */
  pipeline_state<2> tile_pipe;
};

/* s = Q K^T and o += P V, issued. */
template <class C> FA_DEVICE void hopper_gemm_qk(float (&s)[C::BN / 8][4], uint32_t q_tile, int stage) {
  hopper_gemm_ss<C::D, C::Q_PANEL, C::KV_PANEL>(s, q_tile, shared_base() + C::K_AT + stage * C::KV_BYTES,
                                                 typename C::T());
}
template <class C>
FA_DEVICE void hopper_gemm_pv(float (&o)[C::D / 8][4], const uint32_t (&p_frag)[C::BN / 16][4], int stage) {
  hopper_gemm_rs<C::KV_PANEL>(o, p_frag, shared_base() + C::V_AT + stage * C::KV_BYTES, typename C::T());
}

/* A key block that other groups of the row block see, and this one does not. */
template <class C> FA_DEVICE void hopper_skip_key_tile(hopper_consumer<C> &c) {
  typedef hopper_barriers<C> bar;
  mbarrier_wait(bar::k_full(c.k.stage()), c.k.phase());
  sync_warp(); /* before all lanes have seen the phase, it must not give way to the next */
  hopper_release(bar::k_empty(c.k.stage()), c.thread);
  mbarrier_wait(bar::v_full(c.k.stage()), c.k.phase());
  sync_warp();
  hopper_release(bar::v_empty(c.k.stage()), c.thread);
  c.k.next();
}

/* The i-th key block of the task, whose K has come. */
template <class C> FA_DEVICE flex_tile hopper_block(int stage, int i) {
  if (!C::FLEX) return flex_tile{i, FA_FLEX_FULL};
  const int entry = uniform(static_cast<int>(load_shared4(shared_base() + C::ENTRIES_AT + 4 * stage)));
  return flex_tile{entry >> 2, entry & 3};
}

/* Do rows of other keys follow those of the task's last key block in its tile? Where the tensor ends, zeros
 * do. */
template <class C> FA_DEVICE bool hopper_is_ragged(const fa_attention_params &p, const work_tile &work) {
  return C::VARLEN && (p.cu_seqlens_k || p.seqused_k) && work.blocks.end * C::BN > work.seq.len_k;
}

/* Key blocks that some row of the group sees; none if it has no rows. All of the row block's if it has, but
 * they see none, or are all needed to clear something. */
template <class C>
FA_DEVICE block_range hopper_group_blocks(const fa_attention_params &p, const work_tile &work, int group) {
  const int row0 = work.row0 + 64 * group;
  if (hopper_is_ragged<C>(p, work)) return work.blocks;
  if (row0 >= work.seq.len_q) return {work.blocks.begin, work.blocks.begin};
  if (!C::SKIPS) return work.blocks;
  block_range own = visible_blocks<C::BN>(p, work.seq, row0, row0 + 64);
  own.end = min_int(own.end, work.blocks.end);
  return own.begin < own.end ? own : work.blocks;
}

/* Then V has zeros instead: a weight of 0 times what stands there could be NaN. All consumers. */
template <class C>
FA_DEVICE void hopper_clear_ragged_v(const work_tile &work, pipeline_state<C::STAGES> v, int group, int thread) {
  const int first = work.seq.len_k - (work.blocks.end - 1) * C::BN;
  const uint32_t tile = shared_base() + C::V_AT + v.stage() * C::KV_BYTES;
  mbarrier_wait(hopper_barriers<C>::v_full(v.stage()), v.phase());
  FA_NO_UNROLL
  for (int i = 128 * group + thread; i < (C::BN - first) * 8; i += 128 * C::GROUPS) {
    FA_UNROLL
    for (int panel = 0; panel < C::PANELS; ++panel)
      store_shared16(tile + panel * C::KV_PANEL + first * 128 + i * 16, vec4{0, 0, 0, 0});
  }
  fence_async();
  named_sync<128 * C::GROUPS>(1 + C::GROUPS);
}

template <class C> FA_DEVICE work_tile fetch_work_tile(const fa_attention_params &p, pipeline_state<2> tile_pipe) {
  mbarrier_wait(hopper_barriers<C>::tile_full(tile_pipe.stage()), tile_pipe.phase());
  return read_work_tile<C>(p, tile_pipe);
}

/* Everything of a task that the group has key blocks of.
 *
 * wgmma_wait<0> of O is to come behind the softmax, which would not run beside the products otherwise. ptxas
 * moves it up as far as it may, and that is to a branch: hence the wait for V, of the next product, between.
 * What counts key blocks is the same in all lanes, and has to be seen to be: descriptors are made of it
 * between the products. */
template <class C>
FA_DEVICE void hopper_mainloop(hopper_consumer<C> &c, float (&o)[C::D / 8][4], row_state (&rows)[2],
                             const fa_attention_params &p, const work_tile &work, block_range own) {
  typedef hopper_barriers<C> bar;
  const uint32_t q_tile = shared_base() + c.group * C::Q_BYTES;
  const int row0 = work.row0 + 64 * c.group, begin = uniform(own.begin);
  const float slope = C::ALIBI ? alibi_slope(p, work.batch, work.head) : 0.0f;
  float s[1][C::BN / 8][4], rescale[2];
  uint32_t p_frag[C::BN / 16][4];

  FA_NO_UNROLL
  for (int i = work.blocks.end; C::SKIPS && i > own.end; --i) hopper_skip_key_tile<C>(c);
  pipeline_state<C::STAGES> k = {static_cast<unsigned>(uniform(static_cast<int>(c.k.n)))};
  int i = uniform(own.end) - 1;
  mbarrier_wait(bar::q_full(c.group), c.q.phase());
  mbarrier_wait(bar::k_full(k.stage()), k.phase());
  flex_tile block = hopper_block<C>(k.stage(), i);
  wgmma_fence();
  hopper_gemm_qk<C>(s[0], q_tile, k.stage());
  if (hopper_is_ragged<C>(p, work)) hopper_clear_ragged_v<C>(work, k, c.group, c.thread);
  wgmma_wait<0>(s[0]);
  hopper_release(bar::k_empty(k.stage()), c.thread);
  if (!C::IN_Q && i == begin) hopper_release(bar::q_empty(c.group), c.thread);
  hopper_softmax<C>(s, rows, rescale, p, work, slope, row0, block, c.thread);
  hopper_convert_p<C>(p_frag, s[0], p, work, row0, block.tile * C::BN, C::DROPOUT ? opaque(c.thread) : 0);
  mbarrier_wait(bar::v_full(k.stage()), k.phase());
  k.next();

  FA_NO_UNROLL
  while (--i >= begin) {
    const pipeline_state<C::STAGES> v = k.before();
    mbarrier_wait(bar::k_full(k.stage()), k.phase());
    block = hopper_block<C>(k.stage(), i);
    wgmma_fence();
    hopper_gemm_qk<C>(s[0], q_tile, k.stage());
    hopper_gemm_pv<C>(o, p_frag, v.stage());
    wgmma_wait<1>(s[0]);
    hopper_release(bar::k_empty(k.stage()), c.thread);
    if (!C::IN_Q && i == begin) hopper_release(bar::q_empty(c.group), c.thread);
    hopper_softmax<C>(s, rows, rescale, p, work, slope, row0, block, c.thread);
    mbarrier_wait(bar::v_full(k.stage()), k.phase());
    wgmma_wait<0>(o);
    hopper_release(bar::v_empty(v.stage()), c.thread);
    k.next();
    hopper_rescale<C>(o, rescale);
    hopper_convert_p<C>(p_frag, s[0], p, work, row0, block.tile * C::BN, C::DROPOUT ? opaque(c.thread) : 0);
  }
  wgmma_fence();
  hopper_gemm_pv<C>(o, p_frag, k.before().stage());
  wgmma_wait<0>(o);
  hopper_release(bar::v_empty(k.before().stage()), c.thread);
  c.k = k;
  c.q.next();
}

/* A task without a key, or without rows for this group, which then goes through what the others need. */
template <class C>
FA_DEVICE void hopper_skip_work_tile(hopper_consumer<C> &c, const fa_attention_params &p, const work_tile &work) {
  typedef hopper_barriers<C> bar;
  if (work.blocks.begin >= work.blocks.end) {
    hopper_store_fully_masked<C>(p, work, c.group, c.thread);
    return;
  }
  FA_NO_UNROLL
  for (int i = work.blocks.begin; i < work.blocks.end; ++i) hopper_skip_key_tile<C>(c);
  mbarrier_wait(bar::q_full(c.group), c.q.phase());
  sync_warp();
  hopper_release(bar::q_empty(c.group), c.thread);
  c.q.next();
}

template <class C> FA_DEVICE void hopper_consume(const fa_hopper_params &p, int group, int thread) {
  hopper_consumer<C> c = {group, thread, {}, {}, {}};
  FA_NO_UNROLL
  for (;; c.tile_pipe.next()) {
    const work_tile work = fetch_work_tile<C>(p.f, c.tile_pipe);
    if (work.row0 < 0) break;
    const block_range own = hopper_group_blocks<C>(p.f, work, group);
    if (own.begin < own.end) {
      float o[C::D / 8][4] = {};
      row_state rows[2];
      hopper_mainloop<C>(c, o, rows, p.f, work, own);
      FA_NO_UNROLL
      for (int i = own.begin; C::SKIPS && i > work.blocks.begin; --i) hopper_skip_key_tile<C>(c);
      /* told again, rather than kept */
      hopper_epilogue<C>(p, o, rows, read_work_tile<C>(p.f, c.tile_pipe), group, opaque(thread));
      if (C::IN_Q) {
        if (thread % 32 == 0) tma_store_wait_read<0>();
        sync_warp();
        hopper_release(hopper_barriers<C>::q_empty(group), thread);
      }
    } else {
      hopper_skip_work_tile<C>(c, p.f, work);
    }
    sync_warp();
    hopper_release(hopper_barriers<C>::tile_empty(c.tile_pipe.stage()), thread);
  }
  if (!C::DIRECT && thread % 32 == 0) tma_store_wait_read<0>(); /* shared memory ends with the block */
}

/* Grid: x over as many blocks as there are multiprocessors, or tiles if those are fewer. */
template <class C> FA_DEVICE void hopper_forward(const fa_hopper_params &p) {
  const int thread = static_cast<int>(threadIdx.x), group = thread / 128;
  if (thread == 0) hopper_init_barriers<C>();
  sync_block();
  if (group == 0) {
    registers_down<C::PRODUCER_REGISTERS>();
    if (thread == 0) hopper_produce<C>(p);
  } else {
    registers_up<C::CONSUMER_REGISTERS>();
    hopper_consume<C>(p, uniform(group - 1), thread % 128);
  }
}

} // namespace fa

#endif
