/* The FlashAttention-3 style forward kernel for sm_90a: a producer warpgroup, one thread of which issues bulk
 * copies, and GROUPS consumer warpgroups of 64 query rows each. A persistent grid works on row blocks that a
 * tile scheduler hands out.
 *
 *   consumer, per key block j, from the last visible one down:
 *     issue S' = Q K_j^T (operands in shared memory); issue O += P V_(j+1) (P in registers)
 *     wait for S'; release K_j; softmax of S', overlapping the other GEMM and those of other warpgroups
 *     wait for O; release V_(j+1); rescale O; P = S' in 16 bits
 *
 * LAZY
 *   1: O is rescaled only if a row of the warp has a new maximum.
 *   2: In addition, the old maximum is kept while the new one is at most 2^8 times larger, in terms of
 *      exponentials; so P may be as large as 2^8. O and LSE are the same but for rounding, of which only that
 *      of the scaled maximum grows, by 8 2^-24: the bounds of LSE allow many times that.
 *
 * Shared memory, in panels of 64 columns (128 bytes, 128-byte swizzle): Q of each group, STAGES tiles of K,
 * STAGES of V, if APART O of each group, barriers. If not APART, O is stored from registers or, where those
 * are needed for something else, through the space of Q. */
#ifndef FA_GPU_KERNELS_HOPPER_FORWARD_CUH
#define FA_GPU_KERNELS_HOPPER_FORWARD_CUH

#include "gpu/kernels/hopper/forward_produce.cuh"
#include "gpu/kernels/hopper/forward_store.cuh"

namespace fa {

/* ---- consumers ---- */

/* What a consumer keeps from work tile to work tile. group: index of the consumer warpgroup; thread: 0..127
 * in the group. */
template <class C> struct hopper_consumer {
  int group, thread;
  pipeline_state<1> q;
  pipeline_state<C::STAGES> k; /* also V's, between work tiles */
  pipeline_state<2> tile_pipe;
};

/* Issue s = Q K^T and o += P V. */
template <class C> FA_DEVICE void hopper_gemm_qk(float (&s)[C::BN / 8][4], uint32_t q_tile, int stage) {
  hopper_gemm_ss<C::D, C::Q_PANEL, C::KV_PANEL>(s, q_tile, shared_base() + C::K_AT + stage * C::KV_BYTES,
                                                 typename C::T());
}
template <class C>
FA_DEVICE void hopper_gemm_pv(float (&o)[C::D / 8][4], const uint32_t (&p_frag)[C::BN / 16][4], int stage) {
  hopper_gemm_rs<C::KV_PANEL>(o, p_frag, shared_base() + C::V_AT + stage * C::KV_BYTES, typename C::T());
}

/* Passes over a key block that other groups of the row block see and this one does not. */
template <class C> FA_DEVICE void hopper_skip_key_tile(hopper_consumer<C> &c) {
  typedef hopper_barriers<C> bar;
  mbarrier_wait(bar::k_full(c.k.stage()), c.k.phase());
  sync_warp(); /* all lanes must see this phase before the barrier can complete the next */
  hopper_release(bar::k_empty(c.k.stage()), c.thread);
  mbarrier_wait(bar::v_full(c.k.stage()), c.k.phase());
  sync_warp();
  hopper_release(bar::v_empty(c.k.stage()), c.thread);
  c.k.next();
}

/* The i-th key block of the work tile. Its K must have arrived. */
template <class C> FA_DEVICE flex_tile hopper_block(int stage, int i) {
  if (!C::FLEX) return flex_tile{i, FA_FLEX_FULL};
  const int entry = uniform(static_cast<int>(load_shared4(shared_base() + C::FLEX_TILES_AT + 4 * stage)));
  return flex_tile{entry >> 2, entry & 3};
}

/* True if the work tile's last key block is a ragged tail: its tile in shared memory also has rows past the
 * sequence's keys. (At the end of the tensor they are zeros.) */
template <class C> FA_DEVICE bool hopper_is_ragged(const fa_attention_params &p, const work_tile &work) {
  return C::VARLEN && (C::CACHE || p.cu_seqlens_k || p.seqused_k) && work.blocks.end * C::BN > work.seq.len_k;
}

/* Key blocks that some row of the group sees; empty if the group has no rows. All key blocks of the work tile
 * if its rows see none, or if all groups are needed to clear a ragged tail; over a cache, where tiles of few rows are
 * many, those with rows clear it. */
template <class C>
FA_DEVICE block_range hopper_group_blocks(const fa_attention_params &p, const work_tile &work, int group) {
  const int row0 = work.row0 + 64 * group;
  if (!C::CACHE && hopper_is_ragged<C>(p, work)) return work.blocks;
  if (row0 >= hopper_n_rows<C>(work)) return {work.blocks.begin, work.blocks.begin};
  if (!C::SKIPS) return work.blocks;
  block_range own = visible_blocks<C::BN>(p, work.seq, row0, row0 + 64);
  own.end = min_int(own.end, work.blocks.end);
  return own.begin < own.end ? own : work.blocks;
}

/* The consumers that clear a ragged tail, all or those with rows, wait for each other. */
template <class C> FA_DEVICE void hopper_sync_clearing(int groups) {
  if (!C::CACHE || groups == C::GROUPS)
    named_sync<128 * C::GROUPS>(1 + C::GROUPS);
  else if (C::GROUPS == 2 || groups == 1)
    named_sync<128>(2 + C::GROUPS);
  else
    named_sync<256>(3 + C::GROUPS);
}

/* Writes zeros to V's ragged tail: P is 0 there, but 0 times what the tail holds could be NaN. All consumers
 * call it, or over a cache all that have rows. */
template <class C>
FA_DEVICE void hopper_clear_ragged_v(const work_tile &work, pipeline_state<C::STAGES> v, int group, int thread) {
  const int groups = C::CACHE ? min_int(C::GROUPS, (hopper_n_rows<C>(work) - work.row0 + 63) / 64) : C::GROUPS;
  const int first = work.seq.len_k - (work.blocks.end - 1) * C::BN;
  const uint32_t tile = shared_base() + C::V_AT + v.stage() * C::KV_BYTES;
  mbarrier_wait(hopper_barriers<C>::v_full(v.stage()), v.phase());
  FA_NO_UNROLL
  for (int i = 128 * group + thread; i < (C::BN - first) * 8; i += 128 * groups) {
    FA_UNROLL
    for (int panel = 0; panel < C::PANELS; ++panel)
      store_shared16(tile + panel * C::KV_PANEL + first * 128 + i * 16, vec4{0, 0, 0, 0});
  }
  fence_async();
  hopper_sync_clearing<C>(groups);
}

template <class C> FA_DEVICE work_tile fetch_work_tile(const fa_attention_params &p, pipeline_state<2> tile_pipe) {
  mbarrier_wait(hopper_barriers<C>::tile_full(tile_pipe.stage()), tile_pipe.phase());
  return read_work_tile<C>(p, tile_pipe);
}

/* The mainloop: all key blocks of the work tile that the group sees.
 *
 * wgmma_wait<0> of O must come after the softmax, or the softmax would not overlap the GEMMs. ptxas hoists it
 * as far as it may, which is up to a branch: hence the wait for V of the next GEMM in between. The counter of
 * key blocks is the same in all lanes, and the compiler must know it: descriptors are computed from it
 * between the GEMMs. */
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

/* A work tile without rows for this group, which only releases what the others use. */
template <class C> FA_DEVICE void hopper_pass_work_tile(hopper_consumer<C> &c, const work_tile &work) {
  typedef hopper_barriers<C> bar;
  FA_NO_UNROLL
  for (int i = work.blocks.begin; i < work.blocks.end; ++i) hopper_skip_key_tile<C>(c);
  mbarrier_wait(bar::q_full(c.group), c.q.phase());
  sync_warp();
  hopper_release(bar::q_empty(c.group), c.thread);
  c.q.next();
}

/* A work tile without keys, or without rows for this group. */
template <class C>
FA_DEVICE void hopper_skip_work_tile(hopper_consumer<C> &c, const fa_attention_params &p, const work_tile &work) {
  if (work.blocks.begin >= work.blocks.end)
    hopper_store_fully_masked<C>(p, work, c.group, c.thread);
  else
    hopper_pass_work_tile<C>(c, work);
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
      /* read again rather than kept in registers */
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
  if (!C::DIRECT && thread % 32 == 0) tma_store_wait_read<0>(); /* shared memory must outlive the stores that
                                                                   read it */
}

/* Grid: x as many blocks as multiprocessors, or as work tiles if those are fewer. */
template <class C> FA_DEVICE void hopper_forward(const fa_hopper_params &p) {
  const int thread = static_cast<int>(threadIdx.x), group = thread / 128;
  if (thread == 0) hopper_init_barriers<C>();
  if (C::DROPOUT) store_dropout_used(p.f, thread);
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
