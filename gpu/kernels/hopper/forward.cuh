/* The FlashAttention-3 style forward kernel for sm_90a: a producer warpgroup, one thread of which issues bulk
 * copies, and GROUPS consumer warpgroups of 64 query rows each. A persistent grid works on row blocks that a
 * tile scheduler hands out.
 *
 *   consumer, per key block j, from the last visible one down:
 *     wait for the turn; issue S' = Q K_j^T (operands in shared memory) and O += P V_(j+1) (P in registers); give the turn
 *     wait for S'; release K_j; softmax of S', overlapping the end of the other GEMM and those of other warpgroups
 *     within it: wait for O; release V_(j+1); rescale O; P = S' in 16 bits
 *
 * LAZY
 *   1: O is rescaled only if a row of the warp has a new maximum.
 *   2: In addition, the old maximum is kept while the new one is at most 2^8 times larger, in terms of
 *      exponentials; so P may be as large as 2^8. O and LSE are the same but for rounding, of which only that
 *      of the scaled maximum grows, by 8 2^-24: the bounds of LSE allow many times that.
 *
 * Shared memory, in panels of 64 columns (128 bytes, 128-byte swizzle): Q of each group, STAGES tiles of K,
 * STAGES of V, if APART O of each group, with a bias STAGES of that (rows of all groups, 64 keys to a panel), barriers. If not APART, O is stored from registers or, where those
 * are needed for something else, through the space of Q. */
#ifndef FA_GPU_KERNELS_HOPPER_FORWARD_CUH
#define FA_GPU_KERNELS_HOPPER_FORWARD_CUH

#include "gpu/kernels/hopper/eight_mainloop.cuh"
#include "gpu/kernels/hopper/forward_produce.cuh"
#include "gpu/kernels/hopper/forward_store.cuh"

namespace fa {

template <class C>
FA_DEVICE work_tile fetch_work_tile(const fa_attention_params &p, pipeline_state<2> tile_pipe) {
  mbarrier_wait(hopper_barriers<C>::tile_full(tile_pipe.stage()), tile_pipe.phase());
  return read_work_tile<C>(p, tile_pipe);
}

/* A work tile without rows for this group, which only releases what the others use. */
template <class C> FA_DEVICE void hopper_pass_work_tile(hopper_consumer<C> &c, const work_tile &work) {
  typedef hopper_barriers<C> bar;
  FA_NO_UNROLL
  for (int i = work.blocks.begin; i < work.blocks.end; ++i) hopper_skip_key_tile<C>(c, i > work.blocks.begin);
  mbarrier_wait(bar::q_full(c.group), c.q.phase());
  sync_warp();
  hopper_release(bar::q_empty(c.group), c.thread);
  c.q.next();
}

/* A work tile without keys, or without rows for this group. */
template <class C>
FA_DEVICE void hopper_skip_work_tile(hopper_consumer<C> &c, const fa_attention_params &p,
                                     const work_tile &work) {
  if (work.blocks.begin >= work.blocks.end)
    hopper_store_fully_masked<C>(p, work, c.group, c.thread);
  else
    hopper_pass_work_tile<C>(c, work);
}

template <class C> FA_DEVICE void hopper_consume(const fa_hopper_params &p, int group, int thread) {
  hopper_consumer<C> c = {group, thread, {}, {}, {}};
  hopper_give_first_turn<C>(group);
  FA_NO_UNROLL
  for (;; c.tile_pipe.next()) {
    const work_tile work = fetch_work_tile<C>(p.f, c.tile_pipe);
    if (work.row0 < 0) break;
    const block_range own = hopper_group_blocks<C>(p.f, work, group);
    if (own.begin < own.end) {
      float o[C::D / 8][4] = {};
      row_state rows[2];
      if constexpr (C::EIGHT)
        hopper_eight_mainloop<C>(c, o, rows, p.f, work, own);
      else
        hopper_mainloop<C>(c, o, rows, p.f, work, own);
      FA_NO_UNROLL
      for (int i = own.begin; C::SKIPS && i > work.blocks.begin; --i) hopper_skip_key_tile<C>(c, true);
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
  if (!C::DIRECT && thread % 32 == 0)
    tma_store_wait_read<0>(); /* shared memory must outlive the stores that
                                                                   read it */
}

/* Grid: x as many blocks as multiprocessors, or as work tiles if those are fewer. */
template <class C> FA_DEVICE void hopper_forward_of(const fa_hopper_params &p, const fa_tensor_map *bias) {
  const int thread = static_cast<int>(threadIdx.x), group = thread / 128;
  if (thread == 0) hopper_init_barriers<C>();
  if (C::DROPOUT || C::LINEAR) store_dropout_used(p.f, thread);
  sync_block();
  if (group == 0) {
    registers_down<C::PRODUCER_REGISTERS>();
    if (thread == 0) hopper_produce<C>(p, bias);
    if constexpr (C::EIGHT)
      if (thread >= 32) hopper_transpose_values<C>(p.f, uniform(thread / 32) - 1, thread % 32);
  } else {
    registers_up<C::CONSUMER_REGISTERS>();
    hopper_consume<C>(p, uniform(group - 1), thread % 128);
  }
}

template <class C> FA_DEVICE void hopper_forward(const fa_hopper_params &p) {
  hopper_forward_of<C>(p, nullptr);
}
template <class C> FA_DEVICE void hopper_forward(const fa_hopper_biased_params &p) {
  hopper_forward_of<C>(p.call, &p.bias);
}

} // namespace fa

#endif
